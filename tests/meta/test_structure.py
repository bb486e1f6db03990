"""No cycle among parts: a reader of a part needs to know only the parts below it. See ``benchmarks.structure``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.structure import MAX_DEPENDENCIES, MAX_LAYERS, MAX_PARTS, SOURCE, STARTS, WITHIN, plan_of
from tests.meta.source_tree import modules

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("package", ["", *WITHIN], ids=lambda name: name or "top level")
def test_no_part_depends_on_itself(package: str) -> None:
    plan = plan_of(SOURCE / package)

    assert len(plan.dependencies) > 5
    assert not plan.cycles


def test_the_plan_stays_small_enough_to_take_in_at_a_glance() -> None:
    plan = plan_of(SOURCE)

    assert len(plan.dependencies) <= MAX_PARTS
    assert len(plan.layers) <= MAX_LAYERS
    assert plan.count <= MAX_DEPENDENCIES


def test_a_module_that_counts_as_the_part_it_starts_only_starts_it() -> None:
    for name, part in STARTS.items():
        [start] = [module for module in modules("src") if module.name == f"coatcheck.{name}"]
        imported = {each.module for each in start.imports()} - {"__future__"}

        assert imported == {f"coatcheck.{part}"}
        assert not any(each.module.endswith(name) for module in modules("src") for each in module.imports())


def test_a_cycle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.structure.SOURCE", tmp_path)
    (tmp_path / "one.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import coatcheck.two.part\n"
    )
    (tmp_path / "two").mkdir()
    (tmp_path / "two/__init__.py").write_text("def late():\n    from coatcheck import three\n")
    (tmp_path / "two/part.py").write_text("")
    (tmp_path / "three.py").write_text("from coatcheck.one import name\n")
    (tmp_path / "four.py").write_text("from coatcheck import one, two\n")

    plan = plan_of(tmp_path)

    assert plan.cycles == [["one", "three", "two"]]
    assert plan.count == 5
    assert plan.layers == [["one", "three", "two"], ["four"]]
