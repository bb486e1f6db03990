"""Compare how reliably a table's delimiter is found, and only in tables: ours, the standard library and clevercsv.

    python -m benchmarks.quality.delimiters [FOLDER]

Tables are made of random cells, 75 for each of four delimiters. Some cells are quoted, or contain delimiters, dates or
addresses. More tables are read from FOLDER (``*.csv``) if given. Text without a table comes from the preview tests.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import clevercsv

from coatcheck.core.preview import Previewed
from coatcheck.core.preview.delimited import delimiter_of
from tests.core.preview_samples import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

DELIMITERS = ",\t;|"
TABLES_OF_EACH = 75
SAMPLE_CHARACTERS = 8_192
MIN_CHARACTERS = 200
NAMES = (
    *("id", "name", "city", "country", "price", "total", "date", "created_at", "email", "status", "count", "note"),
    *("region", "year", "amount", "code", "first name", "last name", "phone", "address", "zip"),
)
TEXTS = (
    *(
        "Ada",
        "Grace Hopper",
        "São Paulo",
        "O'Neil",
        'say "x"',
        "a, b",
        "x; y",
        "p | q",
        "12:30",
        "2024-05-01",
        "",
        "N/A",
    ),
    "https://a.example/c?d=1,2",
)


def made(delimiter: str, chance: random.Random) -> str:
    """Return a table of random cells."""
    columns = chance.randint(2, 9)
    written = io.StringIO()
    quoting = chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    table = csv.writer(written, delimiter=delimiter, quoting=quoting, lineterminator=chance.choice(("\n", "\r\n")))
    table.writerow(chance.sample(NAMES, columns))
    for _ in range(chance.randint(6, 80)):
        numbers = (str(chance.randint(0, 99_999)), f"{chance.random() * 1_000:.2f}")
        table.writerow([chance.choice((*numbers, chance.choice(TEXTS))) for _ in range(columns)])
    return written.getvalue()


def ours(text: str) -> str | None:
    """Return the delimiter that a preview finds."""
    return delimiter_of(Previewed.of(text))


def standard(text: str) -> str | None:
    """Return the delimiter that the standard library finds."""
    try:
        return csv.Sniffer().sniff(text[:SAMPLE_CHARACTERS], delimiters=DELIMITERS).delimiter
    except csv.Error:
        return None


def clever(text: str) -> str | None:
    """Return the delimiter that clevercsv finds."""
    try:
        found = clevercsv.Sniffer().sniff(text[:SAMPLE_CHARACTERS])
    except clevercsv.Error:
        return None
    return found.delimiter if found is not None and found.delimiter in DELIMITERS else None


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    folder = parser.parse_args().folder
    chance = random.Random(7)  # noqa: S311 - reproducible, not secret
    tables = [(delimiter, made(delimiter, chance)) for delimiter in DELIMITERS for _ in range(TABLES_OF_EACH)]
    for path in sorted(folder.glob("*.csv")) if folder else ():
        text = path.read_text(encoding="utf-8", errors="replace")[:60_000]
        tables.append((",", text[: text.rfind("\n") + 1]))
    others = [make(count) for kind, make in SAMPLES.values() if kind != "delimited" for count in (20, 60, 200)]
    others = [text for text in others if len(text) >= MIN_CHARACTERS]
    ways: dict[str, Callable[[str], str | None]] = {"ours": ours, "csv.Sniffer": standard, "clevercsv": clever}
    print("| way | delimiters found | wrongly taken for tables | milliseconds per text |\n|---|---|---|---|")
    for name, way in ways.items():
        started = time.process_time()
        right = sum(way(text) == delimiter for delimiter, text in tables)
        wrong = sum(way(text) is not None for text in others)
        each = 1e3 * (time.process_time() - started) / (len(tables) + len(others))
        print(f"| {name} | {right} of {len(tables)} | {wrong} of {len(others)} | {each:.2f} |")


if __name__ == "__main__":
    main()
