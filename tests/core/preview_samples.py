"""Sample content of every kind that previews tell apart, and of some they must not, built from a number of records."""

from __future__ import annotations

import base64
import json
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("SAMPLES", "TEXT")

TEXT = "text"
"""The kind of content that is shown by its head and tail."""


def _orders(count: int) -> list[dict[str, object]]:
    return [
        {"id": number, "customer": f"customer {number}", "paid": number % 3 == 0, "total": number / 4}
        for number in range(count)
    ]


def _json_lines(count: int) -> str:
    return "".join(f"{json.dumps(order)}\n" for order in _orders(count))


def _rows(count: int) -> str:
    return str([(f"O'Neil {number}", number, None, number / 4) for number in range(count)])


def _dated_rows(count: int) -> str:
    rows = ", ".join(f"(datetime.date(2024, 5, {number % 28 + 1}), Decimal('{number}.50'))" for number in range(count))
    return f"[{rows}]"


def _envelope(count: int) -> str:
    return f"meta=None content=[TextContent(type='text', text={json.dumps(_orders(count))!r})]"


def _command_output(count: int) -> str:
    return f"<returncode>0</returncode>\n<output>\n{json.dumps(_orders(count))}\n</output>\n"


def _table(count: int, *, delimiter: str = ",") -> str:
    rows = [["id", "name", "city", "score"], *([f"{n}", f"name {n}", f"city {n}", f"{n / 8}"] for n in range(count))]
    return "".join(f"{delimiter.join(row)}\n" for row in rows)


def _log(count: int) -> str:
    lines = [f"2026-01-01 12:{n // 60 % 60:02}:{n % 60:02} INFO request {n} served" for n in range(count)]
    lines[count // 2] = "2026-01-01 12:00:00 ERROR disk /dev/sda1 is full"
    return "".join(f"{line}\n" for line in lines)


def _failure(count: int) -> str:
    frames = "".join(f'  File "app/step_{n}.py", line {n}, in step\n    step({n})\n' for n in range(count))
    return f"starting\nTraceback (most recent call last):\n{frames}ValueError: bad value 42\n"


def _progress(count: int) -> str:
    bar = "\r".join(f"{n * 100 // count}%" for n in range(count + 1))
    done = "".join(f"\x1b[32mok\x1b[0m step {n}\n" for n in range(count))
    return f"installing\n{bar}\n{done}finished\n"


def _page(count: int) -> str:
    body = "".join(f"<h2>Part {n}</h2><p>All about <b>thing</b> {n}.</p><script>go({n})</script>" for n in range(count))
    return f"<!DOCTYPE html>\n<html><head><title>Things</title><style>p {{}}</style></head><body>{body}</body></html>"


def _feed(count: int) -> str:
    items = "".join(
        f'<item id="{n}"><title>Story {n} &amp; more</title><!-- n --><link>https://a.example/{n}</link></item>\n'
        for n in range(count)
    )
    return f'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>News</title>\n{items}</channel></rss>\n'


def _drawing(count: int) -> str:
    shapes = "".join(f'<g><path d="M{n} 0L{n} 9"/><text x="{n}">label {n}</text></g>' for n in range(count))
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="9">{shapes}</svg>'


def _matches(count: int) -> str:
    return "".join(f"src/part_{n % 7}/module.py:{n + 1}:def function_{n}(value: int) -> int:\n" for n in range(count))


def _random_bytes(count: int, *, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)  # noqa: S311 - reproducible, not secret


def _noise(count: int) -> str:
    return base64.b64encode(_random_bytes(count * 12)).decode()


def _wrapped_noise(count: int) -> str:
    return base64.encodebytes(_random_bytes(count * 12)).decode()


def _hexadecimal(count: int) -> str:
    return _random_bytes(count * 9).hex()


def _counted(count: int) -> str:
    return "".join(f"line {n:,} of {count:,}: the quick brown fox\n" for n in range(1, count + 1))


def _thousands(count: int) -> str:
    return "".join(f"item {n} of 90,000: the quick brown fox\n" for n in range(count))


def _stamped(count: int) -> str:
    return "".join(f"2026-01-01 12:{n // 60 % 60:02}:{n % 60:02},123 request {n}\n" for n in range(count))


def _prose(count: int) -> str:
    return "".join(f"Chapter {n} begins, and nobody knows: error or not, it ends.\n" for n in range(count))


def _listing(count: int) -> str:
    return "".join(f"-rw-r--r-- 1 root root {n * 7} Sep  5  2022 file_{n}.txt\n" for n in range(count))


def _paths(count: int) -> str:
    return "".join(f"/srv/data/part_{n % 9}/file_{n}.txt\n" for n in range(count))


def _code(count: int) -> str:
    return "".join(f"def function_{n}(value):\n    return {{'a': [value, {n}]}}\n\n\n" for n in range(count))


def _diff(count: int) -> str:
    return "".join(f"--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n-old {n}\n+new {n}\n" for n in range(count))


def _markdown(count: int) -> str:
    return "".join(f"## Part {n}\n\n| a | b |\n|---|---|\n| {n} | x |\n\n" for n in range(count))


def _one_line(count: int) -> str:
    return " ".join(f"<{n}> and {n * 3}" for n in range(count))


def _hashes(count: int) -> str:
    return "".join(f"{_random_bytes(32, seed=n).hex()}\n" for n in range(count))


def _words(count: int) -> str:
    return "".join(f"abortAcceptLine{n}\n" for n in range(count))


SAMPLES: dict[str, tuple[str, Callable[[int], str]]] = {
    "list of objects": ("json", lambda count: json.dumps(_orders(count))),
    "indented object": ("json", lambda count: json.dumps({"next": None, "orders": _orders(count)}, indent=2)),
    "list of numbers": ("json", lambda count: json.dumps(list(range(count)))),
    "deep lists": ("json", lambda count: json.dumps([[[{"a": [n, [n]]}]] for n in range(count)])),
    "JSON Lines": ("json_lines", _json_lines),
    "rows": ("python", _rows),
    "rows with dates": ("python", _dated_rows),
    "dicts": ("python", lambda count: str(_orders(count))),
    "envelope": ("envelope", _envelope),
    "JSON below words": ("json_in_words", lambda count: f"Found them:\n{json.dumps(_orders(count))}"),
    "output of a command": ("command_output", _command_output),
    "page": ("html", _page),
    "feed": ("xml", _feed),
    "drawing": ("xml", _drawing),
    "matches": ("matches", _matches),
    "CSV": ("delimited", _table),
    "CSV with CRLF": ("delimited", lambda count: _table(count).replace("\n", "\r\n")),
    "TSV": ("delimited", lambda count: _table(count, delimiter="\t")),
    "log": ("log", _log),
    "log with a comma in each line": ("log", _stamped),
    "failure": ("log", _failure),
    "progress": ("log", _progress),
    "base64": ("noise", _noise),
    "wrapped base64": ("noise", _wrapped_noise),
    "hexadecimal": ("noise", _hexadecimal),
    "counted lines": ("repeats", _counted),
    "lines with a comma each": ("repeats", _thousands),
    "prose": ("repeats", _prose),
    "listing": (TEXT, _listing),
    "paths": (TEXT, _paths),
    "code": (TEXT, _code),
    "diff": ("diff", _diff),
    "Markdown": (TEXT, _markdown),
    "one line": (TEXT, _one_line),
    "hashes": (TEXT, _hashes),
    "words": (TEXT, _words),
}
"""Maps a sample's name to the kind that must show it, and to a function that builds it from a number of records."""
