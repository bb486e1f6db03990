"""A disk that fills up: what does not fit stays in the conversation, and everything stored before is intact."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coatcheck import FileStorage, Kept, Offloaded, Offloader, TextBlock
from coatcheck.testing.samples import numbered_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DISK_BYTES = 8_000_000
FILE_BYTES = 150_000
OFFLOADS = 100


@contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """Give ``folder`` a disk of 8 MB, or limit files to 150 KB if mounting is not permitted. Yield which of the two."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(folder)]
    if mount and unmount and subprocess.run([mount, *options], check=False, capture_output=True).returncode == 0:
        try:
            yield "a tmpfs of 8 MB"
        finally:
            subprocess.run([unmount, str(folder)], check=True)
        return
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, limits[1]))
    try:
        yield "files of at most 150 KB (RLIMIT_FSIZE, since mounting is not permitted here)"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_disk_that_fills_up_loses_no_result(tmp_path: Path, figure: Callable[[str], None]) -> None:
    texts = [numbered_lines(2_000 + 20 * number, first=1 + number) for number in range(OFFLOADS)]
    stored: list[tuple[str, str]] = []
    kept = cut = 0
    with small_disk(tmp_path) as disk:
        offloader = Offloader(FileStorage(tmp_path), max_inline_tokens=10**9)
        for text in texts:
            block = TextBlock(text)
            outcome = offloader.offload([block], tool_name="t")
            match outcome:
                case Offloaded():
                    stored.append((str(outcome.references[0]), text))
                case Kept():
                    kept += 1
                    cut += outcome.blocks != (block,)
                case _:
                    cut += 1
        lost = sum(offloader.load(reference).text != text for reference, text in stored)
        temporary = len(list(tmp_path.rglob("*.tmp")))
        assert offloader.delete_scope("default") == len(stored)
        assert isinstance(offloader.offload([TextBlock(texts[0])], tool_name="t"), Offloaded), "there is room again"

    figure(
        f"a disk that fills up, {disk}: of {OFFLOADS} results {len(stored)} were stored and read back, {kept} stayed"
        f" whole in the conversation, {cut} cut, {lost} lost; {temporary} temporary files left"
    )
    assert stored
    assert kept
    assert (cut, lost, temporary) == (0, 0, 0)
