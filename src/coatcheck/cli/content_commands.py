"""``coatcheck put``, ``get``, ``cat`` and ``show``: one content in, and out again.

What is shown is what a model sees, word for word: the library makes it. What only a shell needs, such as the command
that reads on, goes to standard error.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import CannotRun, reported
from coatcheck.cli.location import DEFAULT_STORAGE, STORAGE_VARIABLE, storage_at
from coatcheck.cli.options import SCOPE_VARIABLE, AsJson, ReferenceArgument, ScopeOption, StorageOption
from coatcheck.cli.printing import complain, iso_time, local_time, show, show_bytes, show_json
from coatcheck.errors import ReferenceNotFound
from coatcheck.scopes import DEFAULT_SCOPE, choose_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coatcheck.blocks import Block
    from coatcheck.events import Event

__all__ = ("cat", "get", "put", "show_content")

_DEFAULT_TOKENS = 2_500
"""Of one answer; as much as a model gets."""

_MIME_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;.*)?", re.ASCII)


@reported
def put(
    *,
    content_type: Annotated[
        str | None,
        typer.Option("--type", metavar="MIME", help="What the input is, such as image/png; else text if it is UTF-8."),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What the reference begins with.")] = "stdin",
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = DEFAULT_SCOPE,
    as_json: AsJson = False,
) -> None:
    """Store standard input; print its preview and reference.

    They are what a model gets in place of a big tool result. Small input is stored, too. Text is stored as text/plain.
    """
    from coatcheck.blocks import TextBlock  # noqa: PLC0415 - the library is loaded when it is used
    from coatcheck.offloader import Offloader  # noqa: PLC0415
    from coatcheck.outcomes import Offloaded  # noqa: PLC0415
    from coatcheck.policy import Always  # noqa: PLC0415

    if content_type is not None and not _MIME_TYPE.fullmatch(content_type):
        msg = f"--type must be a MIME type such as image/png, not {content_type!r}"
        raise CannotRun(msg)
    kept = storage_at(storage, may_be_new=True)
    block = _block(_standard_input(), content_type)
    events: list[Event] = []
    offloader = Offloader(kept, on_event=events.append)
    outcome = offloader.offload([block], tool_name=name, scope=scope, policy=Always())
    if not isinstance(outcome, Offloaded):
        # The first event says why; a failing storage is followed by what the result then comes to.
        is_placeholder = events[0].reason == "exempt"
        reason = "this is itself a placeholder, of what is stored already" if is_placeholder else events[0].reason
        msg = f"nothing was stored: {reason}"
        raise CannotRun(msg)
    (reference,) = outcome.references
    shown = "\n".join(block.text for block in outcome.blocks if isinstance(block, TextBlock))
    if as_json:
        facts = {"reference": reference.id, "content_type": reference.content_type, "bytes": reference.size}
        show_json({**facts, "shown": shown})
        return
    show(shown)
    complain(f"Read it with: {_get_command(reference.id, {}, storage=storage, scope=scope)}")


@reported
def get(
    reference: ReferenceArgument,
    *,
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Lines that match, with their number (RE2).")
    ] = None,
    context_lines: Annotated[int | None, typer.Option(metavar="N", help="Lines around each match.")] = None,
    line_range: Annotated[
        str | None, typer.Option("--lines", "--line-range", metavar="10:20", help="Those lines, or a match in them.")
    ] = None,
    query: Annotated[str | None, typer.Option(metavar="JMESPATH", help="Fields of JSON or JSON Lines.")] = None,
    offset: Annotated[int | None, typer.Option(metavar="N", help="Characters to skip; negative from the end.")] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", min=256, help="The longest answer, in tokens.")
    ] = _DEFAULT_TOKENS,
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = DEFAULT_SCOPE,
    as_json: AsJson = False,
) -> None:
    """Read back matches, lines, fields or characters, as a model does."""
    from coatcheck.offloader import Offloader  # noqa: PLC0415 - see put

    place = storage_at(storage)
    with _naming(place, scope):
        found = Offloader(place, max_retrieval_tokens=max_tokens).retrieve(
            reference,
            scope=scope,
            pattern=pattern,
            line_range=line_range,
            context_lines=context_lines,
            query=query,
            offset=offset,
        )
    if as_json:
        show_json({"text": found.text, "matches": found.matches, "next_call": found.next_call})
        return
    show(found.text)
    if found.next_call is not None:
        selectors = {**found.next_call, **({} if max_tokens == _DEFAULT_TOKENS else {"max_tokens": max_tokens})}
        complain(f"Read on with: {_get_command(reference, selectors, storage=storage, scope=scope)}")


@reported
def cat(
    reference: ReferenceArgument, *, storage: StorageOption = DEFAULT_STORAGE, scope: ScopeOption = DEFAULT_SCOPE
) -> None:
    """Write the whole content to standard output, byte for byte."""
    from coatcheck.offloader import Offloader  # noqa: PLC0415 - see put
    from coatcheck.reading import is_text  # noqa: PLC0415

    place = storage_at(storage)
    with _naming(place, scope):
        content = Offloader(place).load(reference, scope=scope)
    if not sys.stdout.isatty():
        show_bytes(content.data)
    elif is_text(content.content_type):
        show(content.data.decode("utf-8", "replace"))
    else:
        msg = f"this is {content.content_type}, nothing for a terminal: write it to a file with > FILE"
        raise CannotRun(msg)


@reported
def show_content(
    reference: ReferenceArgument,
    *,
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = DEFAULT_SCOPE,
    as_json: AsJson = False,
) -> None:
    """Show what is known of a content: its type, size, time and file."""
    from coatcheck.contents import Contents  # noqa: PLC0415 - see put
    from coatcheck.execution import run  # noqa: PLC0415
    from coatcheck.inventory import entries  # noqa: PLC0415
    from coatcheck.storage.access import StorageAccess  # noqa: PLC0415

    access = StorageAccess(storage_at(storage, refresh_on_read=False))
    with _naming(access.storage, scope):
        found = run(Contents(access).find(reference, choose_scope(scope, None, required=True)))
    modified = next((each.modified for each in run(entries(access, found.key)) if each.key == found.key), None)
    facts = {
        "reference": found.reference,
        "scope": scope,
        "content_type": found.source.content_type,
        "bytes": found.source.size,
        "characters": found.source.characters,
        "lines": found.source.lines,
        "modified": None if modified is None else iso_time(modified),
        "storage": repr(access.storage),
        "key": found.key,
        "path": access.path_of(found.key, content_type=found.source.content_type),
    }
    if as_json:
        show_json(facts)
        return
    if modified is not None:
        facts["modified"] = local_time(modified)
    for label, fact in facts.items():
        if fact is not None:
            show(f"{label.replace('_', ' '):<14}{f'{fact:,}' if isinstance(fact, int) else fact}")


@contextmanager
def _naming(storage: object, scope: str) -> Iterator[None]:
    """Say of what was not found where it was looked for: a model has one place to look, people have many."""
    try:
        yield
    except ReferenceNotFound as error:
        msg = f"{error} Looked in scope {scope!r} of {storage!r}."
        raise type(error)(msg, reference=error.reference) from error


def _standard_input() -> bytes:
    """Return all of standard input.

    Raises:
        CannotRun: there is nothing to read.

    """
    if sys.stdin.isatty():
        msg = "put reads what another command writes: some-command | coatcheck put, or coatcheck put < FILE"
        raise CannotRun(msg)
    data = sys.stdin.buffer.read()
    if not data:
        msg = "nothing was stored: standard input is empty"
        raise CannotRun(msg)
    return data


def _block(data: bytes, content_type: str | None) -> Block:
    """Return input as a content block: text, if it is said to be or looks like it, or else bytes with a type.

    Raises:
        CannotRun: it is said to be text and is not.

    """
    from coatcheck.blocks import MediaBlock, TextBlock  # noqa: PLC0415 - see put
    from coatcheck.reading import is_text  # noqa: PLC0415

    if content_type is not None and not is_text(content_type):
        return MediaBlock(data, content_type)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if content_type is None:
            return MediaBlock(data, "application/octet-stream")
        msg = f"standard input is not {content_type} in UTF-8: {error.reason} at byte {error.start:,}"
        raise CannotRun(msg) from None
    # As git and grep take it: what holds NUL is no text. --type text/plain overrules that.
    if content_type is None and "\0" in text:
        return MediaBlock(data, "application/octet-stream")
    return TextBlock(text)


def _get_command(reference: str, selectors: Mapping[str, object], *, storage: str, scope: str) -> str:
    """Return the command that reads this, as a shell takes it."""
    words = ["coatcheck", "get", reference]
    options = {name.replace("_", "-"): value for name, value in selectors.items()}
    if storage != os.environ.get(STORAGE_VARIABLE, DEFAULT_STORAGE):
        options["storage"] = storage
    if scope != os.environ.get(SCOPE_VARIABLE, DEFAULT_SCOPE):
        options["scope"] = scope
    for option, value in options.items():
        given = f"{value['start']}:{value['end']}" if isinstance(value, dict) else value
        words.append(f"--{option}={given}")  # in one word, since a value may begin with a dash
    return shlex.join(words)
