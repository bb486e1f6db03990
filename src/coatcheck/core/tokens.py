"""Token counters: how many tokens text takes, and which slice of it fits a budget.

The size of a whole result may come from a framework; slicing is always local, through a ``TokenCounter``. Nothing here
uses the network, except ``TiktokenCounter.download``, which the host calls: the ranks of ``o200k_base`` ship with this
package. Only counting, estimating and cutting belong here; ``plan`` and ``preview`` decide what follows from them.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_left
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from coatcheck.core.blocks import fits_bytes, to_valid_unicode, utf8_length
from coatcheck.core.checks import is_count
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.facts import Estimate
from coatcheck.core.vocabulary import (
    BUNDLED,
    Vocabulary,
    check_available,
    download_encoding,
    load_vocabulary,
    wrap_encoding,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    import tiktoken

__all__ = (
    "ByteCounter",
    "CountedOnce",
    "TiktokenCounter",
    "TokenCounter",
    "beginning_of",
    "ends_of",
    "for_any_text",
)

WINDOW_CHARACTERS = 16_384
"""Characters that a tokenizer gets at once: at most 64 KB of UTF-8. A million spaces at once make tiktoken's Rust code
panic, which ``except Exception`` does not catch; this size costs at most 20 ms on the worst input."""

SAMPLES, SAMPLE_CHARACTERS = 6, 256
"""The number and length of the samples of an estimate. They are spread evenly over what was not counted for the
decision. ``python -m benchmarks.quality.estimates`` measures their cost and accuracy."""

_PIECE_CHARACTERS = 2_048
_TOKENS_OF_A_CUT = 8
"""Tokens. More than a cut ever adds: it splits one word, which takes a few tokens in one piece or in two."""

_SMALL_STEPS = 8
"""A slice with too many tokens loses one character per try. After this many tries, the step doubles each time: a long
rule of dashes, or a field padded with spaces, would otherwise need hundreds of counts."""

_CHARACTERS_THAT_EXCEED = 8
"""Characters per token of the limit. Above this, it pays to count the beginning first; most text has fewer."""

_BYTES_PER_TOKEN = 4
"""English and code have about four bytes per token in every current vocabulary."""

_ADD_UP = frozenset({"cl100k_base", "o200k_base", "o200k_harmony"})
"""Encodings whose words have a space only at their beginning, and a line end only at their end. Text split there takes
as many tokens as its parts together. Exception: before a slash, a line end can be inside a word."""

_LINE_END = re.compile(r"\n(?=[^\s/]| +\S)")
_GAP = re.compile(r"(?<=\S)(?= \S)|(?<=\n)(?=[!-.0-~])")
_LAST_GAP = re.compile(r".*(?:(?<=\S)(?= \S)|(?<=\n)(?=[!-.0-~].))", re.DOTALL)
_LINE_CHARACTERS = 400
"""Characters. A longer line is counted in parts of about this length, so that most of it is known if another differs
only at its end."""

_SHORT_LINE = 120
"""Characters. Shorter lines are counted together: a separate count costs as much as 40 more characters."""

_LONGEST_WORD = 48
"""Characters that are searched for a gap between two words."""

_LONGEST_CLUSTER = 32
"""The most characters that a cut moves to keep a character with its combining marks. Real clusters are shorter; hostile
ones are cut."""

_JOINER = "\u200d"
_MODIFIERS = frozenset({_JOINER, *map(chr, range(0x1F3FB, 0x1F400))})
"""The joiner and the skin tones of emoji, which no mark category contains."""


class TokenCounter(ABC):
    """Counts tokens. A subclass must define ``count``; it may override the other methods, which call it, to be faster.

    Calls do not change a counter's state: the same text gives the same number on any thread.
    """

    bytewise: bool = False
    """Whether every token covers at least one UTF-8 byte. If so, text of at most ``limit`` bytes certainly fits."""

    @property
    def longest_token(self) -> int | None:
        """The most UTF-8 bytes that one token covers, or None if there is no bound.

        With a bound, text of more bytes than ``limit`` times this exceeds ``limit``, without counting.
        """
        return None

    @abstractmethod
    def count(self, text: str) -> int:
        """Return the number of tokens in ``text``."""

    def exceeds(self, text: str, limit: int) -> bool:
        """Return whether ``text`` has more than ``limit`` tokens, without counting further than needed."""
        if self.bytewise and fits_bytes((text,), limit):
            return False
        longest = self.longest_token
        if longest is not None and len(text) > limit * longest:
            return True
        return count_windows(text, self.count, most=limit) > limit

    def head(self, text: str, limit: int) -> str:
        """Return a prefix of ``text`` with at most ``limit`` tokens: a long one, though not always the longest.

        A character stays together with its combining marks, joiners and modifiers.
        """
        sizes = range(1, self._reach(text, limit) + 1)
        size = bisect_left(sizes, x=True, key=lambda size: self.exceeds(text[:size], limit))
        return text[: boundary_before(text, size)]

    def tail(self, text: str, limit: int) -> str:
        """Return a suffix of ``text`` with at most ``limit`` tokens; see ``head``."""
        sizes = range(1, self._reach(text, limit) + 1)
        size = bisect_left(sizes, x=True, key=lambda size: self.exceeds(text[-size:], limit))
        return text[boundary_after(text, len(text) - size) :]

    def _reach(self, text: str, limit: int) -> int:
        """Return how many characters of ``text`` a slice of ``limit`` tokens can cover at most."""
        return len(text) if self.longest_token is None else min(len(text), max(limit, 0) * self.longest_token)


class ByteCounter(TokenCounter):
    """Counts one token per four UTF-8 bytes, rounded up. It needs no vocabulary and is never far off.

    Bytes, because characters / 4 is off by 2.3 times on Chinese text, bytes / 4 by 0.8.
    """

    bytewise = True

    @property
    def longest_token(self) -> int:
        """UTF-8 bytes in a token: 4."""
        return _BYTES_PER_TOKEN

    def count(self, text: str) -> int:
        """Return the number of UTF-8 bytes in ``text`` divided by four, rounded up."""
        return -(-utf8_length(text) // _BYTES_PER_TOKEN)

    def exceeds(self, text: str, limit: int) -> bool:
        """Return whether ``text`` has more than ``limit`` tokens."""
        return len(text) > limit * _BYTES_PER_TOKEN or self.count(text) > limit


class TiktokenCounter(TokenCounter):
    """Counts with one of tiktoken's encodings, in windows, so that no input is slow or crashes the tokenizer.

    Equal to tiktoken's own count for text of up to 16,384 characters. In longer text, each window is counted by itself,
    which adds at most a token or two per cut. The vocabulary loads at the first count (0.3 s for o200k_base) and is
    shared by all counters of the process.
    """

    bytewise = True

    def __init__(self, encoding: str | tiktoken.Encoding = BUNDLED) -> None:
        """Choose the encoding: ``o200k_base``, which ships with this package, another name, or a ``tiktoken.Encoding``.

        Raises:
            InvalidRequest: it is neither an encoding nor one of the names that the message lists, or its ranks are not
                on this machine. Nothing is fetched; ``TiktokenCounter.download(name)`` does that.

        """
        if isinstance(encoding, str) or not hasattr(encoding, "token_byte_values"):
            self._name: str = check_available(encoding)
            self._vocabulary: Vocabulary | None = None  # the process holds it, so that a copy of this counter is small
        else:
            self._name, self._vocabulary = encoding.name, wrap_encoding(encoding)
        self.adds_up: bool = self._name in _ADD_UP
        """Whether text that is split between two words or lines takes as many tokens as its parts together."""

    def __repr__(self) -> str:
        return f"TiktokenCounter({self._name!r})"

    @staticmethod
    def download(name: str) -> None:
        """Fetch the ranks of encoding ``name`` from tiktoken's publisher into tiktoken's cache on disk.

        The only method that uses the network, and only the host calls it.

        Raises:
            InvalidRequest: tiktoken knows no such encoding.
            OSError: the network or the cache failed.

        """
        download_encoding(name)

    def warm_up(self) -> None:
        """Load the vocabulary now, so that no later call pays for it."""
        _ = self.longest_token

    @property
    def longest_token(self) -> int:
        """The most UTF-8 bytes that one token covers."""
        return (self._vocabulary or load_vocabulary(self._name)).longest_token

    def count(self, text: str) -> int:
        """Return the number of tokens in ``text``. Special tokens count as ordinary text."""
        if len(text) <= WINDOW_CHARACTERS:
            return len(self._encode(text))
        return count_windows(text, self.count)

    def exceeds(self, text: str, limit: int) -> bool:
        """Return whether ``text`` has more than ``limit`` tokens, without counting further than needed."""
        if fits_bytes((text,), limit):
            return False  # needs no vocabulary, which may not be loaded yet
        if len(text) > limit * self.longest_token:
            return True
        if len(text) > limit * _CHARACTERS_THAT_EXCEED:
            # The beginning of long text settles most cases. It is counted in small pieces: a whole window takes three
            # to seven times as long.
            total = 0
            for start in range(0, WINDOW_CHARACTERS, _PIECE_CHARACTERS):
                total += len(self._encode(text[start : start + _PIECE_CHARACTERS])) - _TOKENS_OF_A_CUT
                if total > limit:
                    return True
        return count_windows(text, self.count, most=limit) > limit

    def head(self, text: str, limit: int) -> str:
        """Return a prefix of ``text`` with at most ``limit`` tokens; see ``TokenCounter.head``."""
        if fits_bytes((text,), limit):
            return text
        left, cut, adds_up = max(limit, 0), 0, self.adds_up
        while cut < len(text):
            end = gap_before(text, cut + _window_for(left)) if adds_up else None
            adds_up, end = end is not None, end or cut + _window_for(left)
            tokens = self._encode(text[cut:end])
            if len(tokens) > left:
                cut += self._characters(tokens[:left])
                break
            left -= len(tokens)
            cut = end
        gap = gap_before(text, cut) if adds_up else None
        if gap is not None and gap <= WINDOW_CHARACTERS:
            return text[:gap]
        cut = boundary_before(text, min(cut, len(text)))
        # A prefix can take more tokens alone than within the text: the merge across its end is gone.
        tries = 0
        while cut and self.exceeds(text[:cut], limit):
            cut = boundary_before(text, max(0, cut - (1 << max(0, tries - _SMALL_STEPS))))
            tries += 1
        return text[:cut]

    def tail(self, text: str, limit: int) -> str:
        """Return a suffix of ``text`` with at most ``limit`` tokens; see ``TokenCounter.head``."""
        if fits_bytes((text,), limit):
            return text
        left, start, adds_up = max(limit, 0), len(text), self.adds_up
        while start:
            begin = gap_after(text, start - _window_for(left)) if adds_up else None
            adds_up, begin = begin is not None, max(0, start - _window_for(left)) if begin is None else begin
            tokens = self._encode(text[begin:start])
            if len(tokens) > left:
                start -= self._characters(tokens[len(tokens) - left :])
                break
            left -= len(tokens)
            start = begin
        gap = gap_after(text, start) if adds_up else None
        if gap is not None and len(text) - gap <= WINDOW_CHARACTERS:
            return text[gap:]
        start = boundary_after(text, start)
        tries = 0
        while start < len(text) and self.exceeds(text[start:], limit):
            start = boundary_after(text, min(len(text), start + (1 << max(0, tries - _SMALL_STEPS))))
            tries += 1
        return text[start:]

    def _characters(self, tokens: list[int]) -> int:
        # A token may begin or end inside a character, whose bytes are then left out.
        vocabulary = self._vocabulary or load_vocabulary(self._name)
        return len(vocabulary.encoding.decode_bytes(tokens).decode("utf-8", "ignore"))

    def _encode(self, window: str) -> list[int]:
        vocabulary = self._vocabulary or load_vocabulary(self._name)
        return vocabulary.encoding.encode_ordinary(window if window.isascii() else to_valid_unicode(window))


def for_any_text(counter: TokenCounter) -> TokenCounter:
    """Return a counter that accepts any text that a tool can return.

    Tokenizers refuse lone surrogates or count them in their own ways, so a host's counter gets the text that the model
    would get.
    """
    return counter if type(counter) in {ByteCounter, TiktokenCounter} else _ForAnyText(counter)


class _ForAnyText(TokenCounter):
    """Wraps a host's counter: makes text valid Unicode first, without changing its length, and checks each count.

    A negative count, or one that is not a number, would silently pass every limit.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.bytewise: bool = counter.bytewise

    @property
    def longest_token(self) -> int | None:
        return self._counter.longest_token

    def count(self, text: str) -> int:
        tokens = self._counter.count(to_valid_unicode(text))
        if not is_count(tokens):
            msg = f"{type(self._counter).__name__}.count must return a whole number of at least 0, not {tokens!r}"
            raise InvalidRequest(msg)
        return tokens

    def exceeds(self, text: str, limit: int) -> bool:
        if type(self._counter).exceeds is TokenCounter.exceeds:
            return super().exceeds(text, limit)  # through ``count`` above, so that every decision rests on a number
        return self._counter.exceeds(to_valid_unicode(text), limit)

    def head(self, text: str, limit: int) -> str:
        return text[: len(self._counter.head(to_valid_unicode(text), limit))]

    def tail(self, text: str, limit: int) -> str:
        return text[len(text) - len(self._counter.tail(to_valid_unicode(text), limit)) :]


class CountedOnce(TokenCounter):
    """Wraps a counter to count each string and line once, though a result is measured, shown and announced.

    It remembers what it counted, so it serves only one result, and is dropped with it.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.bytewise: bool = counter.bytewise
        self._known: dict[str, int] = {}
        self._adds_up = isinstance(counter, TiktokenCounter) and counter.adds_up

    @property
    def longest_token(self) -> int | None:
        """That of the wrapped counter."""
        return self._counter.longest_token

    def count(self, text: str, *, most: float = inf) -> int:
        """Return the wrapped counter's count, summed over lines and parts of long lines, of which many are known.

        Stop as soon as there are more than ``most``.
        """
        if len(text) > WINDOW_CHARACTERS:  # looking it up would cost as much as reading it
            return self.begin(text, most)[1]
        is_piece = len(text) <= _LINE_CHARACTERS and text.find("\n", 0, -1) < 0
        if is_piece or not self._adds_up or text in self._known:
            return self._once(text)
        total = 0
        for piece in _pieces(text, 0, self._known):
            total += self._once(piece)
            if total > most:
                return total
        self._known[text] = total
        return total

    def begin(self, text: str, most: float) -> tuple[int, int]:
        """Count ``text`` in large parts until over ``most`` tokens. Return the characters and tokens counted."""
        start = end = total = 0
        for edge in range(_PIECE_CHARACTERS, len(text) + _PIECE_CHARACTERS, _PIECE_CHARACTERS):
            end = min(edge, len(text))
            if end < len(text) and edge % WINDOW_CHARACTERS:  # within a window
                end = (self._adds_up and gap_before(text, edge)) or start
            if end > start:
                total += self._once(text[start:end])
                start = end
                if total > most:
                    break
        return end, total

    def count_parts(self, *parts: str) -> int:
        """Return the tokens of all parts joined: their sum if the text can be split between them."""
        text = "".join(parts)
        cuts = (at for at in accumulate(map(len, parts)) if 0 < at < len(text))
        if (
            not self._adds_up
            or len(text) > WINDOW_CHARACTERS
            or not all(_GAP.match(text, at) or _LINE_END.match(text, at - 1) for at in cuts)
        ):
            return self.count(text)
        total = self._known[text] = sum(map(self.count, parts))
        return total

    def exceeds(self, text: str, limit: int) -> bool:
        """Return whether ``text`` has more than ``limit`` tokens. What is counted is remembered."""
        if not self._adds_up:
            return self._counter.exceeds(text, limit)
        if fits_bytes((text,), limit):
            return False  # needs no vocabulary, which may not be loaded yet
        return len(text) > limit * (self._counter.longest_token or inf) or self.begin(text, limit)[1] > limit

    def estimate(self, text: str, *, exact_up_to: int) -> Estimate:
        """Estimate the tokens in ``text``: exact up to ``exact_up_to``, above that the rest extrapolated from samples.

        Counting 10 MB takes 0.4 to 0.7 s. What was counted for the decision is not counted again, and the samples take
        less than a millisecond at any size.
        """
        end = total = 0
        is_longer = len(text) > exact_up_to * (self._counter.longest_token or inf)
        if not is_longer and (self._adds_up or not self._counter.exceeds(text, exact_up_to)):
            end, total = self.begin(text, exact_up_to)
        left = len(text) - end
        # A host's counter may tell whether text exceeds a limit without counting it, so no count is known here.
        if left <= (SAMPLES * SAMPLE_CHARACTERS if self._adds_up else WINDOW_CHARACTERS):
            return Estimate(self.begin(text, inf)[1], exact=True)
        last = left - SAMPLE_CHARACTERS
        starts = (end + last * number // (SAMPLES - 1) for number in range(SAMPLES))
        sampled = sum(self._counter.count(text[start : start + SAMPLE_CHARACTERS]) for start in starts)
        total += sampled * left // (SAMPLES * SAMPLE_CHARACTERS)
        total = max(total, exact_up_to + 1)
        return Estimate(round(total, 2 - len(str(total))), exact=False)

    def _once(self, text: str) -> int:
        tokens = self._known.get(text)
        if tokens is None:
            tokens = self._known[text] = self._counter.count(text)
        return tokens

    def head(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens: whole pieces, which are remembered, and part of the next one."""
        text = text[: self._reach(text, limit) + 1]  # a cut looks at the character after it
        start, left, piece = 0, limit, ""
        for shortest in (_SHORT_LINE, 0) if self._adds_up else ():  # short lines together, then one by one
            for piece in _pieces(text, start, self._known, shortest=shortest):
                tokens = self._once(piece) if len(piece) <= _PIECE_CHARACTERS else left + 1
                if tokens > left:
                    break
                start, left = start + len(piece), left - tokens
            else:
                piece = ""
        if not 0 < start <= WINDOW_CHARACTERS:
            return self._counter.head(text, limit)
        return text[: start + len(self._counter.head(piece, left))]

    def tail(self, text: str, limit: int) -> str:
        """Return a suffix of at most ``limit`` tokens; see ``head``."""
        cut, begin, left = len(text), len(text), limit if self._adds_up else 0
        while left > 0 and begin > 0:
            least = max(0, cut - left * _CHARACTERS_THAT_EXCEED)
            found = _start_of_line(text, least, cut)
            begin = least if found is None else found
            if (found is None and begin > 0) or (tokens := self.begin(text[begin:cut], inf)[1]) > left:
                break
            cut, left = begin, left - tokens
        if not 0 < len(text) - cut <= WINDOW_CHARACTERS:
            return self._counter.tail(text, limit)
        return text[cut - len(self._counter.tail(text[begin:cut], left)) :]


def count_windows(text: str, count: Callable[[str], int], *, most: float = inf) -> int:
    """Return the tokens of ``text``, counted in windows at fixed offsets. Stop when over ``most``."""
    total = 0
    for start in range(0, len(text), WINDOW_CHARACTERS):
        total += count(text[start : start + WINDOW_CHARACTERS])
        if total > most:
            break
    return total


def beginning_of(text: str) -> str:
    """Return the part of ``text`` that ``CountedOnce.begin`` counts first."""
    return text[: gap_before(text, _PIECE_CHARACTERS) or _PIECE_CHARACTERS]


def _window_for(limit: int) -> int:
    """Return how many characters to encode at once to find ``limit`` tokens.

    Fewer than most slices have. Each window shrinks with the tokens still to find, so little is encoded past the cut.
    """
    return min(WINDOW_CHARACTERS, max(512, limit * 3))


def boundary_before(text: str, cut: int) -> int:
    """Return the last position, at most ``cut``, that does not split a character from its modifiers."""
    return next((at for at in range(cut, max(cut - _LONGEST_CLUSTER, -1), -1) if not _joined(text, at)), cut)


def boundary_after(text: str, cut: int) -> int:
    """Return the first position, at least ``cut``, that does not split a character from its modifiers."""
    return next((at for at in range(cut, min(cut + _LONGEST_CLUSTER, len(text) + 1)) if not _joined(text, at)), cut)


def gap_before(text: str, cut: int) -> int | None:
    """Return the last position up to ``cut`` where text can be split (see ``_ADD_UP``); None if none is near."""
    if cut >= len(text):
        return len(text)
    found = _LAST_GAP.match(text, max(0, cut - _LONGEST_WORD), cut + 2)
    return found.end() if found and found.end() > 0 else None


def gap_after(text: str, cut: int) -> int | None:
    """Return the first position from ``cut`` on where text can be split (see ``_ADD_UP``); None if none is near."""
    if cut <= 0:
        return 0
    found = _GAP.search(text, cut, min(len(text), cut + _LONGEST_WORD))
    return found and found.start()


def _start_of_line(text: str, start: int, end: int) -> int | None:
    """Return the start of the last line between ``start`` and ``end`` where text can be split, or None."""
    at = end - 1
    while (at := text.rfind("\n", start, at)) >= 0:
        if _LINE_END.match(text, at):
            return at + 1
    return None


def _pieces(text: str, start: int, known: Container[str], *, shortest: int = _SHORT_LINE) -> Iterator[str]:
    """Yield ``text`` from ``start`` on in lines, and long lines in parts, split as ``_ADD_UP`` allows.

    A line of fewer than ``shortest`` characters is joined with those that follow, unless it is ``known``.
    """
    stop = start
    while stop < len(text):
        found = _LINE_END.search(text, start)  # a pattern for a whole line would remember each blank line in it
        if found and found.end() - start < shortest and text[start : found.end()] not in known:
            found = _LINE_END.search(text, start + shortest)
        stop = found.end() if found else len(text)
        while stop - start > _LINE_CHARACTERS:
            near = text[start : min(stop, start + _LINE_CHARACTERS + _PIECE_CHARACTERS)]  # a line may have 100 MB
            end = gap_before(near, _LINE_CHARACTERS)
            if end is None:
                gap = _GAP.search(near, _LINE_CHARACTERS)
                end = gap.start() if gap else stop - start
            yield text[start : start + end]
            start += end
        if start < stop:
            yield text[start:stop]
            start = stop


def _joined(text: str, at: int) -> bool:
    """Return whether the character at ``at`` belongs to the one before it: a mark, a joiner, a modifier."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after.isascii():
        return before == "\r" and after == "\n"
    return before == _JOINER or after in _MODIFIERS or unicodedata.category(after) in {"Mn", "Mc", "Me"}


def ends_of(texts: Sequence[str], size: int) -> tuple[str, str]:
    """Return head and tail of ``texts`` joined with newlines: at most ``size`` UTF-8 bytes each, where ``size`` >= 1.

    It needs no tokenizer and does not join everything, so that it works where all else has failed.
    """
    head = _joined_up_to(size, texts)
    tail = _joined_up_to(size, (text[: -size - 1 : -1] for text in reversed(texts)))[::-1]
    return (
        to_valid_unicode(head).encode()[:size].decode("utf-8", "ignore"),
        to_valid_unicode(tail).encode()[-size:].decode("utf-8", "ignore"),
    )


def _joined_up_to(size: int, texts: Iterable[str]) -> str:
    """Return the first ``size`` characters of ``texts`` joined with newlines."""
    pieces: list[str] = []
    for text in texts:
        pieces.append(text[:size])
        size -= len(pieces[-1]) + 1
        if size <= 0:
            break
    return "\n".join(pieces)
