"""What kind of content a result is, as the benchmark judges it, independently of the previews."""

from __future__ import annotations

import ast
import json
import re

__all__ = ("kind_of",)

_NUMBERED = re.compile(r"\s*\d+[:|\t] ?")
_LISTED = re.compile(r"(?:[-dlbcps][rwxsStT-]{9}.*|\.{0,2}/\S*|\S+:)")
_ENVELOPE = re.compile(r"\w+=.{0,40}\bcontent=\[")
"""The start of an MCP result whose object, not its text, was printed by the host."""

_YAML = re.compile(r"\s*(?:- )?[\w-]+:(?: .*)?|\s*- .*")
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body|div|\?xml)", re.IGNORECASE)
_DIFF = re.compile(r"\s*(?:diff |Index: |commit [0-9a-f]{40}|--- ).*?^@@+ -\d", re.DOTALL | re.MULTILINE)
_MARKDOWN = re.compile(r"^#{1,6} |\]\([^)\s]+\)|^```|^\*\*|\|\s*-{3}", re.MULTILINE)
_MEMBER = re.compile(r"[\\'\"]+[\w@$ -]+[\\'\"]+\s*:")
"""A JSON key, however often its quotes are escaped."""

_MAX_BETWEEN_MEMBERS = 150
"""Average characters per key, at most, in text that counts as JSON within something else."""

_MIN_MARKS = 3


def kind_of(text: str) -> str:
    """Return the name of the kind of content."""
    if text.lstrip()[:1] in {"[", "{", "("} and (parsed := _parsed_as(text)):
        return parsed
    for kind, beginning in _BY_BEGINNING:
        if beginning.match(text):
            return kind
    lines = [line for line in text.splitlines() if line.strip()]
    for kind, least, pattern in _BY_LINES:
        if sum(pattern(line) is not None for line in lines) > len(lines) * least:
            return kind
    if _ENVELOPE.match(text) or len(_MEMBER.findall(text)) * _MAX_BETWEEN_MEMBERS > len(text):
        return "wrapped"
    if len(_MARKDOWN.findall(text)) >= _MIN_MARKS:
        return "Markdown"
    return "other text"


def _parsed_as(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        return "JSON"
    try:
        ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    return "Python rows"


def _listed(line: str) -> re.Match[str] | None:
    return _LISTED.fullmatch(line.strip())


_BY_BEGINNING = (("HTML", _HTML), ("diff", _DIFF))
_BY_LINES = (
    ("numbered source", 1 / 2, _NUMBERED.match),
    ("listing", 1 / 2, _listed),
    ("YAML", 1 / 3, _YAML.fullmatch),
)
"""Kinds, and the share of lines that must match. It is lower for YAML, where long strings take several lines."""
