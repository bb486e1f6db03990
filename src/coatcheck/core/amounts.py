"""Parse ages and sizes as people write them, such as ``30d`` and ``2GB``.

Only parsing belongs here. The command line and ``coatcheck.toml`` accept the same notation.
"""

from __future__ import annotations

import re

from coatcheck.core.errors import InvalidRequest

__all__ = ("parse_bytes", "parse_seconds")

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", re.ASCII)


def parse_seconds(name: str, text: str) -> float:
    """Return an age such as ``30d`` in seconds. The units are s, m, h, d and w.

    Raises:
        InvalidRequest: ``text`` is not a number with one of these units; the message begins with ``name``.

    """
    return _parse(name, text, _SECONDS)


def parse_bytes(name: str, text: str) -> float:
    """Return a size such as ``1.5 GB`` in bytes. The units are KB, MB, GB and TB, powers of 1,000.

    Raises:
        InvalidRequest: ``text`` is not a number, alone or with one of these units; the message begins with ``name``.

    """
    return _parse(name, text, _BYTES)


def _parse(name: str, text: str, units: dict[str, int]) -> float:
    known = {unit.lower(): factor for unit, factor in units.items()}
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2].lower() not in known:
        alone = "alone or " if "" in units else ""
        named = ", ".join(unit for unit in units if unit)
        msg = f"{name} must be a number {alone}with one of the units {named}, not {text!r}"
        raise InvalidRequest(msg)
    return float(found[1]) * known[found[2].lower()]
