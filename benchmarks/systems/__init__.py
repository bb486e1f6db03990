"""The compared systems: for each its name in the tables, its class, and the environment in which it runs.

To add one, write a module next to this file with a subclass of ``System``, a line here, and a group in pyproject.toml.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from benchmarks.systems.system import System

__all__ = ("LIMIT", "ON_S3", "OURS", "SYSTEMS", "Candidate", "system_class")

LIMIT = "the least"
OURS = "coatcheck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Where to find a system, and what distinguishes it."""

    place: str
    """Module and class."""

    environment: str
    """The environment whose Python its process runs on; see ``environments``."""

    rival: str = ""
    """For one of ours in a framework: the system that it replaces."""

    variant: bool = False
    """Whether only its offloading is measured, because it differs from another only there, or does only a part."""

    sizes: Literal["counts tokens", "estimates tokens", "compares characters"] = "counts tokens"
    """How it decides what is too large. A system that estimates assumes four characters per token."""


SYSTEMS: dict[str, Candidate] = {
    LIMIT: Candidate(place="least:Least", environment="core", sizes="compares characters"),
    "SHA-256 alone": Candidate(place="least:Hashed", environment="core", variant=True, sizes="compares characters"),
    "counting alone": Candidate(place="least:Counted", environment="core", variant=True, sizes="compares characters"),
    OURS: Candidate(place="core:Coatcheck", environment="core"),
    "coatcheck, fsync": Candidate(place="core:CoatcheckSynced", environment="core", variant=True),
    "coatcheck in LangChain": Candidate(
        place="in_langchain:CoatcheckInLangChain", environment="langgraph", rival="deepagents"
    ),
    "deepagents": Candidate(place="in_langchain:Deepagents", environment="langgraph", sizes="estimates tokens"),
    "coatcheck in Strands": Candidate(place="in_strands:CoatcheckInStrands", environment="strands", rival="Strands"),
    "Strands": Candidate(place="in_strands:Strands", environment="strands", sizes="estimates tokens"),
    "coatcheck in Haystack": Candidate(
        place="in_haystack:CoatcheckInHaystack", environment="haystack", rival="Haystack"
    ),
    "Haystack": Candidate(place="in_haystack:Haystack", environment="haystack", sizes="compares characters"),
    "ctxtual": Candidate(place="with_ctxtual:Ctxtual", environment="ctxtual", sizes="compares characters"),
    "tooltrim": Candidate(place="with_tooltrim:Tooltrim", environment="tooltrim"),
    "headroom": Candidate(place="with_headroom:Headroom", environment="headroom"),
}
"""The systems that keep content in files in one folder."""

ON_S3: dict[str, Candidate] = {
    LIMIT: Candidate(place="on_s3:LeastOnS3", environment="strands", sizes="compares characters"),
    OURS: Candidate(place="on_s3:CoatcheckOnS3", environment="strands"),
    "coatcheck in Strands": Candidate(place="on_s3:CoatcheckInStrandsOnS3", environment="strands", rival="Strands"),
    "Strands": Candidate(place="on_s3:StrandsOnS3", environment="strands"),
}
"""The systems that keep content in a bucket."""


def system_class(place: str) -> type[System]:
    """Import and return the class of a system."""
    module, _, name = place.partition(":")
    return cast("type[System]", getattr(import_module(f"benchmarks.systems.{module}"), name))
