"""The guard on the way back: a call to the retrieval tool always gets an answer, whatever fails.

Do not run the framework's control flow inside: its exceptions must pass through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from coatcheck.adapting.guards import call_off_loop
from coatcheck.core.blocks import MediaBlock
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.retrieval import failure_for_model, retrieval_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.core.retrieved import Retrieved
    from coatcheck.offloader import Offloader

__all__ = ("Failure", "aanswer", "answer")

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a read-back has no answer."""

    text: str
    """What the model reads. If the framework's result can be marked as an error, it should be."""

    error: Exception
    """What was raised."""


def answer(
    find: Callable[[], tuple[Offloader, Mapping[str, Any]]],
    sent: object,
    *,
    convert_media: Callable[[Sequence[Block]], Answer],
    native_media: bool = False,
    retrieval_tool: str = RETRIEVAL_TOOL,
) -> Answer | str | Failure:
    """Answer a call to the retrieval tool. Never raises: the answer tells the model what was wrong.

    Args:
        find: returns the offloader, and the ``scope`` and ``identity`` that decide what may be read. It may raise.
        sent: the arguments as the model sent them. The framework must not validate them: the core says what is wrong
            in words that a model can act on.
        convert_media: converts an answer that holds media to the framework's content. Any other answer is a ``str``.
        native_media: as for ``Offloader.retrieve``.
        retrieval_tool: as for ``Offloader.retrieve``.

    """
    try:
        offloader, owner = find()
        found = offloader.retrieve(
            **retrieval_arguments(sent), **owner, native_media=native_media, retrieval_tool=retrieval_tool
        )
        return _convert(found, convert_media)
    except Exception as error:  # noqa: BLE001 - the model reads what went wrong, and the agent goes on
        return Failure(text=failure_for_model(error), error=error)


async def aanswer(
    find: Callable[[], tuple[Offloader, Mapping[str, Any]]],
    sent: object,
    *,
    convert_media: Callable[[Sequence[Block]], Answer],
    native_media: bool = False,
    retrieval_tool: str = RETRIEVAL_TOOL,
) -> Answer | str | Failure:
    """Do what ``answer`` does, without blocking the event loop; with ``native_media`` it converts on a thread."""
    try:
        offloader, owner = find()
        found = await offloader.aretrieve(
            **retrieval_arguments(sent), **owner, native_media=native_media, retrieval_tool=retrieval_tool
        )
        return await call_off_loop(native_media, _convert, found, convert_media)
    except Exception as error:  # noqa: BLE001 - as in answer
        return Failure(text=failure_for_model(error), error=error)


def _convert(found: Retrieved, convert_media: Callable[[Sequence[Block]], Answer]) -> Answer | str:
    has_media = any(isinstance(block, MediaBlock) for block in found.blocks)
    return convert_media(found.blocks) if has_media else found.text
