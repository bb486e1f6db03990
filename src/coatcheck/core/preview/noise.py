"""Base64 and hexadecimal dumps: what they are, how long, and the first characters. Nobody reads the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coatcheck.core.preview.encoded import BEGINS_DATA, MIN_CHARACTERS, SHOWN, is_base64
from coatcheck.core.preview.source import gap_of_characters

if TYPE_CHECKING:
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_noise",)

_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-=\r\n"
_STEP = 1_048_576
"""Characters tested at a time, in a few milliseconds. Other threads get the interpreter in between."""

_SAMPLE = 4_096
_HEXADECIMAL = re.compile(r"(?:0x)?[0-9a-fA-F]+\s*")
_BEGINNINGS = {
    "iVBORw0KGgo": "PNG image", "/9j/": "JPEG image", "R0lGOD": "GIF image", "JVBERi": "PDF document",
    "UEsDB": "ZIP archive", "H4sI": "gzip data", "UklGR": "RIFF (WebP or WAV)",
}  # fmt: skip


def preview_noise(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return what the content is, within ``budget`` tokens, or None if that does not fit.

    Also return None if the text contains more than base64 or hexadecimal digits, or if sampled lines differ in length.
    """
    text, total = content.text, len(content.text)
    if total < MIN_CHARACTERS or not _has_noisy_ends(content) or not _is_digits(text):
        return None
    digits = text[:_SAMPLE].partition(BEGINS_DATA)[2] or text[:_SAMPLE]
    base64 = not (content.lines == 1 and _HEXADECIMAL.fullmatch(digits))
    held = [f", a {what}" for begins, what in _BEGINNINGS.items() if base64 and digits.startswith(begins)]
    name = f"{'base64' if base64 else 'hexadecimal'} data{''.join(held)}"
    gap = gap_of_characters(SHOWN, total - 1, total)
    shown = f"{name}, {total:,} characters, beginning with:\n{text[:SHOWN]}\n{gap}"
    return shown if counter.count(shown) <= budget else None


def _has_noisy_ends(content: Previewed) -> bool:
    text = content.text
    head, tail = text[:_SAMPLE], text[-_SAMPLE:]
    if content.lines == 1 and _HEXADECIMAL.fullmatch(head) and _HEXADECIMAL.fullmatch(tail.removesuffix("\n")):
        return True
    widths = {len(line) for line in head.split("\n")[:-2]}
    return len(widths) <= 1 and all(is_base64(end.partition(BEGINS_DATA)[2] or end) for end in (head, tail))


def _is_digits(text: str) -> bool:
    """Return whether all text after the head of a data URL is digits: other text in the noise would be lost."""
    start = text.find(BEGINS_DATA, 0, _SAMPLE) + len(BEGINS_DATA) if text.startswith("data:") else 0
    end = len(text.rstrip())
    return text.isascii() and not any(
        text[at : min(at + _STEP, end)].encode("ascii").translate(None, _DIGITS) for at in range(start, end, _STEP)
    )
