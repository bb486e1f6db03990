"""What was measured, and why the rest was not. ``works`` fill it; targets, tables and plots read it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from benchmarks.measuring import Spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ("Results",)


@dataclass(slots=True)
class Results:
    """Measurements by work, case and system. The work defines the unit: seconds or bytes."""

    figures: dict[tuple[str, str, str], Spread] = field(default_factory=dict)
    missing: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """Why there is no measurement."""

    facts: dict[str, str] = field(default_factory=dict)
    """Other facts for the report: the machine, and versions by system."""

    def add(self, work: str, case: str, system: str, values: Sequence[float] | str) -> None:
        """Record measurements, or why there are none."""
        if isinstance(values, str):
            self.missing[work, case, system] = values
        else:
            self.figures[work, case, system] = Spread.of(values)

    def add_all(self, work: str, case: str, answers: Mapping[str, Sequence[float] | str]) -> None:
        """Record each system's answer."""
        for system, values in answers.items():
            self.add(work, case, system, values)

    def median(self, work: str, case: str, system: str) -> float | None:
        """Return the median, or None if there is none."""
        found = self.figures.get((work, case, system))
        return None if found is None else found.median

    def cases(self, work: str) -> list[str]:
        """Return the cases of a work, in the order of measurement."""
        return list(dict.fromkeys(case for found, case, _ in [*self.figures, *self.missing] if found == work))

    def systems(self, work: str) -> list[str]:
        """Return the systems that a work measured, or tried to."""
        return list(dict.fromkeys(system for found, _, system in [*self.figures, *self.missing] if found == work))

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        content = {
            "figures": [[*key, asdict(spread)] for key, spread in self.figures.items()],
            "missing": [[*key, reason] for key, reason in self.missing.items()],
            "facts": self.facts,
        }
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read what ``write`` wrote."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            figures={(work, case, system): Spread(**spread) for work, case, system, spread in content["figures"]},
            missing={(work, case, system): reason for work, case, system, reason in content["missing"]},
            facts=content["facts"],
        )
