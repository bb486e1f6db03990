"""Names from the text that is not shown, as search terms: identifiers, paths, capitalised words and numbers."""

from __future__ import annotations

import re
import string
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from coatcheck.core.preview.work import count_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coatcheck.core.tokens import TokenCounter

__all__ = (
    "CLOSING_TAG",
    "ENOUGH",
    "ESCAPE",
    "SENTENCE_WORDS",
    "names_in",
    "next_to_names",
    "with_names",
    "without",
    "without_notation",
)

ENOUGH = 0.93
"""Share of the budget. A preview that takes this much is not made again to use the rest."""

_MIN_FOR_NAMES = 90
"""Tokens: a smaller budget has no room for names."""

_SHARE_OF_NAMES, _MAX_FOR_NAMES = 0.5, 400
"""The share of the budget for names from the rest of the text, and the most tokens. Found on one half of the
conversations of ``docs/quality.md``, and confirmed on the other."""

_LOOKED_AT = 20_000
"""Characters searched for names. No budget holds the names of more."""

ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)
"""An escape in a JSON or Python string."""

CLOSING_TAG = re.compile(r"</[^<>]*")
"""A closing tag. The opening tag has the same name."""

_LOOKED_AT_ONCE = 2_048
"""Characters searched at a time. Most budgets are full after a few thousand."""

_SHORTEST, _LONGEST = 3, 60
_LONGEST_TOKEN = 6
"""The most characters per token of names, on average. Each name takes at least one token."""

_DENSE = 0.6
"""The share of the characters that are names. In denser text, leaving out the rest saves hardly any room."""

_MIN_ROOM = 8
"""Tokens. With less room, no names are searched for."""

_SIGNS = "_./~@:+-"
"""What names may contain besides letters and digits."""

_OF_TERMS = f"{string.ascii_letters}{string.digits}{_SIGNS}"
_BESIDES_TERMS = bytes(code if chr(code) in f"{_OF_TERMS},\n" else ord(" ") for code in range(256))
_CONTINUED = bytes(range(0x80, 0xC0))
"""The continuation bytes of UTF-8."""

_FIGURE = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])", re.ASCII)
"""A number with a comma between thousands. Any other comma separates two terms."""

_THOUSANDS = re.compile(r",\d{3}", re.ASCII)
"""What every such number contains. Most text has none, so that all its commas separate terms."""

_NAMES = re.compile(
    r"(?m)^(?:([A-Za-z_./~][A-Za-z~+]*[\d_./@:-][\w./~@:+-]*\w|_+[A-Za-z]\w+|[A-Z]\w*[^\W\d_]|[a-z]{2,}[A-Z]\w*(?=:$)"
    r"|\d+(?:,\d+)*(?:\.\d+)?$).*|.*)$",
    re.ASCII,
)
"""The name at the start of each line: an identifier, a path, a private name, a capitalised word, a key such as
``minReplicas:``, or a number that is the whole line; or nothing. A key needs two letters before its capital, since one
may be the rest of an escape. There is only one way to reach the first character that words do not contain, so this
takes linear time."""

_DIGEST = re.compile(r"[0-9a-f]{32,}|(?:[0-9a-f]{2}:){7,}[0-9a-f]{2}", re.IGNORECASE)
"""A digest or a part of a key. Only the first is listed: a single one may be what is asked for, but each takes as many
tokens as ten names."""

_SHORTEST_DIGEST = 23
"""The length of eight pairs of digits with colons between them."""

_PLACE = re.compile(r"(\.[A-Za-z]\w*)(?::\d+){1,2}:?(?= |$)", re.ASCII)
"""The line, and perhaps the column, that a compiler puts after a file's extension. Only the first of a file is listed:
others would fill a gap with the same path. Without a file extension, the digits may be a port or a version, so each one
is listed."""

_FILE = itemgetter(1)
"""The file of a place. A template such as ``\\1`` would be parsed by a module that Python no longer imports while it
exits."""

_MARK, _MARKS = "[ref=", re.compile(r"\[ref=\w{1,20}\]", re.ASCII)
"""What page snapshots write after each element, to click it by. Without the element it means nothing, and a search for
the name of the element finds it."""

_LINES_OF_A_NUMBER = 4
"""If lines are numbered, the names of this many lines share the number of the first: a number for each line took a
third of the room. With 10, a few more names fit, but their lines are harder to find."""

_ROW = 3
"""A name that ends in a number is left out if the names with the previous three numbers are known: browser tools return
pages with a thousand elements ``3_12``, ``3_13``. If any is missing, it is listed: without such names, previews kept up
to one percentage point less of what was needed in ``docs/quality.md``."""

_IN_THE_REST = ("[… more, in it:", " …]")
_NUMBER = re.compile(r"[ \t]*(\d{1,9})(?=[:|\t])", re.ASCII)

_WORDS = (
    "about after again against all also although among and another any are because been before being between both"
    " but can cannot could did does doing down during each either every few first for from had has have having her"
    " here him his how however into its just last like let make may might more most much must need nor not now off"
    " one only onto other our ours out over own per please same shall she should show since some still such sure"
    " than thank thanks that the their them then there these they this those through too under unless until upon"
    " very via want was well were what when where whether which while who whom whose why will with would yes yet"
    " you your yours"
)
SENTENCE_WORDS = frozenset(_WORDS.split())
"""Words of three letters or more that any sentence may contain or begin with. A capital does not make them names."""

_BEGINS_A_SENTENCE = frozenset(map(str.capitalize, SENTENCE_WORDS))


def next_to_names(
    fit: Callable[[int], tuple[str | None, bool]],
    text: str,
    budget: int,
    counter: TokenCounter,
    *,
    may_fit: bool,
    or_alone: bool,
) -> str | None:
    """Return a preview made by ``fit``, followed by names of ``text`` that it lacks, or None.

    Args:
        fit: makes a preview of at most the given number of tokens, or None if nothing fits, and says whether it is
            whole.
        text: what is previewed.
        budget: tokens for the preview and the names together.
        counter: counts them.
        may_fit: whether everything may fit, so that this is tried first.
        or_alone: whether to return the preview without names if there is no room for both. If false, return None then:
            head and tail, with names from between, show more.

    """
    has_names = text and budget >= _MIN_FOR_NAMES
    if may_fit or not has_names:
        shown, is_whole = fit(budget)
        if is_whole or not has_names:
            return shown
    for_names = min(int(budget * _SHARE_OF_NAMES), _MAX_FOR_NAMES)
    best, most = "", -1
    among: str | None = None
    for _ in range(2):
        shown, _ = fit(budget - for_names)
        if shown is None:
            return fit(budget)[0] if or_alone else None
        named, among = _with_names(shown, text, budget, counter, among=among)
        used = counter.count(named)
        if used > most:
            best, most = named, used
        if used >= budget * ENOUGH:
            break
        for_names = used - counter.count(shown)  # the preview gets the room that few names leave
    return best


def with_names(shown: str, text: str, budget: int, counter: TokenCounter) -> str:
    """Return ``shown``, followed by names of ``text`` that it lacks if they fit; at most ``budget`` tokens in all."""
    return _with_names(shown, text, budget, counter)[0]


def _with_names(
    shown: str, text: str, budget: int, counter: TokenCounter, *, among: str | None = None
) -> tuple[str, str | None]:
    """Do what ``with_names`` does; also return all names of ``text`` if none was left out.

    ``among`` contains all names, if they are known.
    """
    opening, closing = _IN_THE_REST
    room = budget - count_parts(counter, f"{shown}\n", opening, closing) - 1
    if room < (_MIN_ROOM if among is None else 1):
        return shown, among
    if among is None:
        names, has_all = names_in(text, counter, start=0, end=len(text), shown=shown, budget=room, numbered=False)
    else:
        names, has_all = names_within(without(among, shown), room, counter)
    parts = (f"{shown}\n", opening, f" {names}", closing)
    fits = names and count_parts(counter, *parts) <= budget
    return "".join(parts) if fits else shown, names if names and has_all else None


def without_notation(text: str, notation: re.Pattern[str]) -> str:
    """Return the part of ``text`` that is searched for names, with a space for each match of ``notation``."""
    return notation.sub(" ", text[: _LOOKED_AT + _LONGEST])


def names_in(
    text: str, counter: TokenCounter, *, start: int, end: int, shown: str, budget: int, numbered: bool
) -> tuple[str, bool]:
    """Return names of ``text`` between ``start`` and ``end`` that ``shown`` lacks, in order, within ``budget`` tokens.

    Also return whether those are all. If the lines are ``numbered``, the number of a line comes before its names and
    those of the next few lines. If the text is little more than names, such as paths, return none: more lines say as
    much.
    """
    if budget <= 0:
        return "", False
    found: list[str] = []
    given, length, is_enough = -_LINES_OF_A_NUMBER, 0, False
    for number, name in _names(text, start, min(end, start + _LOOKED_AT), shown=shown, numbered=numbered):
        if number is not None and not 0 <= int(number) - given < _LINES_OF_A_NUMBER:
            found.append(number)
            given = int(number)
        found.append(name)
        length += len(name)
        if is_enough := len(found) > budget or length > budget * _LONGEST_TOKEN:
            break
    names = " ".join(found)
    if found and _are_dense(found, text, start, most=len(names) / _DENSE):
        return "", True
    kept, fit = names_within(names, budget, counter)
    has_all = fit and not is_enough
    before, _, last_shown = kept.rpartition(" ")
    # Drop the number of a line if none of its names fits.
    return before if numbered and not fit and last_shown.isdecimal() else kept, has_all


def _are_dense(found: list[str], text: str, start: int, *, most: float) -> bool:
    """Return whether fewer than ``most`` characters of ``text`` lie between ``start`` and the end of the last name."""
    if text.find(found[-1], start) + len(found[-1]) - start >= most:
        return False
    at = start
    for name in found:  # in order: the last name may also be part of a longer one far before it
        at = text.find(name, at) + len(name)
    return at - start < most


def names_within(names: str, budget: int, counter: TokenCounter) -> tuple[str, bool]:
    """Return as many of the first ``names`` as fit ``budget`` tokens, and whether those are all."""
    names = f" {names}"  # counted with the space that comes before it
    kept = counter.head(names, budget)
    if kept == names:
        return names[1:], True
    return (kept if names[len(kept)] == " " else kept.rpartition(" ")[0])[1:], False


def without(names: str, shown: str) -> str:
    """Return ``names`` without those that ``shown`` contains."""
    return " ".join(name for name in names.split() if name not in shown)


def _names(text: str, start: int, end: int, *, shown: str, numbered: bool) -> Iterator[tuple[str | None, str]]:
    """Yield each name from ``start`` to ``end`` once, with the number of its line if lines are ``numbered``.

    Each distinct term is tested once: a regex match for every name in the text takes ten times as long.
    """
    known = set(_terms_of(shown).split())
    said, has_digest = " ".join(known), False
    known.update(_PLACE.sub(_FILE, said).split())
    for line, terms in _lines(text, start, end, numbered=numbered):
        number = _NUMBER.match(line) if numbered else None
        candidates = _candidates(terms[number.end() :] if number else terms, known)
        for name in _NAMES.findall("\n".join(candidates)) if candidates else ():
            if (
                _SHORTEST <= len(name) <= _LONGEST
                and name not in known
                and name not in said
                and name not in _BEGINS_A_SENTENCE
                and "..." not in name  # as in pytest's progress
                and "___" not in name  # as in the rules around pytest's headings
                and not (numbered and name[0].isdecimal())
            ):
                is_digest = len(name) >= _SHORTEST_DIGEST and _DIGEST.fullmatch(name) is not None
                path = _PLACE.sub(_FILE, name) if ":" in name and not is_digest else name
                is_next = has_digest if is_digest else name[-1].isdecimal() and _goes_on(name, known)
                is_next |= path != name and path in known
                has_digest |= is_digest
                known.update((name, path))
                if not is_next:
                    yield number and number[1], name
        known.update(candidates)


def _goes_on(name: str, known: set[str]) -> bool:
    """Return whether the number that ends ``name`` continues a known sequence: nobody searches for ids one by one."""
    stem = name.rstrip(string.digits)
    figure = int(name[len(stem) :])
    return all(f"{stem}{figure - back}" in known for back in range(1, _ROW + 1))  # the first is hardly ever known


def _lines(text: str, start: int, end: int, *, numbered: bool) -> Iterator[tuple[str, str]]:
    """Yield each line of ``text`` and its terms; if lines are not ``numbered``, the terms of a few lines at once."""
    while start < end:
        stop = min(start + _LOOKED_AT_ONCE, end)
        if stop < end:  # so that no term is split
            stop = max(text.rfind("\n", start, stop), -1 if numbered else text.rfind(" ", start, stop)) + 1 or end
        part = text[start:stop]
        if start and text[start - 1] in _OF_TERMS:
            part = part.lstrip(_OF_TERMS)  # the end of a longer term
        if stop < len(text) and text[stop] in _OF_TERMS:
            part = part.rstrip(_OF_TERMS)
        if _MARK in part:
            part = _MARKS.sub(" ", part)
        terms = _terms_of(part)
        if numbered:
            yield from zip(part.split("\n"), terms.split("\n"), strict=True)
        else:
            yield "", terms
        start = stop


def _terms_of(text: str) -> str:
    """Return the terms of ``text``, separated by spaces, on the same lines."""
    return text.encode("utf-8", "replace").translate(_BESIDES_TERMS, _CONTINUED).decode("ascii")


def _parted(word: str) -> list[str]:
    """Return the terms in a word that contains commas."""
    figure = _FIGURE.match(word)
    return [figure[0], *word[figure.end() :].split(",")] if figure else word.split(",")


def _candidates(terms: str, known: set[str]) -> list[str]:
    """Return the distinct terms that are not ``known`` and may be names."""
    if _THOUSANDS.search(terms) is None:  # replacing one character takes a tenth of the time of replacing two
        terms = terms.replace(",", " ")
    else:
        for parting in (", ", " ,", ",\n"):  # hardly any other comma is left
            terms = terms.replace(parting, " ")
    words = dict.fromkeys(terms.split())
    if "," in terms:
        words = dict.fromkeys(chain.from_iterable(_parted(word) if "," in word else (word,) for word in words))
    return [term for term in words if term not in known and not (term.islower() and term.isalpha())]
