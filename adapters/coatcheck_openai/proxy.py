"""A stand-in for a callable or a server of the SDK that behaves like it except where it overrides something.

The SDK asks for the class of a tool's invoker before it inspects the arguments of a call that may need an approval, and
for private attributes of MCP servers. A wrapper that hides either would change who is asked for an approval.
"""

from __future__ import annotations

from inspect import isroutine
from typing import Any

__all__ = ("Proxy",)


class Proxy:
    """Passes on whatever a subclass does not have itself."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - anything
        self._inner = inner

    @property  # type: ignore[misc] # of a class, it can be set
    def __class__(self) -> type:  # what isinstance goes by; a function's would need its code
        return type(self) if isroutine(self._inner) else self._inner.__class__

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the other has it
        # The SDK binds an invoker to a copy of its tool by such a name, and would bind the inner one.
        if name == "_inner" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self._inner, name)
