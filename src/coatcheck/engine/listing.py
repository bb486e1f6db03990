"""What a scope holds, newest first: for a model that lost a reference, for the host, and for ``coatcheck ls``.

A storage far away lists keys and sizes only. What else a listing tells of a content costs a request for each, so the
caller says how many contents may be asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.outcomes import ListedContent, Listing
from coatcheck.core.reading.wording import MORE_STORED, listed
from coatcheck.core.references import Key, make_reference
from coatcheck.engine.cleanup import newest
from coatcheck.engine.contents import Found, arguments_in, tool_name_in, without_items
from coatcheck.storage.protocol import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.core.references import Scope
    from coatcheck.engine.access import StorageAccess
    from coatcheck.engine.execution import Effects
    from coatcheck.storage.protocol import Listed

__all__ = ("LISTING", "LONGEST_PAGE", "asks_for_list", "list_contents", "listing")

LISTING = "*"
"""The reference of the list itself. A call without one asks for it too."""

LONGEST_PAGE = 1_000
"""Contents of one page, as many as S3 lists in one request."""


DESCRIBED_FOR_MODEL = 20
"""Contents that a model's list asks a storage about one by one, if it must: more would keep the model waiting. Of the
others the list has reference and size."""


def asks_for_list(reference: object) -> bool:
    """Return whether a model's call names no content: then it gets the list of what the scope holds."""
    return reference is None or (isinstance(reference, str) and reference.strip() in {"", LISTING})


def listing(storage: StorageAccess, scope: Scope) -> Effects[Found | None]:
    """Return the list of what a scope holds as a content to be read, a line for each, or None where it holds nothing.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed.

    """
    page = yield from list_contents(storage, scope, limit=LONGEST_PAGE, described=DESCRIBED_FOR_MODEL)
    lines = [*map(listed, page.contents), *([MORE_STORED] if page.after is not None else [])]
    if not lines:
        return None
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    stored = Stored(content=data, content_type="text/plain", metadata={}, size=len(data), whole=data)
    return Found(reference=LISTING, key="", stored=stored)


def list_contents(
    storage: StorageAccess,
    scope: Scope,
    *,
    limit: int,
    after: str | None = None,
    tool_name: str | None = None,
    described: int = LONGEST_PAGE,
) -> Effects[Listing]:
    """Return a page of the contents of a scope.

    Args:
        storage: what holds them.
        scope: whose contents.
        limit: how many entries to look at, 1 to 1,000. Line indexes count, so a page may hold fewer contents.
        after: that of the page before; None gives the first one.
        tool_name: return only results of this tool.
        described: how many contents to ask the storage about, each with a request of its own, where its list says
            nothing but key and size.

    Raises:
        InvalidRequest: the storage cannot list, or an argument is wrong.
        StorageError: the storage failed.

    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LONGEST_PAGE:
        msg = f"limit must be a whole number from 1 to {LONGEST_PAGE:,}, not {limit!r}"
        raise InvalidRequest(msg)
    if after is not None and not isinstance(after, str):
        msg = f"after must be what the page before has as its after, not {after!r}"
        raise InvalidRequest(msg)
    page = yield from newest(storage, scope, limit=limit, after=after)
    contents: list[ListedContent] = []
    for entry in page.entries:
        metadata, content_type = entry.metadata, entry.content_type
        if (metadata is None or content_type is None) and storage.reads_ranges and described > 0:
            described -= 1
            answer = yield storage.call("load_range", entry.key, start=0, length=0)
            if answer is None:
                continue  # deleted since it was listed
            if isinstance(answer, Stored):
                metadata, content_type = answer.metadata, answer.content_type
        contents.append(_content(entry, scope, metadata=metadata or {}, content_type=content_type))
    wanted = (each for each in contents if tool_name is None or each.tool_name == tool_name)
    return Listing(contents=tuple(wanted), after=page.after)


def _content(entry: Listed, scope: Scope, *, metadata: Mapping[str, str], content_type: str | None) -> ListedContent:
    tool_name = tool_name_in(metadata)
    digest = Key.parse(entry.key).digest
    return ListedContent(
        reference=make_reference(tool_name or "", scope, digest=digest),
        size=entry.size,
        modified=entry.modified,
        tool_name=tool_name,
        arguments=arguments_in(metadata),
        content_type=None if content_type is None else without_items(content_type, metadata),
    )
