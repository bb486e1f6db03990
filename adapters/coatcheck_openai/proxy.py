"""A stand-in for one of the SDK's callables or servers, which behaves like it except where a subclass overrides it.

The SDK checks the class of a tool's invoker before it inspects the arguments of a call that may need approval, and it
reads private attributes of MCP servers. A wrapper that hid either would change who is asked for approval.
"""

from __future__ import annotations

from inspect import isroutine
from typing import Any

__all__ = ("Proxy",)


class Proxy:
    """Forwards every attribute that a subclass does not define itself."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - anything
        self._inner = inner

    @property  # type: ignore[misc] # the attribute of ``object`` can be set
    def __class__(self) -> type:  # for isinstance; what claims to be a function must have its code
        return type(self) if isroutine(self._inner) else self._inner.__class__

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the inner one has it
        # The SDK binds an invoker to a copied tool through such a name. Found here, it would bind the inner invoker.
        if name == "_inner" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self._inner, name)
