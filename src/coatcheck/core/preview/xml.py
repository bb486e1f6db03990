"""XML: its elements as fields, attributes as ``@name``, outlined like JSON; no closing tags, repeated elements as rows.

A small parser of our own reads it and resolves no entities that the content defines: with the standard library's
parser, a few hundred bytes can expand to gigabytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coatcheck.core.preview.characters import UNITS_OF_A_REFERENCE, unescaped
from coatcheck.core.preview.names import CLOSING_TAG, without_notation
from coatcheck.core.preview.notation import Verbatim
from coatcheck.core.preview.outline import fit_outline
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_xml",)

MAX_PARSED_CHARACTERS = 1_000_000
"""Characters. Longer XML is shown as text."""

_UNITS_OF_A_PIECE = 60
_MAX_PIECES = 22_000
"""The most tags and attributes. More would use up the work of a preview, and leave none for a simpler kind."""

_DEEPEST = 50
_MIN_ELEMENTS = 2
_NAME = r"[^\W\d][\w.:-]*"
_PIECE = re.compile(
    rf"(?:<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^<>\[]*(?:\[[^\]]*\]\s*)?>|<!\[CDATA\[(?P<verbatim>.*?)\]\]>"
    rf"|</(?P<closed>{_NAME})\s*>|<(?P<opened>{_NAME})(?P<attributes>(?:\s+{_NAME}\s*=\s*(?:\"[^\"<]*\"|'[^'<]*')){{0,20000}})"
    rf"\s*(?P<empty>/?)>)(?P<text>[^<]*)",
    re.DOTALL | re.IGNORECASE,
)
"""An element with more than 20,000 attributes does not match, and the content is shown as text: ``re`` takes about 700
bytes for each."""

_ATTRIBUTE = re.compile(rf"({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_WORD = re.compile(r"[\w.+-]+")
_WHAT = "XML, its elements as fields (@ for attributes); search it with pattern:"


def preview_xml(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return an outline within ``budget`` tokens, or None if the text is not XML or nothing useful fits."""
    text = content.text
    if len(text) > MAX_PARSED_CHARACTERS or sum(map(text.count, ("<", '="', "='"))) > _MAX_PIECES:
        return None
    try:
        value = _parsed(text, counter)
    except ValueError:
        return None
    names_of = without_notation(text, CLOSING_TAG)
    shown = fit_outline(value, budget - counter.count(_WHAT) - 1, counter, text=text, names_of=names_of)
    if shown is None or counter.count(f"{_WHAT}\n{shown}") > budget:
        return None
    return f"{_WHAT}\n{shown}"


def _parsed(text: str, counter: TokenCounter) -> dict[str, JsonValue]:
    """Return the root element under its name; raise ``ValueError`` if a tag is missing or has no partner.

    Also raise if the root holds no element: tools put a tag around a log or a file, whose lines and end matter.
    """
    top = _Element("")
    left = [top]
    elements, at = 0, len(text) - len(text.lstrip())
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise ValueError
        verbatim, closed, opened, attributes, empty, behind = found.groups()
        references = text.count("&", at, found.end())
        pieces = 1 + (attributes or "").count("=")
        spend(counter, _UNITS_OF_A_PIECE * pieces + (found.end() - at) // 8 + UNITS_OF_A_REFERENCE * references)
        at = found.end()
        if opened:
            elements += 1
            element = _Element(opened, attributes)
            if empty:
                left[-1].add(opened, element.value())
            else:
                left.append(element)
            if len(left) > _DEEPEST:
                raise ValueError
        elif closed:
            element = left.pop()
            if not left or element.name != closed:
                raise ValueError
            left[-1].add(closed, element.value())
        left[-1].text.append((verbatim or "") + unescaped(behind))
    roots = [(name, value) for name, values in top.fields.items() for value in values]
    if len(left) > 1 or elements < _MIN_ELEMENTS or len(roots) != 1 or "".join(top.text).strip():
        raise ValueError
    return dict(roots)


def _text(written: str) -> str:
    """Return ``written`` with white space collapsed. Words and numbers need no quotes, as all values are strings."""
    text = " ".join(written.split())
    return Verbatim(text) if _WORD.fullmatch(text) else text


class _Element:
    """What has been read of an element so far."""

    def __init__(self, name: str, attributes: str = "") -> None:
        self.name = name
        self.fields: dict[str, list[JsonValue]] = {}
        for attribute, double, single in _ATTRIBUTE.findall(attributes):
            self.add(Verbatim(f"@{attribute}"), _text(unescaped(double or single)))
        self.text: list[str] = []

    def add(self, name: str, value: JsonValue) -> None:
        self.fields.setdefault(name, []).append(value)

    def value(self) -> JsonValue:
        """Return a ``str``, or an object with lists for repeated fields."""
        text = _text("".join(self.text))
        if not self.fields:
            return text
        fields: dict[str, JsonValue] = {
            name: values if len(values) > 1 else values[0] for name, values in self.fields.items()
        }
        if text:
            fields[Verbatim("#text")] = text
        return fields
