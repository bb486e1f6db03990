"""The calls of an ``Offloader`` that use its storage and may raise: a storage's failure surfaces in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck import TextBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck import Offloader

__all__ = ("BIG", "CALLS", "stored")

BIG = TextBlock("word " * 20_000)

CALLS: dict[str, Callable[[Offloader, str], object]] = {
    "load": lambda offloader, reference: offloader.load(reference, scope="s"),
    "retrieve": lambda offloader, reference: offloader.retrieve(reference, scope="s"),
    "list": lambda offloader, _: offloader.list(scope="s"),
    "delete_scope": lambda offloader, _: offloader.delete_scope("s"),
    "sweep": lambda offloader, _: offloader.sweep(max_bytes=0),
}


def stored(offloader: Offloader) -> str:
    """Store ``BIG`` in the scope that the calls use; return its reference."""
    return str(offloader.offload([BIG], tool_name="t", scope="s").references[0])
