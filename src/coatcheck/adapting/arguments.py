"""Checks what users pass to an adapter, and resolves it: a scope, a storage with options, names of tools.

Only checking and choosing belong here. A scope comes from the host or from the framework, never from a model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck.core.amounts import parse_bytes, parse_seconds
from coatcheck.core.checks import is_count, is_number, require_flag
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import loading
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.references import Scope
from coatcheck.engine.failures import logger, write
from coatcheck.engine.options import OtherOptions, check_options
from coatcheck.scopes import hold_scope, require_scope

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from coatcheck.offloader import Offloader
    from coatcheck.storage.protocol import NamesReferences, Storage

__all__ = (
    "OtherOptions",
    "ScopeOption",
    "StorageOrOffloader",
    "check_flags",
    "check_name",
    "check_names",
    "check_scope",
    "enter_scope",
    "is_count",
    "is_number",
    "make_offloader",
    "parse_bytes",
    "parse_seconds",
    "refuse_name_clash",
    "refuse_options",
    "resolve_scope",
)

ScopeOption: TypeAlias = Scope | Callable[[Any], "Scope | None"] | None
"""A scope, or a callable that takes the framework's own object and returns one. If either is None, the next source
decides: the ambient scope, then the framework's identity of the conversation, then ``"default"``."""

if TYPE_CHECKING:
    StorageOrOffloader: TypeAlias = Offloader | Storage | NamesReferences
    """What users pass to store content: a storage, or an offloader around one."""


def __getattr__(name: str) -> object:
    """Return ``StorageOrOffloader`` on demand: building it loads the engine, which a mere annotation must not do."""
    if name != "StorageOrOffloader":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    with loading:
        from coatcheck.offloader import Offloader  # noqa: PLC0415 - see above
        from coatcheck.storage.protocol import NamesReferences, Storage  # noqa: PLC0415

    return Offloader | Storage | NamesReferences


def check_scope(scope: ScopeOption) -> ScopeOption:
    """Return ``scope`` if it is valid.

    Raises:
        InvalidRequest: it is neither a scope nor a callable nor None.

    """
    if scope is None or callable(scope):
        return scope
    try:
        require_scope(scope)
    except InvalidRequest as error:
        msg = f"{error}. A callable that returns the scope of a call, or None, also works"
        raise InvalidRequest(msg) from None
    return scope


def resolve_scope(scope: ScopeOption, context: object) -> Scope | None:
    """Return the scope of a call; a callable is called with ``context``, the framework's own object."""
    return scope(context) if callable(scope) else scope


def enter_scope(scope: Scope | None) -> AbstractContextManager[None]:
    """Return a context manager that makes ``scope`` the ambient one. None changes nothing."""
    return nullcontext() if scope is None else hold_scope(scope)


def make_offloader(
    storage: StorageOrOffloader | None,
    options: Mapping[str, Any],
    *,
    owner: Callable[..., object] | None = None,
    no_steps: str | None = None,
    is_whole: bool = False,
) -> Offloader:
    """Return the offloader that a user passed, or make one from the storage that they passed.

    The engine is loaded here, to keep the import of an adapter fast.

    Args:
        storage: a storage, or a ready ``Offloader``.
        options: the keyword arguments of ``Offloader`` that the user passed.
        owner: the class or function that the user passed them to, for error messages. None: ``Offloader``.
        no_steps: for an adapter that sees one call at a time: what to tell a user who passes ``max_step_tokens``. If a
            ready ``Offloader`` has that setting, this is logged.
        is_whole: whether the owner both offloads and reads back. If so, no storage means a new ``InMemoryStorage``.

    Raises:
        InvalidRequest: there is no storage and no offloader, a ready offloader came with options, or
            ``max_step_tokens`` would do nothing.
        TypeError: ``Offloader`` has no such option; the message names the nearest.

    """
    with loading:
        from coatcheck.offloader import Offloader  # noqa: PLC0415 - see above

    check_options(options, owner=owner or Offloader)
    in_settings = getattr(options.get("settings"), "max_step_tokens", None)
    if no_steps is not None and options.get("max_step_tokens", in_settings) is not None:
        msg = f"max_step_tokens would do nothing here: {no_steps}"
        raise InvalidRequest(msg)
    if storage is None and not is_whole:
        # If each part made a storage of its own, no read-back would find anything.
        msg = "pass the storage or the Offloader that all parts share: what offloads and what reads back must use one"
        raise InvalidRequest(msg)
    if not isinstance(storage, Offloader):
        return Offloader(storage, **options)
    refuse_options(options)
    if no_steps is not None and storage.settings.max_step_tokens is not None:  # it may work for others that share it
        write(logger, logging.WARNING, "max_step_tokens of this Offloader does nothing here: %s", no_steps)
    return storage


def refuse_options(names: Collection[str]) -> None:
    """Refuse options that came with a ready ``Offloader``, which would ignore them.

    Raises:
        InvalidRequest: there are any.

    """
    if names:
        msg = f"a ready Offloader has its own {', '.join(names)}; set them on the Offloader, or pass its storage"
        raise InvalidRequest(msg)


def check_flags(**flags: object) -> None:
    """Check that each argument is a boolean.

    Raises:
        InvalidRequest: one is not, such as a string from the environment: ``"false"`` would count as true.

    """
    for name, value in flags.items():
        require_flag(name, value)


def check_name(what: str, name: str | None) -> str | None:
    """Return ``name`` if it is a valid name or None.

    Raises:
        InvalidRequest: it is neither a non-empty ``str`` nor None.

    """
    if name is None or (isinstance(name, str) and name):
        return name
    msg = f"{what} must be a non-empty str or None, not {name!r}"
    raise InvalidRequest(msg)


def check_names(what: str, names: Collection[str]) -> frozenset[str]:
    """Return names of tools as a set.

    Raises:
        InvalidRequest: ``names`` is a single ``str`` or not a collection, or holds anything but ``str``.

    """
    if isinstance(names, Collection) and not isinstance(names, str) and all(isinstance(name, str) for name in names):
        return frozenset(names)
    msg = f"{what} must be a collection of tool names, such as ['read_file', 'grep'], not {names!r}"
    raise InvalidRequest(msg)


def refuse_name_clash(names: Collection[str], *, retrieval_tool: str = RETRIEVAL_TOOL) -> None:
    """Refuse a user's tool with the name of the retrieval tool, if the framework shows the tools early enough.

    Raises:
        InvalidRequest: there is such a tool. A model could call only one of the two.

    """
    if retrieval_tool in names:
        msg = f"the name {retrieval_tool!r} is taken by a tool of yours, so the model cannot read back: rename it"
        raise InvalidRequest(msg)
