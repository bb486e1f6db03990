"""``python -m benchmarks.real`` tries every file of a folder and counts everything that goes wrong."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import real
from coatcheck import Content, Offloader
from coatcheck.core.preview import Previewed, preview

if TYPE_CHECKING:
    from coatcheck import Retrieved, TokenCounter

pytestmark = pytest.mark.no_cover  # tests `benchmarks`, whose coverage is not measured

SAMPLES = Path(__file__).parent / "real"
"""Two conversations, JSON with empty lists, a table."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the samples and an image, made here because the repository may hold none."""
    found = shutil.copytree(SAMPLES, tmp_path / "samples")
    (found / "outputs/dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    return found


def test_every_file_is_tried_and_all_of_it_comes_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert real.main([str(folder)]) == 0
    assert capsys.readouterr().out.startswith("5 results, ")


def test_a_folder_without_results_is_not_a_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert real.main([str(tmp_path)]) == 1
    assert "nothing was found" in capsys.readouterr().out


def _raises(*_: object, **__: object) -> None:
    msg = "a defect"
    raise RuntimeError(msg)


def _warns(content: Previewed, counter: TokenCounter, *, budget: int) -> str:
    logging.getLogger("coatcheck").warning("preview_json failed")
    return preview(content, counter, budget=budget)


def _too_long(content: Previewed, *_: object, budget: int) -> str:
    return "many words " * budget


def _other_bytes(*_: object) -> Content:
    return Content(data=b"other", content_type="text/plain")


def _cut(offloader: Offloader, *arguments: Any, **selectors: Any) -> Retrieved:  # noqa: ANN401 - passed on
    answer = RETRIEVE(offloader, *arguments, **selectors)
    object.__setattr__(answer, "text", answer.text.replace("parcel 2", "parcel 3"))
    return answer


RETRIEVE = Offloader.retrieve


@pytest.mark.parametrize(
    ("where", "broken", "fault"),
    [
        ("coatcheck.Offloader.offload", _raises, "exception"),
        ("coatcheck.Offloader.retrieve", _raises, "exception"),
        ("benchmarks.real.preview", _warns, "exception"),
        ("benchmarks.real.preview", _too_long, "over budget"),
        ("coatcheck.Offloader.load", _other_bytes, "inexact"),
        ("coatcheck.Offloader.retrieve", _cut, "inexact"),
    ],
)
def test_what_goes_wrong_is_counted(where: str, broken: object, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, broken)

    assert real.tried(SAMPLES).faults[fault]  # type: ignore[index]
