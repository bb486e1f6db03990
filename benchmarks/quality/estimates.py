"""Measure the error of a token estimate by the number and size of its windows.

    python -m benchmarks.quality.estimates FOLDER

Reads every UTF-8 file in FOLDER, at any depth, that is long enough to be estimated rather than counted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from coatcheck import TiktokenCounter
from coatcheck.core.tokens import SAMPLE_CHARACTERS, SAMPLES, CountedOnce

if TYPE_CHECKING:
    from collections.abc import Iterator

EXACT_UP_TO = 2_500
WAYS = sorted({(SAMPLES, SAMPLE_CHARACTERS), (2, 512), (4, 512), (8, 256), (8, 512)})


def texts_of(folder: Path) -> Iterator[str]:
    """Yield the content of each UTF-8 file that is long enough to be estimated."""
    for path in sorted(folder.rglob("*")):
        try:
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
        except UnicodeDecodeError:
            continue
        if len(text) > 4 * EXACT_UP_TO + max(samples * characters for samples, characters in WAYS):
            yield text


def off_by(text: str, true: int, *, samples: int, characters: int) -> float:
    """Return the relative error of an estimate from windows spread evenly over what was not counted."""
    end, total = CountedOnce(TiktokenCounter()).begin(text, EXACT_UP_TO)
    left = len(text) - end
    if left <= samples * characters:
        return 0.0
    last = left - characters
    starts = [end + last * number // (samples - 1) for number in range(samples)]
    sampled = sum(TiktokenCounter().count(text[start : start + characters]) for start in starts)
    return abs((total + sampled * left / (samples * characters)) / true - 1)


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    counted = [(text, TiktokenCounter().count(text)) for text in texts_of(parser.parse_args().folder)]
    print(f"| windows | characters of each | off by, mean of {len(counted)} files | at most |\n|---|---|---|---|")
    for samples, characters in WAYS:
        off = [off_by(text, true, samples=samples, characters=characters) for text, true in counted]
        print(f"| {samples} | {characters:,} | {mean(off):.1%} | {max(off):.1%} |")


if __name__ == "__main__":
    main()
