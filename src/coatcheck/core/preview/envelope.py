"""Unwraps envelopes: text that is little more than other text in quotes or between tags.

Examples are ``{"type": "text", "text": "..."}``, a JSON string that holds JSON, and the ``repr`` of an object with one
long string. Only the text inside matters, whatever its kind. In quotes, line ends and quotes are escaped, and the
closing quote may be missing if a tool has cut the text. The tags are those around the output of a command, next to its
return code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

__all__ = ("Output", "output_in", "unescaped_text", "unwrapped")

_MAX_CHARACTERS = 4_000_000
_MAX_LEVELS = 4
_MIN_SHARE = 0.8
"""The least share of all characters that the text inside must have."""

_MIN_CHARACTERS = 200
_MIN_ESCAPES = 3
_SEARCHED = 4_096
"""The text inside must begin within this many characters."""

_OPENING = re.compile(r"(?<![^\s:=(\[{,])[\"']")
_MAX_ESCAPES = 100_000
"""Escapes in the text inside that need a regex match each. With more, the text is not treated as an envelope."""

_KNOWN = re.compile(
    r"[\s\[\](){}:,='\"]|\b(?:type|text|content|TextContent|_?meta|None|null|annotations|isError|is_?error|False|false"
    r"|structuredContent|structured_content)\b"
)
"""The parts of an envelope that carry no information."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_BACKSLASH = "\x00"
"""Stands in for an escaped backslash while other escapes are resolved. Hardly any tool returns this character."""

_HIDDEN = "\x00\x00"
"""Stands in for an escaped quote, backslash or line end during the search for the closing quote."""

_COMMON = {"\\n": "\n", '\\"': '"', "\\'": "'", "\\t": "\t", "\\r": "\r"}

_ELEMENTS = r"(?:\s*<(?:[a-z_]+)>[^<]{0,300}</[a-z_]+>){0,4}"
_OUTPUT_BEGINS = re.compile(rf"(?P<around>{_ELEMENTS})\s*<(?P<name>output|stdout)>(?:\r?\n)?")
_OUTPUT_ENDS = re.compile(rf"(?:\r?\n)?</(?:output|stdout)>(?P<around>{_ELEMENTS})\s*\Z")
_RETURN_CODE = re.compile(r"<(?:return|exit)_?(?:code|status)>")
_MAX_AROUND = 1_500
"""The most characters before the output, and after it."""


class Output(NamedTuple):
    """What a shell tool returns: the output of a command between tags, and the return code before or after it."""

    start: int
    """Where the output begins, in characters."""

    end: int
    around: str
    """Everything else, such as ``<returncode>0</returncode>``."""


def output_in(text: str) -> Output | None:
    """Return where the output of a command is, or None if ``text`` is not such output with a return code."""
    begins = _OUTPUT_BEGINS.match(text, 0, _MAX_AROUND)
    if begins is None:
        return None
    closing = text.rfind(f"</{begins['name']}>", max(begins.end(), len(text) - _MAX_AROUND))
    ends = _OUTPUT_ENDS.search(text, max(begins.end(), closing - 2)) if closing >= 0 else None
    around = " ".join(f"{begins['around']} {ends['around'] if ends else ''}".split())
    if not _RETURN_CODE.search(around):
        return None
    return Output(begins.end(), ends.start() if ends else len(text), around)


def unwrapped(text: str) -> tuple[str, str] | None:
    """Return the text inside and what else the envelope says, or None if ``text`` is not an envelope."""
    inside, rest = text, ""
    for _ in range(_MAX_LEVELS):
        found = _inside(inside)
        if found is None:
            break
        start, end = found
        around = f"{inside[:start]}…{inside[end:]}"
        rest = rest or (around if _KNOWN.sub("", around) != "…" else "")
        inside = _read(inside[start:end], inside[start - 1])
    return None if inside is text else (inside, rest)


def _read(written: str, quote: str) -> str:
    """Return what ``unescaped_text`` does, in half of the time, if the JSON parser can read what is in the quotes.

    In single quotes, those have the escapes that double quotes have in JSON. If double quotes have one too, it is
    escaped by the one put before it, so that the string ends there, and the parser fails.
    """
    as_json = written if quote == '"' else written.replace("\\'", "'").replace('"', '\\"')
    try:
        text: str = orjson.loads(f'"{as_json}"')
    except ValueError:
        return unescaped_text(written)
    return unescaped_text(written) if "\b" in text or "\f" in text else text  # only JSON has escapes for these


def unescaped_text(written: str) -> str:
    """Return ``written`` with the escapes of Python and JSON resolved. A surrogate pair becomes one character."""
    if _BACKSLASH in written:
        text = _ESCAPE.sub(_character, written)
    else:  # most escapes are these few, and ``str.replace`` takes a tenth of the time of regex matches
        text = written.replace("\\\\", _BACKSLASH)
        for escaped, character in _COMMON.items():
            text = text.replace(escaped, character)
        if "\\" in text:
            parts = text.split(_BACKSLASH)
            text = "\\".join(_ESCAPE.sub(_character, part) if "\\" in part else part for part in parts)
        else:
            text = text.replace(_BACKSLASH, "\\")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _inside(text: str) -> tuple[int, int] | None:
    """Return the start and end of the quoted text that makes up most of ``text``, or None."""
    if not _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS:
        return None
    # The middle of an envelope is always part of the text inside.
    middle = text[int(len(text) * (1 - _MIN_SHARE)) : int(len(text) * _MIN_SHARE)]
    if _is_bare("\n", middle) or (_is_bare("'", middle) and _is_bare('"', middle)):
        return None
    at, searched = 0, min(_SEARCHED, int(len(text) * (1 - _MIN_SHARE)) + 1)
    hidden: dict[str, str] = {}
    while (opening := _OPENING.search(text, at, searched)) is not None:
        end = _end_of_quoted(text, opening.end(), opening[0], hidden)
        at = end + 1
        if at - opening.end() >= _MIN_SHARE * len(text):
            escapes = text.count("\\", opening.end(), end)
            is_text = escapes >= _MIN_ESCAPES or text[opening.end()] in "[{<"
            takes_long = escapes > _MAX_ESCAPES and _rare_escapes(text[opening.end() : end]) > _MAX_ESCAPES
            return (opening.end(), end) if is_text and not takes_long else None
    return None


def _rare_escapes(written: str) -> int:
    """Return how many escapes ``str.replace`` does not resolve."""
    left = written.replace("\\\\", "")
    return left.count("\\") - sum(map(left.count, _COMMON))


def _is_bare(sign: str, part: str) -> bool:
    """Return whether ``part`` has an unescaped ``sign`` after its first character."""
    return sign in part and part.count(sign, 1) > part.count(f"\\{sign}")


def _end_of_quoted(text: str, start: int, quote: str, hidden: dict[str, str]) -> int:
    """Return the end of the quoted text that begins at ``start``: its closing quote, or where the text breaks off.

    ``hidden`` caches the text with its escapes replaced, by quote: a thousand quotes may be tried.
    """
    end = text.find(quote, start)
    if end >= start and text[end - 1] != "\\" and text.find("\n", start, end) < 0:
        return end
    if quote not in hidden:
        # Each escape is replaced by as many other characters, so offsets stay right. Regex matches take three times as
        # long.
        rest = text.replace("\\\\", _HIDDEN).replace(f"\\{quote}", _HIDDEN).replace("\\\n", _HIDDEN)
        hidden[quote] = rest
    rest = hidden[quote]
    end = rest.find(quote, start)
    end = len(rest) - rest.endswith("\\") if end < 0 else end
    line_end = rest.find("\n", start, end)
    return end if line_end < 0 else line_end


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else found[0]  # noqa: PLR2004 - the last code point
    return _CONTROL.get(found[4], found[4] if found[4] in "\\/'\"" else found[0])
