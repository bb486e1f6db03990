"""``coatcheck hook``: what a client such as Claude Code runs after each of its tools, to replace a large result.

A client waits for a fresh process at every call of a tool. So the decision is made by bytes, and nothing is imported
before it but a part of the standard library: no command line, no vocabulary. ``answer`` is where it begins, ``shapes``
knows where the texts of a result are, and ``options`` what users may set.
"""

from __future__ import annotations

__all__ = ()
