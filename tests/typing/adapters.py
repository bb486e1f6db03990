"""Uses the adapters the way users do. Never run: mypy and pyright, both strict, read it."""

from __future__ import annotations

from coatcheck import FileStorage
from coatcheck_langchain import OffloadMiddleware
from coatcheck_openai import ToolOffloader
from coatcheck_strands import ContextOffloader

storage = FileStorage("artifacts")

OffloadMiddleware(storage, offer_tool="when needed")
ContextOffloader(storage, offer_tool="always")
OffloadMiddleware(storage, offer_tool="sometimes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ContextOffloader(storage, offer_tool="sometimes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

ToolOffloader(storage, max_result_tokens=4_000)
ToolOffloader(storage, max_result_tokens="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
