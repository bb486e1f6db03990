"""Reads conversations from the paths that a user names: JSON, JSON Lines, folders of such files, and Strands sessions.

This module only finds the lists of messages, and says where there is none. What a message means is in ``formats``.
"""

from __future__ import annotations

import hashlib
import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from coatcheck.core.blocks import JsonBlock
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.replay.conversation import SYSTEM, TOOLS, Conversation, Turn, Words, blocks_of
from coatcheck.replay.formats import FORMATS, Misfit, read_messages
from coatcheck.replay.sessions import sessions_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from coatcheck.replay.conversation import Part

__all__ = ("ACCEPTED", "SUFFIXES", "read_conversations", "read_each", "without_beginnings")

ACCEPTED = (
    f"{', '.join(FORMATS)} as JSON or JSON Lines (a conversation or a message a line), sessions of Claude Code and of"
    " Codex, folders of such files, and Strands session folders"
)
"""What can be read, for error messages and help."""

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
"""The suffixes of the files that are read if a folder is named."""

_SESSION_MESSAGE = re.compile(r"message_(\d+)\.json")


def read_conversations(path: Path, left_out: list[str]) -> list[Conversation]:
    """Return the conversations that a file or a folder holds, at least one.

    Args:
        path: the file or the folder.
        left_out: gets a message for each conversation and each file of the folder that cannot be read.

    Raises:
        InvalidRequest: nothing can be read, or nothing is in a format of ``ACCEPTED``. The message says where it stops
            fitting.

    """
    try:
        if path.is_dir():
            return _of_folder(path, left_out)
        return _of_bytes(path, path.read_bytes(), left_out)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        msg = f"{path} is not text in UTF-8: see its byte {error.start:,}. Accepted: {ACCEPTED}"
    except RecursionError:
        msg = f"{path} is nested too deeply to be a transcript. Accepted: {ACCEPTED}"
    raise InvalidRequest(msg)


def read_each(readers: Iterable[Callable[[], Sequence[Conversation]]], left_out: list[str]) -> list[Conversation]:
    """Return what the readers can read. ``left_out`` gets a message for each reader that failed.

    Raises:
        InvalidRequest: all readers failed. The message is that of the first.

    """
    found: list[Conversation] = []
    failed: list[str] = []
    for read in readers:
        try:
            found += read()
        except InvalidRequest as error:  # noqa: PERF203 - reading takes far longer
            failed.append(str(error))
    if failed and not found:
        raise InvalidRequest(failed[0])
    left_out += failed
    return found


def without_beginnings(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Return the conversations that no other one continues.

    A log of requests holds a conversation once for every call of the model, each time longer, but it was paid for once.
    The last request ends before the model's answer, so an empty turn is added for it.
    """
    begun: set[bytes] = set()
    wholes: list[bytes] = []
    for conversation in conversations:
        digest = hashlib.sha256()
        for part in conversation.parts:
            begun.add(digest.digest())
            digest.update(repr(part).encode("utf-8", "surrogatepass"))
        wholes.append(digest.digest())
    last = (each for each, whole in zip(conversations, wholes, strict=True) if whole not in begun)
    return [replace(each, parts=(*each.parts, Turn(()))) if _lacks_answer(each) else each for each in last]


def _lacks_answer(conversation: Conversation) -> bool:
    return conversation.was_sent and not isinstance(conversation.parts[-1], Turn)


def _of_folder(folder: Path, left_out: list[str]) -> list[Conversation]:
    """Read every agent of every Strands session below a folder; if there is none, the transcripts in the folder."""
    files: dict[Path, list[tuple[int, Path]]] = {}
    for path in folder.rglob("message_*.json"):
        if (number := _SESSION_MESSAGE.fullmatch(path.name)) and path.parent.name == "messages":
            files.setdefault(path.parent.parent, []).append((int(number[1]), path))
    if not files:
        return _of_transcripts(folder, left_out)
    agents = (partial(_of_agent, agent, [path for _, path in sorted(files[agent])]) for agent in sorted(files))
    return read_each(agents, left_out)


def _of_agent(agent: Path, messages: Sequence[Path]) -> list[Conversation]:
    return [_conversation([*map(_session_message, messages)], agent, name=_agent_name(agent))]


def _of_transcripts(folder: Path, left_out: list[str]) -> list[Conversation]:
    transcripts = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    if not transcripts:
        msg = (
            f"{folder} holds no Strands session (agents/agent_ID/messages/message_0.json) and no file that ends in"
            f" {', '.join(sorted(SUFFIXES))}: name another one, such as one below, or files. Accepted: {ACCEPTED}"
        )
        raise InvalidRequest(msg)
    return read_each((partial(read_conversations, path, left_out) for path in transcripts), left_out)


def _agent_name(agent: Path) -> str:
    """Return ``session_ID/agent_ID`` for an agent's folder."""
    return f"{agent.resolve().parent.parent.name}/{agent.name}"


def _session_message(path: Path) -> object:
    """Return the message in a file of a session, as the model saw it."""
    try:
        recorded = json.loads(path.read_bytes())
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InvalidRequest(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not JSON: {error}"
        raise InvalidRequest(msg) from None
    recorded = recorded if isinstance(recorded, Mapping) else {}
    return recorded.get("redact_message") or recorded.get("message")


def _of_bytes(path: Path, data: bytes, left_out: list[str]) -> list[Conversation]:
    if not data.strip():
        msg = f"{path} is empty. Accepted: {ACCEPTED}"
        raise InvalidRequest(msg)
    try:
        whole = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return _of_lines(path, data.removeprefix(BOM_UTF8), left_out, whole_failed=error)
    if isinstance(whole, list) and whole and all(map(_is_conversation, whole)):
        places = {f"conversation {number}": one for number, one in enumerate(whole, 1)}
        return read_each((partial(_alone, one, path, place) for place, one in places.items()), left_out)
    return [_conversation(whole if _is_conversation(whole) else [whole], path)]


def _of_lines(
    path: Path, data: bytes, left_out: list[str], *, whole_failed: ValueError | RecursionError
) -> list[Conversation]:
    """Read a conversation from each line, leaving out lines without one; else a single one, with a message per line."""
    values: dict[str, object] = {}
    odd: dict[str, str] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                values[f"line {number:,}"] = json.loads(line.decode())
            except (ValueError, RecursionError) as error:
                odd[f"line {number:,}"] = str(error)
    not_json = [f"{path}: {place} is not JSON: {why}" for place, why in odd.items()]
    if any(map(_is_conversation, values.values())):
        left_out += not_json
        return read_each((partial(_alone, value, path, place) for place, value in values.items()), left_out)
    if sessions := sessions_in(values.values()):
        left_out += not_json
        names = [f"{path.name}, part {number}" if len(sessions) > 1 else "" for number in range(1, len(sessions) + 1)]
        return read_each((partial(_of_session, *each, path) for each in zip(sessions, names, strict=True)), left_out)
    if isinstance(whole_failed, UnicodeDecodeError | RecursionError):  # the reason why no line is a conversation
        raise whole_failed
    if list(odd) == [f"line {number:,}"] and len(values) > 1:  # the writer of JSON Lines stopped within the last line
        left_out += not_json
    elif odd:
        place, why = next(iter(odd.items()))
        reason = f"as JSON: {whole_failed}; as JSON Lines: {place}: {why}"
        msg = f"{path} is neither JSON nor JSON Lines. {reason}. Accepted: {ACCEPTED}"
        if values:  # one line is JSON, so the file is JSON Lines
            msg = f"{not_json[0]}. Accepted: {ACCEPTED}"
        raise InvalidRequest(msg)
    return [_conversation(list(values.values()), path, places=list(values))]


def _of_session(messages: list[Any], name: str, path: Path) -> list[Conversation]:
    return [_conversation(messages, path, name=name, in_pieces=True)]


def _alone(value: object, path: Path, where: str) -> list[Conversation]:
    """Return one of several conversations in a file."""
    if not _is_conversation(value):
        msg = f"{path}: {where} holds no conversation, and other lines do. Accepted: {ACCEPTED}"
        raise InvalidRequest(msg)
    return [_conversation(value, path, where=where)]


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, Mapping) and _sent(value) is not None)


def _sent(request: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages of a recorded request (in the Responses API, its input), or None if it is not a request."""
    keys = ("messages",) if {"role", "type"} & request.keys() else ("messages", "input")  # a message may have an input
    return next((each for key in keys if isinstance(each := request.get(key), list)), None)


def _conversation(
    value: Any,  # noqa: ANN401 - any JSON value
    path: Path,
    *,
    where: str = "",
    name: str = "",
    places: Sequence[str] = (),
    in_pieces: bool = False,
) -> Conversation:
    """Return the conversation in a list of messages, or in a request that holds one.

    Args:
        value: the list or the object.
        path: where it was read.
        where: which of several conversations of the file it is.
        name: what to call it; otherwise its own id, or the file and the place in it.
        places: where each message is, if its number does not tell.
        in_pieces: whether a message may be only a part of what the model wrote in one turn.

    """
    request: Mapping[str, Any] = {} if isinstance(value, list) else value
    messages, opening = value if isinstance(value, list) else _sent(value), _opening(request)
    place = f"{path}: {where}: " if where else f"{path}: "
    if not messages:
        msg = f"{place}there is no message. Accepted: {ACCEPTED}"
        raise InvalidRequest(msg)
    if link := _link(request):
        msg = f"{place}with {link}, this request holds only what is new: record the whole conversation instead"
        raise InvalidRequest(msg)
    try:
        recorded_as, parts = read_messages(messages, in_pieces=in_pieces)
    except Misfit as error:
        message = places[error.position] if places else f"message {error.position + 1:,}"
        if error.position:
            found = f"read as {error.recorded_as} it fits up to {message}, which {error}"
        else:
            found = f"these are not messages: {message} {error}"
        msg = f"{place}{found}. Accepted: {ACCEPTED}"
        raise InvalidRequest(msg) from None
    parts = (*opening, *parts)
    counted = {SYSTEM for part in parts if isinstance(part, Words) and part.is_system and part.blocks}
    if request.get("tools"):
        counted.add(TOOLS)
    own = request.get("id") or request.get("session_id")
    found = name or (str(own) if isinstance(own, str | int) else ", ".join(filter(None, (path.name, where))))
    return Conversation(
        name=found,
        source=str(path),
        recorded_as=recorded_as,
        parts=parts,
        # Coding agents record only their own additions to the prefix.
        counted=frozenset() if in_pieces else frozenset(counted),
        has_tool=RETRIEVAL_TOOL in json.dumps(request.get("tools")),
        was_sent={"model", "tools"} <= request.keys(),
    )


def _link(request: Mapping[str, Any]) -> str | None:
    """Return the field with which a Responses API request continues a conversation that only the provider has, or None.

    Without the rest, each turn would be read as a conversation of one turn.
    """
    links = () if isinstance(request.get("messages"), list) else ("previous_response_id", "conversation")
    return next((link for link in links if request.get(link)), None)


def _opening(request: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return what a recorded request sends besides its messages: a system prompt in its own field, and the tools."""
    system = Words(blocks_of(request.get("system") or request.get("instructions")), is_system=True)
    tools = Words((JsonBlock(request["tools"]),) if request.get("tools") else ())
    return tuple(words for words in (system, tools) if words.blocks)
