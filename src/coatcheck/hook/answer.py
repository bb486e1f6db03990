"""Answers one hook: the client's event comes on stdin, the answer goes to stdout. It exits with 0, whatever happens.

Without an answer the client shows the result as it is. This happens to a result that is small, that the client has
written to a file itself, or that is not JSON. A result that could not be stored also stays, up to the hard limit, and
so does any result after an internal error.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coatcheck.core.forks import loading
from coatcheck.hook.numbers import marked, read, unmarked
from coatcheck.hook.options import BYTES_PER_TOKEN, read_options
from coatcheck.hook.shapes import (
    MIN_BYTES,
    as_text,
    byte_size,
    heavy_values,
    large_texts,
    replaced,
    stays,
    without_copy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coatcheck.hook.options import Options
    from coatcheck.hook.shapes import Path

__all__ = ("answer_with", "main", "respond", "texts_to_offload")

_EVENT = "PostToolUse"
_STARTED = "SessionStart"
"""The event of a session that begins, or continues with a summary."""

_STDOUT, _STDERR = 1, 2


def main(words: list[str], *, of_file: Callable[[Options, str], Options] | None = None) -> None:
    """Answer the hook on stdin, and end the process with exit code 0.

    ``of_file`` returns the options for a tool if a settings file is named; it is not called for a small result.

    The process ends without Python's own shutdown: there is nothing to clean up, and a closed pipe must not change the
    exit code, which a client may take for a refusal.
    """
    gc.disable()  # there may be a million JSON values, none of which is garbage before the end
    try:
        options, wrong = read_options(words)
        for each in wrong:
            _say(each)
        answer = respond(sys.stdin.buffer.read(), options, of_file=of_file)
        if answer is not None:
            _write(_STDOUT, answer)
    except BaseException as error:  # noqa: BLE001 - a client takes any other exit for a failure of its call
        _say(f"{type(error).__name__}: {error}; the result stays as it is")
    os._exit(0)


def respond(raw: bytes, options: Options, *, of_file: Callable[[Options, str], Options] | None = None) -> bytes | None:
    """Return the JSON that answers a client's event, or None if the result stays as it is."""
    if len(raw) <= _certain_limit(options) and _STARTED.encode() not in raw:  # then the result is small too
        return None
    try:
        event = _read(raw)
    except ValueError as error:
        _say(f"this is not the JSON of a hook, so the result stays as it is: {error}")
        return None
    match event:
        case {"hook_event_name": name} if name == _EVENT:
            return _after_tool(event, raw, options, of_file=of_file)
        case {"hook_event_name": name, "source": "compact", "session_id": str(session)} if name == _STARTED and session:
            return _after_compaction(session, _with_file(options, "", of_file))
        case _:
            return None


def _after_compaction(session: str, options: Options) -> bytes | None:
    """Return the JSON that tells the model what its session stored, which a summary may have lost."""
    with loading:
        from coatcheck.hook.compaction import references_line  # noqa: PLC0415 - not for a result

    line = references_line(session, options=options)
    said = {"hookEventName": _STARTED, "additionalContext": line}
    return json.dumps({"hookSpecificOutput": said}).encode() if line else None


def _after_tool(
    event: Mapping[str, Any], raw: bytes, options: Options, *, of_file: Callable[[Options, str], Options] | None
) -> bytes | None:
    tool, session = event.get("tool_name"), event.get("session_id")
    if not (isinstance(tool, str) and isinstance(session, str) and session):
        _say("tool_name or session_id is missing, so nothing can be stored")
        tool, session = tool if isinstance(tool, str) else "the tool", ""  # the hard limit still holds
    options = _with_file(options, tool, of_file)
    try:
        return _answer(event, tool, session, options=options)
    except Exception as error:  # noqa: BLE001 - an internal error; the hard limit still holds
        _say(f"{type(error).__name__}: {error}")
        return _last_resort(raw, tool, session, options=options)


def _answer(event: Mapping[str, Any], tool: str, session: str, *, options: Options) -> bytes | None:
    response = without_copy(event.get("tool_response"))
    limits = {"limit": options.limit, "hard_limit": options.hard_limit}
    texts = texts_to_offload(tool, event.get("tool_input"), response, **limits)
    return _with_replacements(response, texts, tool, session, options=options)


def _last_resort(raw: bytes, tool: str, session: str, *, options: Options) -> bytes | None:
    """Return an answer that replaces the whole response as one string; None if it is within the hard limit.

    The response is parsed again, since Python reads JSON a few levels deeper than it writes.
    """
    with loading:
        from coatcheck.hook.odd_json import read_odd  # noqa: PLC0415 - after an error only

    response = read_odd(raw).get("tool_response")
    whole: dict[Path, str] = {(): as_text(response)}
    if stays(tool, response) or _size(whole) <= options.hard_limit:
        return None
    return _with_replacements(response, whole, tool, session, options=options)


def _with_replacements(
    response: object, texts: Mapping[Path, str], tool: str, session: str, *, options: Options
) -> bytes | None:
    """Return the answer as JSON, with these strings replaced; None if all of them stay."""
    new = _replacements(texts, tool, session, options=options) if texts else {}
    return unmarked(json.dumps(answer_with(replaced(response, new)), default=marked).encode()) if new else None


def _certain_limit(options: Options) -> int:
    """Return how many bytes a result of any tool may have and certainly stay, without reading the whole file."""
    if not options.config or "max_result_tokens" in options.given:
        return options.limit
    with loading:
        from coatcheck.hook.file import least_tokens  # noqa: PLC0415 - only with a file

    with suppress(Exception):  # errors in the file are reported when all of it is read
        tokens = least_tokens(options.config, default=options.max_result_tokens)
        # A larger threshold is wrong unless the file raises the hard limit too, which only the whole file tells.
        return max(MIN_BYTES, BYTES_PER_TOKEN * min(tokens, options.max_inline_tokens))
    return MIN_BYTES


def _read(raw: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Parse JSON.

    Raises:
        ValueError: it is not JSON.

    """
    try:
        return read(raw)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except (ValueError, RecursionError):  # a long number, or a deep list
        with loading:
            from coatcheck.hook.odd_json import read_odd  # noqa: PLC0415 - few results need it

        return read_odd(raw)


def _with_file(options: Options, tool: str, of_file: Callable[[Options, str], Options] | None) -> Options:
    """Return the options for a tool; only those of the command line if the file cannot be read."""
    if not options.config or of_file is None:
        return options
    try:
        return of_file(options, tool)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the limits must hold
        _say(f"{error}; the options of the command line hold without it")
        return options


def answer_with(response: object) -> dict[str, Any]:
    """Return the answer that replaces the tool's own response."""
    return {"hookSpecificOutput": {"hookEventName": _EVENT, "updatedToolOutput": response}}


def texts_to_offload(
    tool: str, tool_input: object, response: object, *, limit: int, hard_limit: int
) -> dict[Path, str]:
    """Return the strings to offload, by path; none if the response is itself a read-back.

    Args:
        tool: the name of the tool.
        tool_input: its arguments.
        response: what it returned.
        limit: bytes; if a response has more, its strings leave, the largest first.
        hard_limit: bytes; if a response has more even without these strings, other values leave too, as their JSON.

    """
    if stays(tool, response):
        return {}
    texts = heavy_values(response, large_texts(response, limit), hard_limit)
    if not texts:
        return {}
    # A read-back never exceeds the hard limit. Anything larger comes from a server's tool with the same name as ours,
    # or from another command in the same pipe.
    return {} if _size(texts) <= hard_limit and _reads_back(tool, tool_input) else texts


def _reads_back(tool: str, tool_input: object) -> bool:
    """Return whether a result is a read-back. The result of a shell command that does more is not."""
    with loading:
        from coatcheck.core.notice import RETRIEVAL_TOOL  # noqa: PLC0415 - not for a small result
        from coatcheck.hook.command import is_get  # noqa: PLC0415

    command = tool_input.get("command") if isinstance(tool_input, dict) else None
    return tool.endswith(RETRIEVAL_TOOL) or (isinstance(command, str) and is_get(command))


def _replacements(texts: Mapping[Path, str], tool: str, session: str, *, options: Options) -> dict[Path, str]:
    """Return the replacement of each string, except for those that stay."""
    if not options.has_folder:
        _say(f"storage is {options.storage!r}, but the hook stores only in a folder: it uses {options.folder}")
    if not options.has_home:
        _say("the hook's folder is in an unknown home directory: set HOME, or name another folder with --storage")
    if not (session and _can_read_back(options)) and _size(texts) <= options.hard_limit:
        return {}
    try:
        with loading:
            from coatcheck.hook.storing import make_offloader, offload  # noqa: PLC0415

        # If they cannot be stored, all of them together must stay within the hard limit.
        each = len(texts) if _size(texts) > options.hard_limit else 1
        options = replace(options, max_inline_tokens=options.max_inline_tokens // each)
        offloader = make_offloader(options)
        found = {
            path: offload(text, offloader, tool=tool, session=session, options=options) for path, text in texts.items()
        }
    except Exception as error:  # noqa: BLE001 - an internal error; the hard limit still holds
        with loading:
            from coatcheck.core.notice import ALL_LOST  # noqa: PLC0415

        _say(f"{type(error).__name__}: {error}")
        return dict.fromkeys(texts, ALL_LOST) if _size(texts) > options.hard_limit else {}
    new = {path: text for path, text in found.items() if text is not None}
    for path, text in new.items():
        _say(f"{tool}: {len(texts[path]):,} characters became {len(text):,}")
    if offloader.stats().offloaded:
        with loading:
            from coatcheck.hook.command import list_command  # noqa: PLC0415 - loaded by now

        _say(f"to list what this session stored: {list_command(options.folder, session)}")
    return new


def _can_read_back(options: Options) -> bool:
    """Return whether the reader that the placeholder names is available; if not, say what to install."""
    with loading:
        from importlib.util import find_spec  # noqa: PLC0415 - not for a small result

        from coatcheck.core.errors import install_command  # noqa: PLC0415

    found = bool(options.retrieval_tool) or find_spec("typer") is not None
    if not found:
        _say(f"a model reads back with `coatcheck get`, which needs its extra: {install_command('coatcheck[cli]')}")
    return found


def _size(texts: Mapping[Path, str]) -> int:
    return sum(map(byte_size, texts.values()))


def _say(message: str) -> None:
    """Write a message for whoever debugs the hook; a client shows it to nobody else."""
    with suppress(OSError):
        _write(_STDERR, f"coatcheck hook: {message}\n".encode("utf-8", "backslashreplace"))


def _write(stream: int, data: bytes) -> None:
    with suppress(OSError, AttributeError):  # no pipe, or Windows, where Python 3.11 lacks it
        os.set_blocking(stream, True)  # otherwise a client that reads slowly gets half an answer
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]
