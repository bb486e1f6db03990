r"""The search engine: RE2 in one small typed class, and how to treat patterns that it refuses.

A pattern comes from a model, so it must run in linear time. RE2 does, at the cost of look-around and back-references.
Those are refused by name, because a literal search for them would mislead. Anything else that is not a regular
expression (``c++``, ``C:\Users``, ``items[``) is searched as plain text. ``meanings`` has what else a pattern may mean
if it finds nothing useful. No other module imports ``re2``, which has no type stubs.
"""

from __future__ import annotations

import re
from typing import Any

import re2

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import wording

__all__ = ("Matcher", "as_searched", "compile_pattern")

MAX_REPEAT = 1_000
"""RE2's own limit for counted repeats; nested ones are multiplied."""

_PREFIX = "(?m)"  # "^" and "$" match at line boundaries
_LONGEST_REASON = 60

_REFUSED = (
    (r"\(\?(?:=|!)", "a look-ahead", "search for the wanted text alone and judge the matches by their context lines"),
    (r"\(\?<(?:=|!)", "a look-behind", "search for the wanted text alone and judge the matches by their context lines"),
    (r"\\(?:[1-9]|k)|\(\?P=", "a back-reference", "write the repeated text out, or search for a part of it"),
    (r"\(\?>", "an atomic group", "use a plain group (...): matching takes linear time anyway"),
    (r"\(\?\(", "a conditional", "use an alternation such as a|b, or two searches"),
    (r"\(\?(?:R|P?>|&|[0-9])", "a recursion", "write the nested part out to the depth that is needed"),
)
"""Features that other engines have and RE2 lacks: how each looks in a pattern, its name, what to do instead."""

_OPERATORS = ("invalid perl operator", "invalid escape sequence")
_REWRITTEN = {r"\Z": r"\z", r"\C": ".", "\b": r"\b"}
r"""``\Z`` is Python's name for ``\z``. ``\C`` is one byte in RE2: it would cross line ends and split characters. A
backspace arrives if a model wrote ``\b`` in its JSON where ``\\b`` was needed."""

_ESCAPE = re.compile(r"\\u(?P<code>[0-9a-fA-F]{4})|\\.|\x08", re.DOTALL)
_ANY_BEFORE = re.compile(r"(?:\^?\.\*|\.\{0,[0-9]+\})\??(?=[^?+*{|)$])")
_ANY_AFTER = re.compile(r"(?<![\\|(])(?:\.\*\??\$?|\.\{0,[0-9]+\}\??)\Z")


class Matcher:
    """A compiled pattern that finds its matches in bytes, one at a time. No match contains a line end."""

    def __init__(self, pattern: str, *, literal: str | None = None, note: str | None = None) -> None:
        """Compile ``pattern``, as plain text if ``literal`` tells the model why. ``note`` tells it anything else.

        Raises:
            ValueError: RE2 refuses the pattern. The message is RE2's.

        """
        self.pattern = pattern
        self.literal = literal
        self.note: str | None = literal or note
        options = re2.Options()
        options.log_errors = False  # it would write to stderr
        options.never_nl = True
        options.literal = literal is not None
        self._engine = _compile((pattern if literal else _PREFIX + pattern).encode("utf-8", "surrogatepass"), options)
        self.size: int = int(self._engine.programsize)
        """Instructions in the compiled program: how much a byte can cost at worst."""

    def find(self, data: bytes, start: int, stop: int) -> tuple[int, int] | None:
        r"""Return the first match between ``start`` and ``stop``.

        RE2 also sees the bytes around them, so ``^``, ``$`` and ``\b`` do not take either position for the edge of a
        line or word.
        """
        found = self._engine.search(data, start, stop)
        return None if found is None else found.span()


def compile_pattern(pattern: str) -> Matcher:
    """Compile a pattern that a model sent.

    Raises:
        InvalidRequest: it uses a feature that RE2 lacks. The message names the construct and says what to do instead.

    """
    rewritten = _rewrite(pattern)
    try:
        matcher = Matcher(rewritten)
    except ValueError as error:
        reason = str(error)
        _refuse(reason, rewritten)
        return Matcher(pattern, literal=wording.searched_literally(reason))
    try:
        return Matcher(_without_surroundings(rewritten))
    except ValueError:
        return matcher  # ".*(?i)+" is valid, "(?i)+" is not


def as_searched(pattern: str) -> str:
    """Return ``pattern`` in the form in which ``compile_pattern`` has it searched, if that compiles."""
    return _without_surroundings(_rewrite(pattern))


def _rewrite(pattern: str) -> str:
    """Rewrite the escapes in ``pattern`` to those that RE2 knows."""

    def rewritten(escape: re.Match[str]) -> str:
        return rf"\x{{{escape['code']}}}" if escape["code"] else _REWRITTEN.get(escape[0], escape[0])

    return _ESCAPE.sub(rewritten, pattern)


def _without_surroundings(pattern: str) -> str:
    r"""Remove ``.*`` from the ends of ``pattern``: the same lines match.

    Models like to write ``.*ERROR.*``. In a line of ten megabytes, where each occurrence counts, that would be a single
    match that does not say where. ``.{0,200}`` at an end also makes the program 1,800 instructions longer for nothing.
    """
    if r"\Q" in pattern:
        return pattern
    before = _ANY_BEFORE.match(pattern)
    trimmed = pattern[before.end() :] if before is not None else pattern
    after = _ANY_AFTER.search(trimmed)
    return trimmed[: after.start()] if after is not None and after.start() > 0 else trimmed


def _compile(encoded: bytes, options: Any) -> Any:  # noqa: ANN401 - re2 has no stubs
    """Compile without re2's cache, which keeps the last 128 programs of up to 8 MB each alive for the whole process.

    ``Filter`` is the public way around it. It does not say what is wrong, so a refused pattern is compiled again by
    ``re2.compile``, which does, and which does not cache failures.
    """
    compiler = re2.Filter()
    try:
        return compiler.re(compiler.Add(encoded, options))
    except re2.error:
        pass
    try:
        return re2.compile(encoded, options)
    except re2.error as error:
        raise ValueError(_reason(error.args[0])) from None


def _reason(message: object) -> str:
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    text = text.replace(_PREFIX, "")
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "…"


def _refuse(reason: str, pattern: str) -> None:
    """Raise if RE2's ``reason`` is that it lacks a feature, rather than that the pattern is not a regex."""
    kind, _, detail = reason.partition(": ")
    if kind.startswith("pattern too large"):
        raise InvalidRequest(wording.unsupported("too many repeats", "use * or + instead of counted repeats"))
    if kind == "invalid repetition size" and _possible_repeat(detail):
        advice = "use * or + instead, or a smaller number"
        raise InvalidRequest(wording.unsupported(f"a repeat above {MAX_REPEAT:,} ({detail})", advice))
    if detail == "(?P":  # all that RE2 says about "(?P=name)" and "(?P>name)"
        detail = next(iter(re.findall(r"\(\?P[=>]", pattern)), detail)
    for form, name, advice in _REFUSED if kind in _OPERATORS else ():
        if re.match(form, detail):
            raise InvalidRequest(wording.unsupported(f"{name} ({detail})", advice))


def _possible_repeat(detail: str) -> bool:
    numbers = [int(number) for number in re.findall(r"[0-9]+", detail)]
    return numbers == sorted(numbers)
