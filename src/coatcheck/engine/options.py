"""The keyword arguments of ``Offloader``: their types, for type checkers, and the error for one that does not exist.

It loads nothing else, because every adapter imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.policy import Policy
    from coatcheck.core.settings import Settings
    from coatcheck.core.tokens import TokenCounter
    from coatcheck.engine.events import Listener

__all__ = ("OffloaderOptions", "OtherOptions", "check_options")


class OtherOptions(TypedDict, total=False):
    """``OffloaderOptions`` without the two sizes, for adapters that declare those as their own parameters."""

    policies: Mapping[Any, Policy] | None  # as in ``Settings``
    token_counter: TokenCounter | None
    max_retrieval_tokens: int | None
    max_inline_tokens: int
    max_step_tokens: int | None
    max_query_bytes: int
    offload_errors: bool
    show_path: bool
    list_arguments: bool
    require_scope: bool
    network_threads: int
    queue_seconds: float

    settings: Settings | None
    """A ready ``Settings``. None: the defaults."""

    on_event: Listener | Sequence[Listener] | None
    """A callable, or a sequence of callables, called with each ``Event``; neither async nor a class. If it raises, the
    error is logged and counted. If it blocks, it delays the call that the event is about; in the async methods, it
    never blocks the event loop."""


class OffloaderOptions(OtherOptions, total=False):
    """The keyword arguments of ``Offloader``, for type checkers: ``**options: Unpack[OffloaderOptions]``.

    ``Settings`` documents its fields. A field passed together with ``settings`` replaces the value there.
    """

    max_result_tokens: int
    preview_tokens: int | None


def check_options(options: Mapping[str, object], *, owner: Callable[..., object]) -> None:
    """Check that ``Offloader`` has each of these keyword arguments; ``owner`` is what the user called.

    Raises:
        TypeError: it lacks one. The message lists the options and suggests the nearest name among them and the owner's
            own arguments.

    """
    sizes = OffloaderOptions.__annotations__.keys() - OtherOptions.__annotations__.keys()
    known = (*sorted(sizes), *OtherOptions.__annotations__)
    for name in options:
        if name not in known:
            nearest = _nearest(name, (*known, *_own_names(owner)))
            hint = "" if nearest is None else f" Did you mean {nearest!r}?"
            called = getattr(owner, "__name__", owner)
            msg = f"{called} has no argument {name!r}.{hint} The options of an Offloader are: {', '.join(known)}"
            raise TypeError(msg)


def _own_names(owner: Callable[..., object]) -> Sequence[str]:
    """Return the names of the arguments that a class or function declares itself."""
    with loading:
        import inspect  # noqa: PLC0415 - only for the message

    parameters = inspect.signature(owner).parameters.values()
    return [each.name for each in parameters if each.kind in {each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD}]


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the first name that has all the words of ``name``, else the one with the most similar spelling."""
    with loading:
        from difflib import get_close_matches  # noqa: PLC0415 - only for the message

    words = set(name.split("_"))
    longer = (each for each in known if words <= set(each.split("_")))
    return next(longer, None) or next(iter(get_close_matches(name, known, n=1)), None)
