"""Python literals, such as the lists of tuples that database tools print: outlined like JSON.

Read by a small parser of its own: ``ast`` refuses ``Decimal('1.5')`` and ``datetime.date(2024, 5, 1)``, which rows are
full of, and warns about texts that only look like Python. What is no text, list or dict stays as it is written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coatcheck.core.preview.envelope import unescaped_text
from coatcheck.core.preview.notation import Verbatim
from coatcheck.core.preview.outline import fit_outline
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_python",)

MAX_PARSED_CHARACTERS = 1_000_000
"""A longer literal is shown as text."""

_UNITS_OF_A_PIECE = 30
_UNITS_OF_AN_ESCAPE = 30

_DEEPEST = 50
_PIECE = re.compile(
    r"\s*(?=\S)(?:(?P<text>[bBuU]?"
    r"(?:'[^'\\\n]*(?:\\.[^'\\\n]*){0,50000}'|\"[^\"\\\n]*(?:\\.[^\"\\\n]*){0,50000}\"))"
    r"|(?P<mark>[\[\](){},:])|(?P<word>[^\s\[\](){},:'\"]+))"
)
"""A text of more escapes is shown as it is: ``re`` takes some 130 bytes for each, and so it would for each character
without the inner repeats."""

_EDGES = {"[": "]", "(": ")", "{": "}"}
_WORD = re.compile(r"None|True|False|nan|-?inf|[-+]?[\d.][\d.eE+_-]*j?|[A-Za-z_][\w.]*(?=\()")


def preview_python(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return an outline within ``budget`` tokens, or None if the text is no literal or nothing useful fits."""
    if len(content.text) > MAX_PARSED_CHARACTERS:
        return None
    try:
        value = _Parser(content.text, counter).whole()
    except ValueError:
        return None
    return fit_outline(value, budget, counter, text=content.text)


class _Parser:
    """Reads one literal; raises ``ValueError`` where there is none."""

    def __init__(self, text: str, counter: TokenCounter) -> None:
        self._text = text
        self._counter = counter
        self._at = 0
        self._kind = self._piece = ""
        self._advance()

    def whole(self) -> JsonValue:
        value = self._value(0)
        if self._kind:
            raise ValueError
        return value

    def _advance(self) -> None:
        spend(self._counter, _UNITS_OF_A_PIECE)
        found = _PIECE.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise ValueError
            self._kind = self._piece = ""
            return
        self._kind = found.lastgroup or ""
        self._piece = found[self._kind]
        self._at = found.end()

    def _value(self, depth: int) -> JsonValue:
        kind, token = self._kind, self._piece
        if depth > _DEEPEST or not kind:
            raise ValueError
        start = self._at - len(token)
        if kind == "mark":
            if token not in _EDGES:
                raise ValueError
            return self._container(_EDGES[token], depth + 1)
        if kind == "word" and _WORD.fullmatch(self._text, start, self._at) is None and not _called(self._text, start):
            raise ValueError
        self._advance()
        if kind == "text":
            spend(self._counter, _UNITS_OF_AN_ESCAPE * token.count("\\"))
            return unescaped_text(token[1:-1]) if token[0] in "'\"" else Verbatim(token)
        if self._piece == "(":
            self._container(")", depth + 1)
            end = self._text.rindex(")", start, self._at - len(self._piece)) + 1
            return Verbatim(self._text[start:end])
        return Verbatim(token)

    def _container(self, closing: str, depth: int) -> JsonValue:
        items: list[JsonValue] = []
        named: dict[str, JsonValue] = {}
        self._advance()
        while self._piece != closing or self._kind != "mark":
            item = self._value(depth)
            if self._kind == "mark" and self._piece == ":" and closing == "}":
                if not isinstance(item, str) or item in named:
                    raise ValueError  # no name of JSON's, or one that looks like another: 1 next to '1'
                self._advance()
                named[item] = self._value(depth)
            else:
                items.append(item)
            if self._kind == "mark" and self._piece == ",":
                self._advance()
            elif self._piece != closing:
                raise ValueError
        self._advance()
        if named and items:
            raise ValueError
        return named if named or (closing == "}" and not items) else items


def _called(text: str, start: int) -> bool:
    return re.compile(r"[A-Za-z_][\w.]*\(").match(text, start) is not None
