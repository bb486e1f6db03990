"""What tools return in every benchmark: four kinds of text of any size, the same in every run, each with one odd line.

Text is written to a file once, and each system's process reads it. Only text belongs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ("CHARACTER_CLASS", "KINDS", "LITERAL", "SMALL", "TROUBLE", "fresh", "write")

LITERAL = "lost order QX-48151"
"""Occurs once in each text, after 95% of it."""

CHARACTER_CLASS = "[A-Z][A-Z]-[0-9][0-9][0-9][0-9][0-9]"
"""Matches within ``LITERAL``, and nowhere else."""

SMALL = "a tool result of 1 KB that stays\n" * 31

_DEPTH = 0.95


def _log(number: int, message: str) -> str:
    moment = f"2026-03-{number % 28 + 1:02} 12:{number % 60:02}:{number * 7 % 60:02}"
    return f"{moment} INFO worker-{number % 16} {message}, number {number}, in {number * 31 % 997} ms\n"


def _trouble(number: int, message: str) -> str:
    word = ("ERROR", "request timeout", "WARN")[number % 3]
    return f"2026-03-{number % 28 + 1:02} 12:{number % 60:02}:{number * 7 % 60:02} {word}: {message}, number {number}\n"


def _record(number: int, message: str) -> str:
    customer, total = number * 7919 % 10_007, number % 997
    return f'{{"id": {number}, "customer": "c{customer}", "total": {total}.5, "note": "{message}"}},\n'


def _piece(number: int, message: str) -> str:
    return f"{number} {message}; "


def _sentence(number: int, message: str) -> str:
    return f"{number}工具返回的结果太大了,放不进对话里;所以把它存起来,只留下预览和一个引用 {message}。\n"


KINDS: dict[str, Callable[[int, str], str]] = {
    "log text": _log,
    "JSON records": _record,
    "one long line": _piece,
    "Chinese text": _sentence,
}
"""Each function returns one numbered part of the text."""

TROUBLE = "log of trouble"
"""One more kind, only for ``outputs``: a log in which every line says error, timeout or warn."""


def write(path: Path, *, kind: str, size: int) -> None:
    """Write ``size`` UTF-8 bytes of text, or up to one part more, unless the file exists."""
    if not path.exists():
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(_parts(kind, size))


def _parts(kind: str, size: int) -> Iterator[str]:
    make = _trouble if kind == TROUBLE else KINDS[kind]
    is_json = kind == "JSON records"
    length = number = 0
    odd = False
    while length < size - 1:
        number += 1
        now = not odd and length >= size * _DEPTH
        odd |= now
        part = make(number, LITERAL if now else "served request")
        length += len(part) if part.isascii() else len(part.encode())
        yield part[:-2] if is_json and length >= size - 1 else part
    if is_json:
        yield "]"


def fresh(text: str, *, kind: str, run: int) -> str:
    """Return text with a beginning that is unique to this run, so that it was not stored before."""
    head = f'[{{"run": {run}}},\n' if kind == "JSON records" else f"{run} "
    return head + text
