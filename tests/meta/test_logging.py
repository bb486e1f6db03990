"""Our logs never repeat the messages of other people's exceptions, which may quote the content of a tool result."""

from __future__ import annotations

import ast

import pytest

from tests.meta.source_tree import Module, modules

WRITING_TRACEBACKS = {"coatcheck.engine.events": 1}
"""The number of calls that a module may have. This one logs a listener that raised; listeners never get content."""


def tracebacks(module: Module) -> list[int]:
    """Return the lines of the calls that log an exception with its message."""
    return [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and (
            any(keyword.arg == "exc_info" for keyword in node.keywords)
            or (isinstance(node.func, ast.Attribute) and node.func.attr in {"print_exc", "format_exc"})
            # Without arguments, it is a future's ``exception()``.
            or (isinstance(node.func, ast.Attribute) and node.func.attr == "exception" and node.args)
        )
    ]


@pytest.mark.parametrize("module", [*modules("src"), *modules("adapters")], ids=lambda module: module.name)
def test_no_exception_is_logged_with_its_message(module: Module) -> None:
    assert len(tracebacks(module)) == WRITING_TRACEBACKS.get(module.name, 0), "use coatcheck.log_failure"


@pytest.mark.parametrize("module", modules("adapters"), ids=lambda module: module.name)
def test_an_adapters_logger_has_the_name_of_its_package(module: Module) -> None:
    named = [
        node.args[0].value
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "getLogger"
        if isinstance(node.args[0], ast.Constant)
    ]

    assert set(named) <= {module.name.partition(".")[0]}, "a level that a user sets for it must hold"
