"""``coatcheck ls``, ``stats``, ``verify``, ``sweep`` and ``rm``: a whole storage at a time.

An entry is a content, or something kept with one, such as the line index of large text. People see contents and their
bytes; everything else is counted separately. The library decides what to delete and what counts as damaged.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coatcheck.cli.failure import NOT_AS_EXPECTED, CannotRun, reported
from coatcheck.cli.location import DEFAULT_STORAGE, storage_at
from coatcheck.cli.options import AsJson, ScopeOption, StorageOption, scope_of
from coatcheck.cli.printing import complain, iso_time, local_time, one_line, progress, show, show_json
from coatcheck.core.notice import one_line as one_name
from coatcheck.core.references import Key, resolve_reference, scope_part, scope_tags
from coatcheck.scopes import DEFAULT_SCOPE, require_scope, require_scope_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coatcheck.cli.scope_notes import ScopeNote
    from coatcheck.core.references import Scope
    from coatcheck.engine.execution import Effects, StorageAccess
    from coatcheck.storage.protocol import Listed

__all__ = ("list_contents", "remove", "stats", "sweep", "verify")

_MAX_SCOPES = 15
"""The most scopes that are shown; with the total they fit a screen. The JSON has all."""

_NAME_COLUMNS = 33
"""The width of a key, in characters."""

_EXTRAS = "more in indexes of lines and leftovers"

_NAMELESS = " Where a name is lost, sweep --max-age 30d deletes by age, in all scopes."
"""For people who delete: a scope can be deleted only by its name, which a storage does not know."""


@reported
def list_contents(
    *,
    all_scopes: Annotated[bool, typer.Option("--all-scopes", help="Every scope; keys instead of references.")] = False,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Only results of this tool.")] = None,
    look_up_all: Annotated[
        bool, typer.Option("--look-up-all", help="Ask for the tool and type of every content.")
    ] = False,
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = None,
    as_json: AsJson = False,
) -> None:
    """List the contents of a scope with their references.

    The last used come first. A storage such as S3 is asked for tool and type one by
    one, so for the first 1,000 only. Keys name a scope by its digest.
    """
    access = _open(storage)
    chosen = require_scope(scope_of(scope))
    if all_scopes and (tool is not None or look_up_all):
        msg = f"{'--look-up-all' if tool is None else '--tool'} is for one scope: leave out --all-scopes"
        raise CannotRun(msg)
    if all_scopes:
        rows = [_row_of_key(entry) for entry in _contents(_entries(access, ""))]
    else:
        rows = list(_rows_of(access, chosen, look_up_all=look_up_all))
    unknown = 0 if all_scopes else sum(row["content_type"] is None for row in rows)
    if tool is not None:
        from coatcheck.engine.contents import LONGEST_TOOL_NAME

        rows = [row for row in rows if row["tool"] == tool[:LONGEST_TOOL_NAME]]
    if as_json:
        show_json([{**row, "modified": iso_time(row["modified"])} for row in rows])
    elif rows:
        name, kind = ("key", "") if all_scopes else ("reference", "TYPE")  # a reference begins with the tool
        show(f"{name.upper():<{_NAME_COLUMNS}} {'BYTES':>13}  LAST SAVED OR USED  {kind}".rstrip())
        for row in rows:
            used, kind = local_time(row["modified"]), one_name(row["content_type"] or "")
            show(f"{row[name]:<{_NAME_COLUMNS}} {row['bytes']:>13,}  {used:<18}  {kind}".rstrip())
    elif tool is not None:
        known = ", as far as it is known" if unknown else ""
        complain(f"Nothing of the tool {tool!r} is stored in scope {chosen!r} of {access.storage!r}{known}.")
    else:
        complain(_nothing(access, None if all_scopes else f"scope {chosen!r}") + _elsewhere(storage))
    if unknown:
        complain(f"The tool and type of {unknown:,} contents are unknown: --look-up-all asks for each.")


def _row_of_key(entry: Listed) -> dict[str, Any]:
    known = {"reference": None, "tool": None, "content_type": None}
    return {**known, "key": entry.key, "bytes": entry.size, "modified": entry.modified}


def _rows_of(access: StorageAccess, scope: Scope, *, look_up_all: bool) -> Iterator[dict[str, Any]]:
    from coatcheck.engine.execution import run
    from coatcheck.engine.listing import LONGEST_PAGE
    from coatcheck.engine.listing import list_contents as list_page

    described, after = LONGEST_PAGE, None
    while True:
        page = run(list_page(access, scope, limit=LONGEST_PAGE, after=after, described=described))
        for each in page.contents:
            yield {
                "reference": each.reference,
                "tool": each.tool_name,
                "content_type": each.content_type,
                "key": str(resolve_reference(each.reference, scope)),
                "bytes": each.size,
                "modified": each.modified,
            }
        if page.after is None:
            return
        described, after = (LONGEST_PAGE if look_up_all else 0), page.after


@reported
def stats(*, storage: StorageOption = DEFAULT_STORAGE, scope: ScopeOption = None, as_json: AsJson = False) -> None:
    """Count what is stored, in all and by scope, the largest first.

    A storage knows scopes by their digest only; yours, and the default one, are shown
    by name, and those of an MCP proxy by server and folder. Others show their digest
    (for a tuple, its last part), and the tool of what was last saved or used.
    """
    from coatcheck.cli.scope_notes import read_note

    access = _open(storage, is_made=True)
    names = {scope_part(require_scope(name)): name for name in (DEFAULT_SCOPE, scope_of(scope))}
    of_scope: defaultdict[str, list[Listed]] = defaultdict(list)
    everything = _entries(access, "")
    for entry in everything:
        of_scope[Key.parse(entry.key).scope].append(entry)
    largest = sorted(of_scope.items(), key=lambda item: _size(item[1]), reverse=True)
    notes = {tag: note for tag in of_scope if (note := read_note(access.storage, tag)) is not None}
    if as_json:
        noted = {tag: note._asdict() for tag, note in notes.items()}
        unknown = {"server": None, "folder": None}
        rows = [
            {"scope": names.get(tag), "scope_digest": tag, **unknown, **noted.get(tag, {}), **_counts(found)}
            for tag, found in largest
        ]
        show_json({"storage": repr(access.storage), **_counts(everything), "scopes": rows})
        return
    show(f"{access.storage!r}")
    show(f"{'SCOPE':<{_NAME_COLUMNS}} {'CONTENTS':>9} {'BYTES':>15}  LAST SAVED OR USED")
    for tag, found in largest[:_MAX_SCOPES]:
        name = _place(notes[tag]) if tag in notes else names.get(tag)
        show(_row(str(name or f"{_digest(tag)} {_last_tool(access, found)}"), found))
    if len(largest) > _MAX_SCOPES:
        show(f"... and {len(largest) - _MAX_SCOPES:,} smaller ones")
    show(_row(f"all {len(largest):,}", everything))
    if extra := _size(everything) - _size(_contents(everything)):
        show(f"and {extra:,} bytes {_EXTRAS}")


@reported
def verify(*, storage: StorageOption = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """Read every entry and compare its checksum. Nothing is changed."""
    from coatcheck.engine.entries import damage
    from coatcheck.engine.execution import run

    access = _open(storage, is_made=True)
    everything = _entries(access, "")
    keys = {entry.key for entry in everything}
    damaged: list[tuple[Listed, str]] = []
    with progress("Verifying", _size(everything)) as advance:
        for entry in everything:
            error = run(damage(access, entry, keys=keys))
            if error is not None:
                damaged.append((entry, str(error)))
            advance(entry.size)
    if as_json:
        rows = [{"key": entry.key, "error": message} for entry, message in damaged]
        show_json({"storage": repr(access.storage), **_counts(everything), "damaged": rows})
    else:
        for entry, message in damaged:
            show(f"{entry.key}: {message}")
        outcome = f"{len(damaged):,} damaged or unreadable" if damaged else "all as they were saved"
        show(f"Verified {_amount(everything)}: {outcome}.")
    if damaged:
        raise typer.Exit(NOT_AS_EXPECTED)


@reported
def sweep(
    *,
    max_age: Annotated[
        str | None, typer.Option(metavar="30d", help="Delete what was not saved or used for this long; s, m, h, d, w.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="50GB", help="Delete the oldest until this much remains; KB to TB.")
    ] = None,
    max_scope_bytes: Annotated[str | None, typer.Option(metavar="2GB", help="The same, in each scope.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    storage: StorageOption = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Delete what is past a limit, the oldest first, in all scopes.

    What was saved or used within the last hour stays, so agents can go on working.
    """
    from coatcheck.core.amounts import parse_bytes, parse_seconds
    from coatcheck.engine.cleanup import GRACE_SECONDS, SweepLimits, batches, overdue, remove_unused
    from coatcheck.engine.execution import run

    if max_age is None and max_bytes is None and max_scope_bytes is None:
        msg = "sweep needs a limit: --max-age, --max-bytes or --max-scope-bytes"
        raise CannotRun(msg)
    limits = SweepLimits(
        max_age_seconds=None if max_age is None else parse_seconds("--max-age", max_age),
        max_bytes=None if max_bytes is None else parse_bytes("--max-bytes", max_bytes),
        max_scope_bytes=None if max_scope_bytes is None else parse_bytes("--max-scope-bytes", max_scope_bytes),
    )
    access = _open(storage, is_made=True)
    now = time.time()
    listed = _entries(access, "")
    past = overdue(listed, limits, now=now)
    deleted = 0
    if not dry_run:
        with progress("Sweeping", len(past)) as advance:
            for batch in batches(access, past):
                deleted += run(remove_unused(access, batch, now=now))
                advance(len(batch))
    if as_json:
        show_json({"storage": repr(access.storage), **_counts(past), "deleted": deleted})
    else:
        spared = 0 if dry_run else len(past) - deleted
        meanwhile = f", except {spared:,} of the entries, used meanwhile" if spared else ""
        show(f"{'Would delete' if dry_run else 'Deleted'} {_amount(past)}{meanwhile}.")
        if any(entry.modified >= now - GRACE_SECONDS for entry in listed):
            show("What was saved or used within the last hour stays, whatever the limit.")


@reported
def remove(
    reference: Annotated[str | None, typer.Argument(hidden=True)] = None,
    *,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="The scope, as for get; no default, and no variable.")
    ] = None,
    under: Annotated[
        list[str] | None,
        typer.Option(metavar="TENANT", help="Every tuple scope that begins with it; once for each part."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    storage: StorageOption = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Delete everything in a scope, or in all scopes of a tenant. Asks first.

    A single content cannot be deleted; sweep deletes by age and size.
    """
    from coatcheck.offloader import Offloader

    if reference is not None:
        msg = f"rm deletes whole scopes, with --scope or --under, not a single content such as {reference!r}"
        raise CannotRun(msg)
    if bool(scope) == bool(under):
        msg = "rm needs either --scope or --under"
        raise CannotRun(msg)
    access = _open(storage)
    tenant = require_scope_parts("--under", tuple(under)) if under else ()
    chosen = tenant or require_scope(scope_of(scope))
    where = f"the scopes under {chosen!r}" if tenant else f"scope {chosen!r}"
    facts = {"under" if tenant else "scope": chosen}
    found = _entries(access, scope_part(chosen) if tenant else f"{scope_part(chosen)}/")
    if not found:
        if as_json:
            show_json({**facts, **_counts(found), "deleted": 0})
        complain(_nothing(access, where, to_delete=True))
        raise typer.Exit(NOT_AS_EXPECTED)
    if not yes:
        complain(f"This deletes {_amount(found)}, of {where} in {access.storage!r}.")
        _require_yes()
    offloader = Offloader(access.storage)
    deleted = offloader.delete_scopes(under=tenant) if tenant else offloader.delete_scope(chosen)
    if as_json:
        show_json({**facts, **_counts(found), "deleted": deleted})
    else:
        show(f"Deleted {_amount(found)}.")


def _nothing(access: StorageAccess, where: str | None, *, to_delete: bool = False) -> str:
    """Say that nothing is stored there, and what is stored in other scopes."""
    if where is None:
        return f"Nothing is stored in {access.storage!r}."
    from coatcheck.core.preview.notation import count_of

    others = _contents(_entries(access, ""))
    hint = ""
    if others:
        amount = count_of(len(others), "content")
        # Without names, a list has digests, which rm does not take.
        listed = _noted(access, others) or ("" if to_delete else ", or list all with ls --all-scopes")
        hint = f" Other scopes hold {amount}: name one with --scope{listed}.{_NAMELESS if to_delete else ''}"
    return f"Nothing is stored in {where} of {access.storage!r}.{hint}"


def _noted(access: StorageAccess, found: list[Listed]) -> str:
    """Say how to list the scopes that proxies noted; ``""`` if they noted none."""
    from coatcheck.cli.scope_notes import read_note

    if not any(read_note(access.storage, part) for part in {Key.parse(entry.key).scope for entry in found}):
        return ""
    command = shlex.join(["coatcheck", "mcp", "stats", "--json", f"--storage={getattr(access.storage, 'root', '')}"])
    return f", or list those of MCP servers with `{command}`"


def _elsewhere(location: str) -> str:
    """Say where the MCP proxy and the hook have stored something, for people who have not said where to look."""
    folders = [f"{DEFAULT_STORAGE}/{name}" for name in ("mcp", "hook")] if location == DEFAULT_STORAGE else []
    found = [f"--storage {folder}" for folder in folders if os.path.isdir(os.path.expanduser(folder))]  # noqa: PTH111, PTH112 - no error for a user without a home
    return f" The MCP proxy and the hook have folders of their own: {', '.join(found)}." if found else ""


def _require_yes() -> None:
    """Ask for a yes on standard error. Typer's own prompt writes to standard output too."""
    sys.stderr.write("Delete them? [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        complain("Nothing was deleted.")
        raise typer.Exit(NOT_AS_EXPECTED)


def _open(location: str, *, is_made: bool = False) -> StorageAccess:
    """Return the storage at a location, to look through or to clean up."""
    from coatcheck.engine.execution import StorageAccess

    return StorageAccess(storage_at(location, is_made=is_made, refresh_on_read=False))


def _entries(access: StorageAccess, prefix: str) -> list[Listed]:
    """Return the entries under a prefix, the last used first."""
    from coatcheck.engine.entries import entries
    from coatcheck.engine.execution import run

    return sorted(run(entries(access, prefix)), key=lambda entry: (-entry.modified, entry.key))


def _contents(found: Iterable[Listed]) -> list[Listed]:
    return [entry for entry in found if Key.parse(entry.key).is_content]


def _digest(part: str) -> str:
    """Return what tells a scope from others: for a tuple, the last tag, since the scopes of one tenant begin alike."""
    *before, last = scope_tags(part)
    return f"…{last}" if before else last


def _last_tool(access: StorageAccess, found: Iterable[Listed]) -> str:
    """Return the tool whose result was last saved or used; empty if that is not known."""
    from coatcheck.engine.contents import tool_name_in
    from coatcheck.engine.execution import run

    def asked() -> Effects[str]:
        newest = next(iter(_contents(found)), None)
        if newest is None:
            return ""
        stored = newest if newest.metadata else (yield access.call("load_range", newest.key, start=0, length=0))
        return one_name(tool_name_in(getattr(stored, "metadata", None) or {}) or "")

    return run(asked())


def _place(note: ScopeNote) -> str:
    """Return server and folder, shortened to fit a row; of a long folder, keep the end."""
    server, folder = one_name(note.server, longest=_NAME_COLUMNS // 2), one_line(note.folder)
    left = _NAME_COLUMNS - len(server) - 1
    return f"{server} {folder if len(folder) <= left else '…' + folder[1 - left :]}"


def _size(found: Iterable[Listed]) -> int:
    return sum(entry.size for entry in found)


def _counts(found: list[Listed]) -> dict[str, object]:
    """Return the counts for programs."""
    modified = iso_time(max(entry.modified for entry in found)) if found else None
    contents = _contents(found)
    counts = {"contents": len(contents), "content_bytes": _size(contents), "entries": len(found), "bytes": _size(found)}
    return {**counts, "modified": modified}


def _amount(found: list[Listed]) -> str:
    """Return the amount in words, for people."""
    from coatcheck.core.preview.notation import count_of

    contents = _contents(found)
    extra = _size(found) - _size(contents)
    amount = f"{count_of(len(contents), 'content')}, {_size(contents):,} bytes"
    return f"{amount}, and {extra:,} bytes {_EXTRAS}" if extra else amount


def _row(name: str, found: list[Listed]) -> str:
    label = name if len(name) <= _NAME_COLUMNS else f"{name[: _NAME_COLUMNS - 1]}…"
    used = local_time(max(entry.modified for entry in found)) if found else "-"
    contents = _contents(found)
    return f"{label:<{_NAME_COLUMNS}} {len(contents):>9,} {_size(contents):>15,}  {used}"
