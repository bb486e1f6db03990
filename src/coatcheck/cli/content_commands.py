"""``coatcheck put``, ``get``, ``cat`` and ``show``: store one content and read it back.

The library produces everything shown of a content, so people see what a model would see. These commands add what people
and agents at a shell need: options in place of the retrieval tool's arguments, and commands in place of its calls.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coatcheck.cli.failure import NOT_AS_EXPECTED, CannotRun, reported
from coatcheck.cli.location import DEFAULT_STORAGE, STORAGE_VARIABLE, storage_at
from coatcheck.cli.options import SCOPE_VARIABLE, AsJson, ReferenceArgument, ScopeOption, StorageOption, scope_of
from coatcheck.cli.printing import iso_time, local_time, show, show_bytes, show_json
from coatcheck.core.arguments import OPTIONS, PROPOSED, RANGE_FORMS
from coatcheck.core.blocks import MediaBlock, Offloaded, TextBlock, is_text
from coatcheck.core.errors import InvalidRequest, ReferenceExpired, ReferenceNotFound
from coatcheck.core.notice import FOR_TEXT
from coatcheck.core.policy import Always
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS, MAX_RESULT_TOKENS
from coatcheck.core.tokens import TiktokenCounter
from coatcheck.hook.command import for_shells, program
from coatcheck.scopes import DEFAULT_SCOPE, require_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coatcheck.core.blocks import Block, Outcome
    from coatcheck.core.references import Scope
    from coatcheck.engine.events import Event
    from coatcheck.storage.protocol import Storage

__all__ = ("cat", "get", "put", "show_content")

_DEFAULT_TOKENS = MAX_RESULT_TOKENS
"""The default limit of one answer: as much as a model gets."""

_FLAGS = {name: argument.option for name, argument in OPTIONS.items() if argument.option is not None}
"""The option of ``get`` for each argument of the retrieval tool."""

_OPTIONS = {"line_range.start": "the first line of --lines", **_FLAGS}
"""What messages call each argument here. A name that begins with another name comes before it."""

_ARGUMENT = re.compile(rf"""'[^']*'|"[^"]*"|(?<![\w-])(?:{"|".join(map(re.escape, _OPTIONS))})(?!\w)""")
"""Matches one of those names in a message, or a quoted part, which stays as it is."""

_MIME_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;.*)?", re.ASCII)


@reported
def put(
    file: Annotated[str | None, typer.Argument(hidden=True)] = None,
    *,
    content_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="MIME",
            help="What the input is, such as image/png or text/plain; else text if it is UTF-8 without NUL.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What the reference begins with.")] = "stdin",
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = None,
    as_json: AsJson = False,
) -> None:
    """Store standard input; print a preview and how to read on.

    Small input is stored too, and shown whole. Text is stored as text/plain.
    """
    if file is not None:
        msg = f"put reads standard input, not a named file: coatcheck put < {shlex.quote(file)}"
        raise CannotRun(msg)
    if content_type is not None and not _MIME_TYPE.fullmatch(content_type):
        msg = f"--type must be a MIME type such as image/png, not {content_type!r}"
        raise CannotRun(msg)
    kept, chosen = storage_at(storage, may_be_new=True), scope_of(scope)
    data = _standard_input()
    block, not_text = _block(data, content_type)
    outcome = _stored(block, kept, name=name, scope=chosen)
    (reference,) = outcome.references
    shown, is_whole = _shown(block, outcome)
    if as_json:
        facts = {"reference": reference.id, "content_type": reference.content_type, "bytes": reference.size}
        show_json({**facts, "whole": is_whole, "shown": shown})
        return
    whole = _command("cat", reference.id, {}, storage=storage, scope=chosen)
    show(f"Stored as {reference.id} ({reference.content_type}, {reference.size:,} bytes).")
    if is_whole:
        show(f"All of it follows. This prints it again: {whole}")
    elif is_text(reference.content_type):
        way, selected = ("line_range", "1:100") if b"\n" in data[:-1] else ("offset", 0)
        first = _command("get", reference.id, {way: selected}, storage=storage, scope=chosen)
        show("Only a preview follows. Read on with one of these:")
        others = ", ".join(form for other, form in PROPOSED.items() if other not in {"line_range", way})
        show(f"  {first}   or {others} in place of {_FLAGS[way]}")
        show(f"  {whole}   all of it")
    else:
        show(f"This is not text, so there is no preview. Get it with: {whole} > FILE")
        if not_text:
            show(f"Its {not_text}. If this is text all the same, put it again with --type text/plain.")
    if shown:
        show(f"\n{shown}")


def _option(name: str, shown: str, *, alias: str | None = None) -> Any:  # noqa: ANN401 - as typer has it
    """Return the option of ``get`` for an argument of the retrieval tool, with ``shown`` as its help."""
    names = (_FLAGS[name],) if alias is None else (_FLAGS[name], alias)
    return typer.Option(*names, metavar=OPTIONS[name].metavar, help=shown)


@reported
def get(
    reference: ReferenceArgument,
    *,
    pattern: Annotated[str | None, _option("pattern", "Lines that match, with their numbers (RE2).")] = None,
    context_lines: Annotated[int | None, _option("context_lines", "Lines around each match.")] = None,
    line_range: Annotated[
        str | None, _option("line_range", "These lines, or matches within them.", alias="--line-range")
    ] = None,
    query: Annotated[str | None, _option("query", "Fields of JSON or JSON Lines.")] = None,
    offset: Annotated[int | None, _option("offset", "Characters to skip; negative from the end.")] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", min=256, help="The longest answer, in tokens.")
    ] = _DEFAULT_TOKENS,
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = None,
    as_json: AsJson = False,
) -> None:
    """Read back matches, lines, fields or characters, as a model does."""
    from coatcheck.offloader import Offloader

    if not reference.strip():  # the core answers a model with a list, which a script would take for the content
        msg = "the reference is empty: copy one from a placeholder, or from the list that coatcheck ls prints"
        raise CannotRun(msg)
    if context_lines is not None and not pattern:  # the core lets a model give it anywhere
        msg = f"{_FLAGS['context_lines']} is for {_FLAGS['pattern']}: give a pattern, or leave it out"
        raise CannotRun(msg)
    place, chosen = storage_at(storage), scope_of(scope)
    whole = f"get it with {_command('cat', reference, {}, storage=storage, scope=chosen)} > FILE"
    with _in_words_of_a_shell(place, chosen, whole=whole):
        found = Offloader(place, max_retrieval_tokens=max_tokens).retrieve(
            reference,
            scope=chosen,
            pattern=pattern,
            line_range=line_range,
            context_lines=context_lines,
            query=query,
            offset=offset,
        )
    text = found.text
    if found.next_call is not None:
        selectors = {**found.next_call, **({} if max_tokens == _DEFAULT_TOKENS else {"max_tokens": max_tokens})}
        command = _command("get", reference, selectors, storage=storage, scope=chosen)
        above, line_end, _ = text.rpartition("\n")  # the last line is the call of the model's tool
        text = f"{above}{line_end}[More: {command}]"
    elif found.matches == 0 and query is None:
        text = _with_options(text)  # advice only, not content
    elif "\n" not in text:  # not content either, which has a line above it
        text = text.replace(FOR_TEXT, whole)
    if as_json:
        show_json({"text": text, "matches": found.matches, "next_call": found.next_call})
    else:
        show(text)
    if found.matches == 0:
        raise typer.Exit(NOT_AS_EXPECTED)


@reported
def cat(reference: ReferenceArgument, *, storage: StorageOption = DEFAULT_STORAGE, scope: ScopeOption = None) -> None:
    """Write the whole content to standard output, byte for byte."""
    from coatcheck.offloader import Offloader

    place, chosen = storage_at(storage), scope_of(scope)
    with _in_words_of_a_shell(place, chosen):
        content = Offloader(place).load(reference, scope=chosen)
    if not sys.stdout.isatty():
        show_bytes(content.data)
    elif is_text(content.content_type):
        show(content.data.decode("utf-8", "replace"))
    else:
        msg = f"this is {content.content_type}, not text for a terminal: write it to a file with > FILE"
        raise CannotRun(msg)


@reported
def show_content(
    reference: ReferenceArgument,
    *,
    storage: StorageOption = DEFAULT_STORAGE,
    scope: ScopeOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the type, size, time and file of a stored content."""
    from coatcheck.engine.contents import Contents
    from coatcheck.engine.entries import entries
    from coatcheck.engine.execution import StorageAccess, run

    access, chosen = StorageAccess(storage_at(storage, refresh_on_read=False)), scope_of(scope)
    with _in_words_of_a_shell(access.storage, chosen):
        found = run(Contents(access).find(reference, require_scope(chosen)))
    modified = next((each.modified for each in run(entries(access, found.key)) if each.key == found.key), None)
    facts = {
        "reference": found.reference,
        "scope": chosen,
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
def _in_words_of_a_shell(storage: object, scope: Scope, *, whole: str = FOR_TEXT) -> Iterator[None]:
    """Reword errors for the person at the shell: the library words them for a model, which has one place to look.

    ``whole`` says how to get what cannot be shown.
    """
    try:
        yield
    except ReferenceExpired as error:
        msg = f"{storage!r} does not hold {error.reference}: check --storage, or it was deleted there"
        raise ReferenceExpired(msg, reference=error.reference) from error
    except ReferenceNotFound as error:
        msg = f"scope {scope!r} has no reference {error.reference}. Check both; looked in {storage!r}"
        raise ReferenceNotFound(msg, reference=error.reference) from error
    except InvalidRequest as error:
        message = _with_options(str(error).replace(RANGE_FORMS, "10:20, 10: or 10")).replace(FOR_TEXT, whole)
        raise InvalidRequest(message) from error


def _with_options(message: str) -> str:
    """Return a message for the model, with the options of ``get`` in place of the tool's arguments."""
    return _ARGUMENT.sub(lambda found: _OPTIONS.get(found[0], found[0]), message)


def _stored(block: Block, storage: Storage, *, name: str, scope: Scope) -> Offloaded:
    """Store input as a tool result.

    Raises:
        CannotRun: nothing was stored.

    """
    from coatcheck.offloader import Offloader

    events: list[Event] = []
    offloader = Offloader(storage, preview_tokens=DEFAULT_PREVIEW_TOKENS, on_event=events.append)
    outcome = offloader.offload([block], tool_name=name, scope=scope, policy=Always())
    if not isinstance(outcome, Offloaded):
        # The first event says why. If the storage failed, another one follows about what became of the result.
        is_placeholder = events[0].reason == "exempt"
        reason = "this is itself a placeholder for stored content" if is_placeholder else events[0].reason
        msg = f"nothing was stored: {reason}"
        raise CannotRun(msg)
    return outcome


def _shown(block: Block, outcome: Outcome) -> tuple[str, bool]:
    """Return what to show of stored input, and whether that is all of it."""
    from coatcheck.offloader import Offloader
    from coatcheck.storage.memory import InMemoryStorage

    if isinstance(block, MediaBlock) and is_text(block.media_type):
        # The core makes no preview of a document with such bytes, so this previews it as text, in memory only.
        block = TextBlock(block.data.decode("utf-8", "replace"))
        offloader = Offloader(InMemoryStorage(max_bytes=sys.maxsize), preview_tokens=DEFAULT_PREVIEW_TOKENS)
        outcome = offloader.offload([block], tool_name="", scope=DEFAULT_SCOPE, policy=Always())
    if not isinstance(block, TextBlock):
        return "", False
    if not TiktokenCounter().exceeds(block.text, DEFAULT_PREVIEW_TOKENS):
        return block.text.removesuffix("\n"), True
    return outcome.text.partition("\n\n")[2], False  # after the notice, which is for models


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


def _block(data: bytes, content_type: str | None) -> tuple[Block, str]:
    """Return input as a content block and, if no type was given and it is not text, which byte shows that.

    Input declared as text is text whatever its bytes, which are stored as they are.
    """
    if content_type is not None and not is_text(content_type):
        return MediaBlock(data, content_type), ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if content_type is not None:
            return MediaBlock(data, "text/plain"), ""
        return MediaBlock(data, "application/octet-stream"), f"byte {error.start:,} is not UTF-8"
    # As in git and grep, bytes with a NUL are not text.
    if content_type is None and "\0" in text:
        return MediaBlock(data, "application/octet-stream"), f"byte {data.index(0):,} is NUL"
    return TextBlock(text), ""


def _command(name: str, reference: str, options: Mapping[str, object], *, storage: str, scope: Scope) -> str:
    """Return a shell command that reads a content."""
    given = {_OPTIONS.get(option, f"--{option.replace('_', '-')}"): value for option, value in options.items()}
    if storage != os.environ.get(STORAGE_VARIABLE, DEFAULT_STORAGE):
        given["--storage"] = for_shells(storage)
    is_module = os.path.basename(sys.argv[0]) == "__main__.py"  # noqa: PTH119 - python -m coatcheck: no script may be there
    words = [*(program() if is_module else ["coatcheck"]), name, reference]
    words += [f"{option}={value}" for option, value in given.items()]  # one word: a value may begin with a dash
    if scope != os.environ.get(SCOPE_VARIABLE, DEFAULT_SCOPE):
        words += [f"--scope={part}" for part in ((scope,) if isinstance(scope, str) else scope)]
    return shlex.join(words)
