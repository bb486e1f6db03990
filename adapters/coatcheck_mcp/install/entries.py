"""The edits that put ``coatcheck mcp`` in front of one server's entry, and those that take it away.

The file itself holds all that is needed to restore the entry byte for byte: the old command or URL becomes an argument
as it was written, and the new arguments go before the old ones. So it works on another machine too, and for whoever
shares the file. A record next to the file was rejected: it gets lost, or is wrong once somebody edits the entry.

Only text and values belong here; ``clients`` and ``commands`` know which file an entry is in.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, NoReturn

from coatcheck import InvalidRequest
from coatcheck.hook import program
from coatcheck_mcp.install.spans import comments, skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from coatcheck_mcp.install.spans import Member, Value

__all__ = ("HEADER_PREFIX", "is_wrapped", "unwrap", "wrap")

HEADER_PREFIX = "COATCHECK_HEADER_"
"""The prefix of an environment variable that holds a header's value for the proxy; the rest is the header's name, with
_ for -. The arguments name only the variable, because every program on the machine can read arguments."""

_RUN = ("-m", "coatcheck", "mcp")
_SAFE = frozenset({"-E", "-P"})
"""The interpreter's options that ``program`` puts before ``_RUN``, or once did; Python 3.10 has no ``-P``."""

_VALUED = frozenset({"--name", "--config", "--storage", "--scope", "--header"})
"""The options that ``install`` writes; each is followed by its value."""

_NOT_FOR_A_PROXY = ("oauth", "auth", "headersHelper", "requestInit", "eventSourceInit")
"""Keys with which a client logs in at a URL by itself. The proxy would have to do that in its place."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MAY_BE_SECRET = re.compile(r"[?#]|^[A-Za-z]+://[^/]*@")
"""A query, a fragment, or a login before the host."""

_HEADER = re.compile(r'"[A-Za-z0-9-]+"')
_VARIABLE = re.compile(rf'"{HEADER_PREFIX}[A-Za-z0-9_]+"')

_Edit = tuple[int, int, str]
"""Where a part of the text begins and ends, and what replaces it."""


@dataclass(frozen=True, slots=True)
class _Front:
    """The arguments of an entry that goes through coatcheck."""

    to: Literal["--", "--url"]
    args: Member
    behind: int
    """The index of the argument that is the old command or URL."""


def is_wrapped(entry: Value) -> bool:
    """Return whether an entry goes through coatcheck, no matter who wrote it."""
    return _first_option(entry) is not None


def wrap(text: str, entry: Value, options: Sequence[str]) -> str:
    """Return the text with ``coatcheck mcp`` in front of an entry.

    Raises:
        InvalidRequest: the entry is not understood; the message says why.

    """
    if entry.members is None:
        _refuse("it is not an object")
    command, url = entry.member("command"), entry.member("url")
    if (command is None) == (url is None):
        _refuse("it needs either command or url")
    words = [*program()[1:], "mcp", *options]
    return _edited(
        text, _behind_command(text, entry, command, words) if url is None else _behind_url(entry, url, words)
    )


def unwrap(text: str, entry: Value) -> str:
    """Return the text with an entry as it was before ``wrap``.

    Raises:
        InvalidRequest: ``wrap`` did not write it like that; the message says what is different.

    """
    front = _front_of(entry)
    command = entry.member("command")
    if front is None or command is None:
        _refuse("it does not go through coatcheck")
    if front.to == "--":
        return _edited(
            text, [(command.value.start, command.value.end, _behind(front).raw), _own_args(text, command, front)]
        )
    return _edited(text, [*_url_again(text, entry, command, front), *_headers_again(entry)])


def _refuse(why: str) -> NoReturn:
    msg = f"{why}; edit it by hand"
    raise InvalidRequest(msg)


def _quoted(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(_quoted, words))


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


# In front of a program.


def _behind_command(text: str, entry: Value, command: Member | None, front: list[str]) -> Iterator[_Edit]:
    kind, args = entry.member("type"), entry.member("args")
    if command is None or not command.value.string:
        _refuse("its command is not a string")
    if kind is not None and kind.value.string != "stdio":
        _refuse('it has a command, and its type is not "stdio"')
    if args is not None and args.value.strings is None:
        _refuse("its args are not an array of strings")
    yield command.value.start, command.value.end, _quoted(_interpreter())
    words = f"{_listed([*front, '--'])}, {command.value.raw}"
    if args is None:
        yield command.value.end, command.value.end, f"{_NO_ARGS}{words}]"
    else:
        at = args.value.start + 1
        comma = "," if text.startswith(("\n", "\r"), at) else ", "  # no blank at the end of a line
        yield at, at, words + (comma if args.value.items else "")


_ARGS = ', "args": ['
_NO_ARGS = ', "args": [ '
"""Written if an entry has no arguments. The blank after the bracket tells it apart from an array that was there, in
which the words directly follow the bracket."""

_TYPES_OF_ADDRESSES = {'"http"': _ARGS, '"streamable-http"': _NO_ARGS}
"""The types of a server at a URL, which mean the same. What is written for each tells which one was there, as long as
nobody reformats it."""


def _own_args(text: str, command: Member, front: _Front) -> _Edit:
    """Return the edit that removes our arguments, and their array if it is ours, but keeps the comments."""
    array, old = front.args.value, _behind(front)
    words = (array.items or ())[: front.behind + 1]
    start, kept = words[0].start, comments(*(text[word.end : after.start] for word, after in pairwise(words)))
    is_last = front.behind + 1 == len(array.items or ())
    if is_last and text[command.value.end : start] == _NO_ARGS and old.end + 1 == array.end:
        return command.value.end, array.end, kept
    comma = skip(text, old.end)
    if not text.startswith(",", comma):
        return start, old.end, kept
    if is_last or start > array.start + 1:  # somebody reformatted it
        end = skip(text, comma + 1)
        return start, end, kept + comments(text[old.end : end])
    end = comma + (2 if text.startswith(" ", comma + 1) else 1)
    return start, end, kept + comments(text[old.end : end])


# In front of a URL.


def _behind_url(entry: Value, url: Member, front: list[str]) -> Iterator[_Edit]:
    if not url.value.string or entry.member("args") is not None:
        _refuse("its url is not a string, or it has args next to it")
    if found := [key for key in _NOT_FOR_A_PROXY if entry.member(key) is not None]:
        _refuse(f"the client logs in with its {found[0]}, which a proxy cannot use")
    kind, headers = entry.member("type"), entry.member("headers")
    if kind is not None and kind.value.raw not in _TYPES_OF_ADDRESSES:
        _refuse(f"its type must be one of {', '.join(_TYPES_OF_ADDRESSES)}: the proxy reaches URLs only that way")
    if (scheme := _SCHEME.match(url.value.string)) and scheme[1].lower() not in {"http", "https"}:
        _refuse(f"its url begins with {scheme[0]}, and the proxy reaches http:// and https:// only")
    if _MAY_BE_SECRET.search(url.value.string):
        instead = "name it in a coatcheck.toml as [servers.NAME], with a ${VARIABLE} in its url"
        why = "its url has a query, a fragment or a login, which others would see among the arguments of a program"
        _refuse(f"{why}; {instead}")
    variables = {} if headers is None else _variables_for(entry, headers)
    named = [word for name, variable in variables.items() for word in ("--header", f"{name}: ${variable}")]
    words = f"{_listed([*front, *named, '--url'])}, {url.value.raw}"
    opening = _ARGS if kind is None else _TYPES_OF_ADDRESSES[kind.value.raw]
    yield url.key.start, url.key.end, '"command"'
    yield url.value.start, url.value.end, f"{_quoted(_interpreter())}{opening}{words}]"
    if kind is not None:
        yield kind.value.start, kind.value.end, '"stdio"'
    if headers is not None and variables:  # their values stay as they are, for the client to fill in
        yield headers.key.start, headers.key.end, '"env"'
        for member in headers.value.members or ():
            yield member.key.start, member.key.end, _quoted(variables[member.name])


def _variables_for(entry: Value, headers: Member) -> dict[str, str]:
    """Return the environment variable of each header."""
    members = headers.value.members
    if members is None or any(member.value.string is None for member in members):
        _refuse("its headers are not an object of strings")
    if members and entry.member("env") is not None:
        _refuse("it has both headers and env")
    if wrong := [member.name for member in members if _HEADER.fullmatch(member.key.raw) is None]:
        _refuse(f"the header {wrong[0]!r} has characters other than letters, digits and -")
    return {member.name: f"{HEADER_PREFIX}{member.name.replace('-', '_')}" for member in members}


def _url_again(text: str, entry: Value, command: Member, front: _Front) -> Iterator[_Edit]:
    kind, raw = entry.member("type"), _behind(front).raw
    yield command.key.start, command.key.end, '"url"'
    if text[command.value.end : front.args.key.start] == ", ":
        yield command.value.start, front.args.value.end, raw
    else:  # somebody reformatted it
        yield command.value.start, command.value.end, raw
        yield _without(text, entry, front.args)
    if kind is not None:
        is_other_word = text.startswith(_NO_ARGS, command.value.end)
        yield kind.value.start, kind.value.end, '"streamable-http"' if is_other_word else '"http"'


def _headers_again(entry: Value) -> Iterator[_Edit]:
    variables = entry.member("env")
    members = () if variables is None else variables.value.members or ()
    ours = [member for member in members if _VARIABLE.fullmatch(member.key.raw)]
    if variables is None or not ours:
        return
    if len(ours) < len(members):
        _refuse("its env has variables next to the headers, and an address has none")
    yield variables.key.start, variables.key.end, '"headers"'
    for member in ours:
        name = member.name.removeprefix(HEADER_PREFIX).replace("_", "-")
        yield member.key.start, member.key.end, f'"{name}"'


def _without(text: str, entry: Value, member: Member) -> _Edit:
    """Return the edit that removes a member and one of the commas around it, but keeps the comments there."""
    after = skip(text, member.value.end)
    if text.startswith(",", after):
        end = skip(text, after + 1)
        return member.key.start, end, comments(text[member.value.end : end])
    before = [other for other in entry.members or () if other.value.end < member.key.start]
    start = before[-1].value.end if before else member.key.start
    return start, member.value.end, comments(text[start : member.key.start])


# What the arguments say.


def _interpreter() -> str:
    """Return the running interpreter's path, as it was called: the target of a link may lack coatcheck."""
    if not sys.executable:
        msg = "this Python does not say which program it is, so no client could start it; use another one"
        raise InvalidRequest(msg)
    return sys.executable


def _first_option(entry: Value) -> int | None:
    """Return the index of the argument after those that run ``coatcheck mcp``; None if they run something else."""
    command, args = entry.member("command"), entry.member("args")
    words = None if args is None else args.value.strings
    if command is None or not words:
        return None
    if PurePath((command.value.string or "").replace("\\", "/")).stem == "coatcheck" and words[0] == "mcp":
        return 1
    start = next((index for index, word in enumerate(words) if word not in _SAFE), 0)
    return start + len(_RUN) if tuple(words[start : start + len(_RUN)]) == _RUN else None


def _front_of(entry: Value) -> _Front | None:
    at, args = _first_option(entry), entry.member("args")
    if at is None or args is None:
        return None
    words = args.value.strings or []
    while at + 1 < len(words):
        word = words[at]
        if word == "--":
            return _Front("--", args, at + 1)
        if word == "--url" and at + 2 == len(words):
            return _Front("--url", args, at + 1)
        if word not in _VALUED or (word == "--header" and f": ${HEADER_PREFIX}" not in words[at + 1]):
            break
        at += 2
    _refuse("its args are not those that install writes")


def _behind(front: _Front) -> Value:
    return (front.args.value.items or ())[front.behind]
