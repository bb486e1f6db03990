r"""What else a pattern may mean if its matches tell nothing, and why it may have found nothing.

Models copy text without escaping it (``main()``, ``items[0]``), write patterns as for grep, and search for what a
preview shows. A preview shows the values of JSON, XML and HTML, which the content may write differently (``caf\u00e9``,
``https:\/\/``, ``R&amp;D``), without tags and colour codes. It also shows ``1e-05`` where JavaScript wrote ``0.00001``.
So a pattern that finds nothing is also searched in those forms and, if it is in such a form itself, decoded.
"""

from __future__ import annotations

import html
import re
import unicodedata
from decimal import Decimal
from typing import TYPE_CHECKING

from coatcheck.core.reading import wording
from coatcheck.core.reading.pattern import Matcher, as_searched

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("other_readings", "why_not_found")

_SIGNS = re.compile(r"[\\^$*+?()\[\]{}|]")
"""Characters that may keep a regular expression from matching its own text. A dot does not."""

_ONE_SIGN = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
_GROUP = re.compile(r"\([^()]*\)")
_EMPTY_ALTERNATIVE = re.compile(r"\A\||\|(?:\||\Z)")
_WORD = r"\[(?!(?:.-.)+\])[^\]\[\\^|][^\]\[\\|]+\]"
_IN_BRACKETS = re.compile(rf"(\(\?i\))?({_WORD}(?:\|{_WORD})*)")
"""Nothing but words in brackets, such as ``[ERROR]`` or ``[ERROR]|[FATAL]``. Ranges such as ``[a-z]`` do not count."""

_AS_IN_GREP = re.compile(r"\\[|<>]")
_GREP_SIGNS = frozenset("|(){}+?")
"""Characters that grep takes literally unless a backslash precedes them; RE2 does the opposite."""

_GREP_PART = re.compile(rf"{_ONE_SIGN.pattern}|.", re.DOTALL)

_NOTATION = (
    r"(?<![\w.])(?:[0-9]+(?:\\?\.[0-9]+)?[eE](?:\\?[+-])?[0-9]{1,3}|0\\?\.000[0-9]+|[0-9]{7,}\\?\.[0-9]+)"
    r"(?!\w|[\[{(*+?]|\\[a-zA-Z])"
)
"""A number that one language writes with an exponent and another without, not followed by more of a regular
expression."""

_NUMBER = re.compile(_NOTATION)
_LONGEST_EXPONENT = 30
"""Beyond this exponent, nobody writes all the zeros."""

_PART = re.compile(
    rf"{_NOTATION}"
    r'|"[ ]*:[ ]*'
    r"|\(\?(?:P?<\w+>|[a-zA-Z-]*[:)])"
    r"|\\(?:[xpP]\{[^}]*\}|x[0-9a-fA-F]{2}|[pP].|[0-7]{2,3}|.)"
    r"|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\\\]])*\]"
    r"|\{[0-9]+(?:,[0-9]*)?\}"
    r"|.",
    re.DOTALL,
)
"""The parts of a pattern: a number, the end of a JSON name with its colon, the beginning of a group, an escape, a
character class, a counted repeat, or one character."""

_MARKUP = r"(?:<[^<>]*>|\x1b\[[0-9;]*[mK])*"
"""Tags and terminal colour codes. Previews do not show them, and they stand next to whole words."""

_NO_MARKUP_BEFORE = frozenset("*+?{|)")

_DOUBLE, _SINGLE = "\u201c\u201d\u201e", "\u2018\u2019"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
"""Typographic quotes and dashes, which no key types."""

_ESCAPED = {
    '"': rf'(?:\\*["{_DOUBLE}]|\\u0022|\\u201[cdeCDE]|&quot;|&[blr]dquo;|&#822[0-2];)',
    "'": rf"(?:['{_SINGLE}]|\\u0027|\\u201[89]|&apos;|&[lr]squo;|&#(?:0?39|821[67]);)",
    "-": rf"(?:[-{_DASHES}]|\\u201[0-5]|\\u2212|&[mn]dash;|&minus;|&#82(?:0[89]|1[0-3]);)",
    "/": r"\\*/",
    "&": r"(?:&(?:amp;)?|\\u0026)",
    "<": r"(?:<|\\u003[cC]|&lt;)",
    ">": r"(?:>|\\u003[eE]|&gt;)",
    " ": r"(?:(?:[\t\p{Zs}]|(?i:\\u(?:00a0|200[0-9a]|202f|3000))|&nbsp;|&#160;)+)",
}
"""How JSON, XML and HTML may write a character that a preview shows decoded. JSON within JSON has more backslashes.
Table columns are several spaces apart, and models write one."""

_AS_LINES = {
    "^": r'(?:^|\\+(?:n|r\B)|(?:^|[\[{:,])(?:\s|\\+[nrt])*\\*")',
    "$": r'(?:$|\\+[nr]|\\*"\B)',
    r"\b": r"(?:\b|\\+[nrt])",
    r"\s": r"(?:\s|\\+[nrt])",
}
"""How JSON may write the edges and the whitespace of the lines of a string, which a preview shows as lines. Within the
string, the ``n`` of ``\\n`` is next to the first word of a line. A string begins behind a bracket, colon or comma, and
no word follows its end. ``\\r\\n`` is one line end, not an empty line."""

_ENTITY = re.compile(r"&#?\w+;", re.ASCII)
_SIGN_OR_TEXT = re.compile(rf"{_ONE_SIGN.pattern}|(?P<text>[^\\\[]+|.)", re.DOTALL)
_BY_KEY = {'"': _DOUBLE, "'": _SINGLE, "-": _DASHES, " ": "\xa0\u202f\u3000"}
_TYPED = {ord(form): key for key, forms in _BY_KEY.items() for form in forms}
"""Maps typographic quotes, dashes and spaces to what keys type."""

_ASCII_ONLY = re.compile(r"\\[bwW]")
_CARRIAGE_RETURN = re.compile(r"\r|\\(?:r|x0[dD]|x\{0*[dD]\}|015)")
_DELIMITED = re.compile(r"/.+/[a-z]*")
_QUOTED = re.compile(r"""(["'])[^"']+\1""")
_OPERATOR = re.compile(r"\S (?:OR|AND) \S")


def other_readings(pattern: str, matcher: Matcher, *, found_any: bool, markup: bool) -> Iterator[Matcher]:
    """Yield what else a pattern may mean if ``matcher`` told nothing: it matched no line, or nearly every line.

    ``found_any`` says whether it matched a line, ``markup`` whether the content may have markup, which previews do not
    show.
    """
    if matcher.literal is None and _SIGNS.search(pattern) is not None:
        if not found_any:
            yield Matcher(pattern, literal=wording.MATCHES_NO_LINE)
        elif _matches_every_line(pattern):
            yield from _as_row(pattern, matcher, markup=markup)
        elif (words := _IN_BRACKETS.fullmatch(pattern)) is not None:
            yield Matcher(f"{words[1] or ''}{_plain(words[2], but='|')}", note=wording.MATCHES_ONE_OF)
    if not found_any:
        forms = dict.fromkeys((pattern, _as_typed(pattern)))
        yield from filter(None, (_escaped(each, is_text=matcher.literal is not None, markup=markup) for each in forms))
        yield from _as_in_grep(pattern)
        if matcher.literal is None:  # last, because it matches more than all others
            yield from filter(None, (_as_lines(each, markup=markup) for each in forms))


def _as_row(pattern: str, matcher: Matcher, *, markup: bool) -> Iterator[Matcher]:
    """Yield matchers for a copied table row: as text, with other column widths, and as the regular expression it is."""
    yield Matcher(pattern, literal=wording.MATCHES_EVERY_LINE)
    escaped = _escaped(pattern, is_text=True, markup=markup)
    if escaped is not None:
        yield escaped
    yield Matcher(matcher.pattern, note=wording.EMPTY_NEXT_TO_BAR)


def _as_in_grep(pattern: str) -> Iterator[Matcher]:
    r"""Yield matchers for a grep ``pattern`` such as ``a\|b``: first with all else as in RE2, then all as in grep."""
    if _AS_IN_GREP.search(pattern.replace(r"\\", "")) is None:
        return
    for escaped, plain in ((frozenset("|"), frozenset[str]()), (_GREP_SIGNS, _GREP_SIGNS)):
        parts = (_from_grep(part[0], escaped, plain) for part in _GREP_PART.finditer(pattern))
        regex = "".join(parts)
        try:
            if not _matches_every_line(regex):
                yield Matcher(as_searched(regex), note=wording.AS_IN_GREP)
        except ValueError:
            pass


def _from_grep(part: str, escaped: frozenset[str], plain: frozenset[str]) -> str:
    if part in {r"\<", r"\>"}:
        return r"\b"
    if part[0] == "\\" and part[1:] in escaped:
        return part[1:]
    return f"\\{part}" if part in plain else part


def _escaped(pattern: str, *, is_text: bool, markup: bool) -> Matcher | None:
    """Return a matcher for ``pattern`` as JSON, XML or HTML may write it; None if they write it the same.

    ``is_text`` says that it is plain text, not a regular expression.
    """
    plain, both = _plain(pattern), "(?i" in pattern
    regex = as_searched(pattern)
    forms = [plain] if is_text or r"\Q" in pattern else [*dict.fromkeys((regex, plain))]
    written = ["".join(_all_written(form, both_cases=both, markup=markup)) for form in forms]
    return None if written == forms else _in_another_form(pattern, "|".join(written))


class _WholeLines(Matcher):
    r"""Leaves the ``\n`` at the end of a line to the next match, which may begin with it."""

    def find(self, data: bytes, start: int, stop: int) -> tuple[int, int] | None:
        """Return the first match between ``start`` and ``stop``, without an escaped line end behind it."""
        found = super().find(data, start, stop)
        if found is None or data[found[1] - 1 : found[1]] not in {b"n", b"r"}:
            return found
        line = data[found[0] : found[1] - 1].rstrip(b"\\")
        is_escaped = len(line) < found[1] - 1 - found[0]
        return (found[0], found[0] + len(line)) if line and is_escaped else found


def _as_lines(pattern: str, *, markup: bool) -> Matcher | None:
    """Return a matcher for ``pattern`` with the edges of lines as JSON may write them; None if it has none."""
    regex = as_searched(pattern)
    parts = [part[0] for part in _PART.finditer(regex)]
    if r"\Q" in pattern or _AS_LINES.keys().isdisjoint(parts):
        return None
    written = _all_written(regex, both_cases="(?i" in pattern, markup=markup, as_lines=True)
    is_whole = "^" in parts and [part for part in parts if part != ")"][-1] == "$"
    return _in_another_form(pattern, "".join(written), kind=_WholeLines if is_whole else Matcher)


def _in_another_form(pattern: str, written: str, *, kind: type[Matcher] = Matcher) -> Matcher | None:
    note = wording.FOUND_NUMBER if _NUMBER.search(pattern) is not None else wording.FOUND_ESCAPED
    try:
        return kind(written, note=note)
    except ValueError:
        return None  # too large


def _as_typed(pattern: str) -> str:
    """Replace typographic characters and HTML escapes in ``pattern`` with what keys type, as the content may have it.

    Character classes and escapes stay as they are, as does the HTML escape of a regex metacharacter.
    """
    parts = _SIGN_OR_TEXT.finditer(pattern)
    return "".join(part[0] if part["text"] is None else _text_as_typed(part["text"]) for part in parts)


def _text_as_typed(text: str) -> str:
    def meant(entity: re.Match[str]) -> str:
        character = html.unescape(entity[0])
        return entity[0] if character == "." or _SIGNS.search(character) is not None else character

    return unicodedata.normalize("NFC", _ENTITY.sub(meant, text)).translate(_TYPED)


def _plain(text: str, *, but: str = "") -> str:
    """Return a regular expression for ``text``, in which the character ``but`` keeps its special meaning."""
    return _SIGNS.sub(lambda sign: sign[0] if sign[0] == but else f"\\{sign[0]}", text).replace(".", r"\.")


def _all_written(form: str, *, both_cases: bool, markup: bool, as_lines: bool = False) -> Iterator[str]:
    before = ""
    for found in _PART.finditer(form):
        part = found[0]
        if markup and before and part[0] not in _NO_MARKUP_BEFORE and not (part.isalnum() and before.isalnum()):
            yield _MARKUP
        yield _AS_LINES[part] if as_lines and part in _AS_LINES else _written(part, both_cases=both_cases)
        before = part


def _written(part: str, *, both_cases: bool) -> str:
    """Return a regular expression for all forms of one part of a pattern."""
    if _NUMBER.fullmatch(part) is not None:
        return _number_written(part)
    if part[0] == '"' and part != '"':
        return _ESCAPED['"'] + r"\s*:\s*"
    character = part.removeprefix("\\")
    if len(character) != 1 or (character.isascii() and character not in _ESCAPED):
        return part
    if character in _ESCAPED:
        return _ESCAPED[character]
    cases = {character, character.lower(), character.upper()} if both_cases else {character}
    return f"(?:{'|'.join(form for case in sorted(cases) for form in _forms(case))})"


def _number_written(number: str) -> str:
    """Return a regular expression for a number as it is written, with an exponent, and without."""
    value = Decimal(number.replace("\\", ""))
    power, digits = value.adjusted(), "".join(map(str, value.as_tuple().digits)).rstrip("0")
    if not digits:
        return number
    sign = "-" if power < 0 else r"\+?"
    forms = [number, f"{_decimal(digits[0], digits[1:])}[eE]{sign}0*{abs(power)}"]
    if 0 <= power <= _LONGEST_EXPONENT:
        forms.append(_decimal(digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]))
    elif -_LONGEST_EXPONENT <= power < 0:
        forms.append(_decimal("0", "0" * (-power - 1) + digits))
    return rf"\b(?:{'|'.join(forms)})\b"


def _decimal(whole: str, rest: str) -> str:
    return rf"{whole}\.{rest}0*" if rest else rf"{whole}(?:\.0+)?"


def _forms(characters: str) -> Iterator[str]:
    """Yield a character as it is, with its accents apart (as in macOS file names), and escaped as in JSON and HTML."""
    yield from dict.fromkeys((characters, unicodedata.normalize("NFD", characters)))
    units = characters.encode("utf-16-be", "surrogatepass")
    yield "(?i:" + "".join(rf"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + ")"
    yield "".join(f"&#(?:{ord(each)}|(?i:x{ord(each):x}));" for each in characters)


def _matches_every_line(pattern: str) -> bool:
    """Return whether one of the alternatives in ``pattern`` is empty, as in a copied table row: ``| a | b |``."""
    outside, groups = _ONE_SIGN.sub(".", pattern), 1
    while groups:  # the innermost ones first
        outside, groups = _GROUP.subn(".", outside)
    return _EMPTY_ALTERNATIVE.search(outside) is not None


def why_not_found(pattern: str, *, crlf: bool, colours: bool) -> Iterator[str]:
    r"""Yield what in a pattern may keep it from matching where a model expects it to.

    ``crlf`` says whether a searched line ends with ``\r\n``, ``colours`` whether one contains colour codes.
    """
    escapes = pattern.replace(r"\\", "")
    if not pattern.isascii() and _ASCII_ONLY.search(escapes):  # RE2's know ASCII letters only
        yield wording.ASCII_ONLY
    if _CARRIAGE_RETURN.search(escapes):
        yield wording.line_ends_not_searched(crlf=crlf)
    if colours:
        yield wording.COLOURS
    if _DELIMITED.fullmatch(pattern):
        yield wording.DELIMITERS
    if _QUOTED.fullmatch(pattern):
        yield wording.QUOTES
    if _OPERATOR.search(pattern):
        yield wording.OPERATORS
