"""Misspells public names. It never runs: mypy and pyright check it in strict mode, and must find every mistake."""

from __future__ import annotations

from coatcheck import Offlader  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck.adapting import settel  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck.storage import FileStorag  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_adk import OffloadPlugn  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_agent_framework import ToolOffloadr  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_claude import hook_s  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_haystack import RetrievalTol  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_langchain import OffloadMidleware  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_openai import ToolOfloader  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_pydantic_ai import ToolOfflader  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from coatcheck_strands import ContextOfloader  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

__all__ = (
    "ContextOfloader",
    "FileStorag",
    "Offlader",
    "OffloadMidleware",
    "OffloadPlugn",
    "RetrievalTol",
    "ToolOfflader",
    "ToolOffloadr",
    "ToolOfloader",
    "hook_s",
    "settel",
)
