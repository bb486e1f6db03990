"""What a scope holds, newest first: for a model that lost a reference, for the host, and for ``coatcheck ls``.

A remote storage lists only keys and sizes. Anything else costs one request for each content, so the caller sets how
many contents may be looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.arguments import LISTING
from coatcheck.core.checks import is_count
from coatcheck.core.errors import CoatcheckError, InvalidRequest, describe_value
from coatcheck.core.reading.wording import LISTED, LISTED_IN_PART, MORE_STORED, NOT_DESCRIBED, listed
from coatcheck.core.references import Key, make_reference
from coatcheck.core.retrieved import ListedContent, Listing
from coatcheck.engine.contents import (
    LONGEST_TOOL_NAME,
    Entry,
    arguments_in,
    content_type_in,
    require_stored,
    tool_name_in,
)
from coatcheck.engine.entries import newest
from coatcheck.storage.protocol import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.core.references import Scope
    from coatcheck.engine.execution import Effects, StorageAccess
    from coatcheck.storage.protocol import Listed

__all__ = ("LONGEST_PAGE", "list_contents", "listing")

LONGEST_PAGE = 1_000
"""Entries of one page, at most: as many as S3 lists in one request."""


DESCRIBED_FOR_MODEL = 20
"""Contents that a model's list looks up one by one, if it must. More would keep the model waiting; for the rest, the
list shows only reference and size."""


def listing(storage: StorageAccess, scope: Scope) -> Effects[tuple[str, Entry] | None]:
    """Return a heading and the list of what a scope holds, one line per content; None if it holds nothing.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed.

    """
    page = yield from list_contents(storage, scope, limit=LONGEST_PAGE, described=DESCRIBED_FOR_MODEL)
    lines = list(map(listed, page.contents))
    if any(each.content_type is None for each in page.contents):
        lines.append(NOT_DESCRIBED)
    if page.after is not None:  # the order may then be by key, as with S3
        lines.append(MORE_STORED)
    if not lines:
        return None
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    stored = Stored(content=data, content_type="text/plain", metadata={}, size=len(data), whole=data)
    heading = LISTED if page.after is None else LISTED_IN_PART
    return heading, Entry(reference=LISTING, key="", stored=stored)


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
        storage: the storage that holds them.
        scope: the scope to list.
        limit: how many entries to look at, 1 to 1,000. Line indexes count, so a page may hold fewer contents.
        after: ``after`` of the previous page; None for the first one.
        tool_name: return only results of this tool.
        described: how many contents to look up with a request each, if the storage lists only keys and sizes.

    Raises:
        InvalidRequest: the storage cannot list, or an argument is wrong.
        StorageError: the storage failed.

    """
    if not is_count(limit, least=1) or limit > LONGEST_PAGE:
        msg = f"limit must be a whole number from 1 to {LONGEST_PAGE:,}, not {limit!r}"
        raise InvalidRequest(msg)
    if not isinstance(after, str | None):
        msg = f"after must be the `after` of the previous page, not {after!r}"
        raise InvalidRequest(msg)
    if not isinstance(tool_name, str | None):
        msg = f"tool_name must be a str or None, not {describe_value(tool_name)}"
        raise InvalidRequest(msg)
    if storage.names_references:
        msg = f"{type(storage.storage).__name__} cannot be listed: it names its references itself"
        raise InvalidRequest(msg)
    page = yield from newest(storage, scope, limit=limit, after=after)
    contents: list[ListedContent] = []
    for entry in page.entries:
        metadata, content_type = entry.metadata, entry.content_type
        if (metadata is None or content_type is None) and storage.reads_ranges and described > 0:
            described -= 1
            answer = yield from storage.attempt("load_range", entry.key, start=0, length=0)
            if answer is None:
                continue  # deleted since it was listed
            if isinstance(answer, CoatcheckError):
                described = 0  # the next request may also take its whole time limit and fail
            else:
                stored = require_stored(answer)
                metadata, content_type = stored.metadata, stored.content_type
        if metadata is None and tool_name is not None:
            msg = (
                f"{type(storage.storage).__name__} did not say which tool {entry.key!r} came from: leave out tool_name"
            )
            raise InvalidRequest(msg)
        contents.append(_content(entry, scope, metadata=metadata or {}, content_type=content_type))
    kept = None if tool_name is None else tool_name[:LONGEST_TOOL_NAME]
    wanted = (each for each in contents if kept is None or each.tool_name == kept)
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
        content_type=None if content_type is None else content_type_in(content_type, metadata),
    )
