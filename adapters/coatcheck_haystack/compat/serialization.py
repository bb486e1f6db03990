"""Convert a hook and a retrieval tool to dictionaries as Haystack does: plain values, and types by name.

Only stores, strategies and options are converted here. Stores and policies with Haystack's interface convert
themselves. A ``FileStorage`` becomes its folder and limits, and a policy of the core becomes its numbers. What cannot
be serialized is refused, with a message that says what to do.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from haystack.core.errors import SerializationError
from haystack.utils.deserialization import deserialize_component_inplace

from coatcheck import FileStorage, Offloader
from coatcheck_haystack.compat.strategies import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck_haystack.compat.strategies import Strategies
    from coatcheck_haystack.options import Source

__all__ = ("source_from_dict", "source_to_dict", "strategies_from_dict", "strategies_to_dict")

_FILES = "coatcheck.FileStorage"
_RULES = {f"coatcheck.{rule.__name__}": rule for rule in RULES}
_PLAIN = (str, int, float, bool, type(None))
_INSTEAD = {
    "scope": "Leave it out, and set the scope of each run with hook_context or `with coatcheck.scope(...)`",
    "settings": "Pass what it holds as arguments",
}
_USE = {
    "strategy": "a policy with to_dict, such as OffloadOverTokens or a subclass of OffloadPolicy",
    "policy": "Always, Never, OverTokens, OverChars or OverShare",
}


def source_to_dict(source: Source, owner: str, *, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return store, scope and options as plain values. ``options``, if given, replace those of the source.

    Raises:
        SerializationError: one of them is not a plain value. The message says what to pass instead.

    """
    written = dict(source.options if options is None else options)
    policies = written.pop("policies", None)
    scope = list(source.scope) if isinstance(source.scope, tuple) else source.scope
    for name, value in {"scope": None if isinstance(scope, list) else scope, **written}.items():
        if not isinstance(value, _PLAIN):
            instead = _INSTEAD.get(name, "Leave it out, or make the agent in Python")
            msg = f"{owner} cannot be serialized: {name} is {value!r}. {instead}"
            raise SerializationError(msg)
    if policies is not None:
        written["policies"] = strategies_to_dict(policies, owner, kind="policy")
    return {"store": _store_to_dict(source.given, owner), "scope": scope, **written}


def source_from_dict(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that ``source_to_dict`` serialized. Haystack's allowlist decides which types are loaded."""
    arguments = dict(data)
    store, scope = arguments.get("store"), arguments.get("scope")
    if isinstance(scope, list):
        arguments["scope"] = tuple(scope)
    if arguments.get("policies") is not None:
        arguments["policies"] = strategies_from_dict(arguments["policies"])
    if isinstance(store, dict) and store.get("type") == _FILES:
        arguments["store"] = FileStorage(**store["init_parameters"])
    elif store is not None:
        deserialize_component_inplace(arguments, key="store")
    return arguments


def strategies_to_dict(strategies: Strategies, owner: str, *, kind: str = "strategy") -> dict[str, Any]:
    """Return strategies, or policies of the core, by ``str`` keys. A tuple of names becomes a JSON list.

    Raises:
        SerializationError: a strategy has no ``to_dict`` and is not one of the core's five policies.

    """
    written: dict[str, Any] = {}
    for key, strategy in strategies.items():
        name = json.dumps(list(key)) if isinstance(key, tuple) else key
        if hasattr(strategy, "to_dict"):
            written[name] = strategy.to_dict()
        elif isinstance(strategy, RULES):
            written[name] = {"type": f"coatcheck.{type(strategy).__name__}", "init_parameters": asdict(strategy)}
        else:
            msg = f"{owner} cannot be serialized: the {kind} of {key!r} is {strategy!r}. Use {_USE[kind]}"
            raise SerializationError(msg)
    return written


def strategies_from_dict(data: Mapping[str, Any]) -> dict[str | tuple[str, ...], Any]:
    """Return the strategies that ``strategies_to_dict`` serialized."""
    loaded = dict(data)
    for key, written in data.items():
        rule = _RULES.get(written.get("type", "")) if isinstance(written, dict) else None
        if rule is not None:
            loaded[key] = rule(**written["init_parameters"])
        else:
            deserialize_component_inplace(loaded, key=key)
    return {tuple(json.loads(key)) if key.startswith("[") else key: value for key, value in loaded.items()}


def _store_to_dict(store: object, owner: str) -> dict[str, Any]:
    if type(store) is FileStorage:  # a subclass would lose its overrides
        limits = {name: getattr(store, name) for name in ("max_age", "max_bytes", "max_scope_bytes")}
        if isinstance(limits["max_age"], timedelta):
            limits["max_age"] = limits["max_age"].total_seconds()
        parameters = {"root": store.given_root, "fsync": store.fsync, "refresh_on_read": store.refresh_on_read}
        parameters |= {name: limit for name, limit in limits.items() if limit is not None}
        return {"type": _FILES, "init_parameters": parameters}
    if isinstance(store, Offloader):
        msg = f"{owner} cannot be serialized: it has a ready Offloader. Pass the storage and the options instead"
        raise SerializationError(msg)
    if not hasattr(store, "to_dict"):
        msg = (
            f"{owner} cannot be serialized: {type(store).__name__} has no to_dict. Use FileStorage or"
            " FileSystemToolResultStore, or give your storage to_dict and from_dict"
        )
        raise SerializationError(msg)
    written: dict[str, Any] = store.to_dict()
    return written
