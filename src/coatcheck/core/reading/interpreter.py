"""JMESPath with a budget: the same language, but a query that would run or grow without end is refused.

A query of 200 characters can build a value of a billion nodes by naming the same part again and again
(``[@,@]|[@,@]|...``). Building it is cheap, since the parts are shared; comparing, printing or joining it is not. So
each step costs one unit, and walking through a value costs its size.

``compared`` records what a query compares. Only evaluating belongs here.
"""

from __future__ import annotations

import json
import math
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from jmespath import ast
from jmespath.exceptions import JMESPathError, JMESPathTypeError, UnknownFunctionError
from jmespath.functions import TYPES_MAP, Functions
from jmespath.parser import Parser
from jmespath.visitor import Options, TreeInterpreter

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import wording
from coatcheck.core.reading.compared import Compared, Mismatch, MismatchedType, is_number_as_text, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jmespath.parser import ParsedResult

__all__ = ("MAX_UNITS", "Evaluator", "TooMuchWork", "check_size")

MAX_UNITS = 1_000_000
"""Units that one query may spend on steps and sizes: about a second of work."""

MAX_RESULT_UNITS = 2_000_000
"""Units of the largest result that is printed. No part of 8 MB of JSON is larger, unless it is all single digits."""

_CHARACTERS_PER_UNIT = 64
"""Characters that cost one unit: text is copied and compared about a hundred times as fast as it is interpreted."""

_CHARACTERS_ORDERED_PER_UNIT = 1_024
_MAX_ORDERINGS = 20
"""How often sorting compares each string in a list that is as long as the budget allows. Two strings are compared up to
where they differ, which takes as long as a step only if they share a thousand characters."""

_UNITS_OF_A_MISMATCH = 20
"""Units that a function costs if it refuses its argument: an exception takes as long as this many steps, and on JSON
Lines every line may raise one."""

_WORDS = {"true": True, "false": False}
"""Literals that models write without backticks. They count as literals where no field has that name."""

_SEARCHES = frozenset({"contains", "starts_with", "ends_with"})

_WHICH_MATTER = {"sort": slice(None), "max": slice(-1, None), "min": slice(1)}
"""For each function that orders values, the part of the order that its result depends on. It is the same for
``sort_by`` and the like."""

_END = object()
_STRINGS = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`"""
_NUMBER = r"(?<=[=<>,])(\s*)(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])"
_UNCLOSED = "(['\"`].*)"
_LITERALS = re.compile(f"{_STRINGS}|{_NUMBER}|{_UNCLOSED}", re.DOTALL)


class TooMuchWork(InvalidRequest):
    """A query costs more than its budget."""


class Evaluator:
    """A parsed query, and what is left of its budget."""

    def __init__(self, query: str) -> None:
        """Parse ``query``.

        Raises:
            InvalidRequest: it is not JMESPath (the message quotes the engine), or it is nested too deeply.

        """
        try:
            self._parsed: ParsedResult = _Parser().parse(_quote_bare_literals(query))
        except RecursionError:
            raise InvalidRequest(wording.TOO_DEEP) from None
        except (JMESPathError, LookupError, TypeError, AttributeError) as error:
            raise InvalidRequest(wording.invalid_query(to_valid_unicode(str(error)))) from None
        self._compared = Compared()
        self.start_afresh()

    def start_afresh(self) -> None:
        """Give the query its whole budget again."""
        self._compared.left_out.clear()
        self._meter = _Meter(MAX_UNITS)
        self._interpreter = _Interpreter(self._meter, self._compared)

    def take_fields_as_text(self) -> bool:
        """Start afresh, taking as text each right side of a comparison that named a field that was never there.

        Models put text in double quotes, as in Python. JMESPath looks for a field of that name, gets null, and so
        matches every item without the left field. Return whether there was such text.
        """
        if not self._compared.take_as_text():
            return False
        self.start_afresh()
        return True

    @property
    def notes(self) -> str:
        """What is probably wrong with the comparisons, for the header of the result."""
        return to_valid_unicode("".join(self._compared.notes()))

    def search(self, value: object) -> object:
        """Return what the query selects from ``value``. Calls share one budget, until the query starts afresh.

        Raises:
            MismatchedType: a function got a value of a type that it does not accept.
            TooMuchWork: the query costs more than what is left of its budget.
            InvalidRequest: the query fails for another reason.

        """
        self._compared.asked.clear()
        try:
            found: object = self._interpreter.visit(self._parsed.parsed, value)
            self._compared.count_left_out()
        except RecursionError:
            raise InvalidRequest(wording.TOO_DEEP) from None
        except JMESPathTypeError as error:
            # Its own message prints the whole value, and so would a traceback that chains it.
            mismatch = MismatchedType(wording.mismatched(*(self._compared.refusal() or _mismatch(error))))
        except UnknownFunctionError as error:
            known = sorted(_Functions.FUNCTION_TABLE)
            raise InvalidRequest(wording.unknown_function(to_valid_unicode(str(error)), known)) from None
        except InvalidRequest:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # JMESPathError is a ValueError
            raise InvalidRequest(wording.invalid_query(to_valid_unicode(str(error)))) from None
        else:
            return found
        self._meter.charge(_UNITS_OF_A_MISMATCH)
        raise mismatch


def check_size(value: object) -> None:
    """Refuse a value that is too large to print, or that is not a JSON value.

    Raises:
        TooMuchWork: it is too large; select less.
        InvalidRequest: it holds an expression.

    """
    try:
        _Meter(MAX_RESULT_UNITS).charge_walk(value)
    except TypeError as error:
        raise InvalidRequest(wording.invalid_query(str(error))) from None


class _Parser(Parser):
    """JMESPath's parser, except that what follows ``a.*`` applies to each value, as it does after ``*`` and ``a[*]``.

    Also, ``!a.b`` negates ``a.b``.
    """

    _CACHE: ClassVar[dict[str, ParsedResult]] = {}  # not the library's, which holds what its own parser parsed

    def _token_led_dot(self: Any, left: Any) -> Any:  # noqa: ANN401 - the stubs declare none of this
        if self._current_token() != "star":
            return super()._token_led_dot(left)  # type: ignore[misc]  # nor this
        self._advance()
        # The library uses the binding power of a dot, so a.*.b.c looks up c in the list of all b, and gets null.
        return ast.value_projection(left, self._parse_projection_rhs(self.BINDING_POWER["star"]))

    def _token_nud_not(self: Any, _: object) -> Any:  # noqa: ANN401
        # The library looks up b or [?b] in the boolean !a, and gets null.
        return ast.not_expression(self._expression(self.BINDING_POWER["eq"]))


class _Meter:
    """Units left to spend."""

    def __init__(self, units: int) -> None:
        self.left = units

    def charge(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TooMuchWork(wording.TOO_MUCH_WORK)

    def charge_text(self, characters: int) -> None:
        self.charge(characters // _CHARACTERS_PER_UNIT)

    def charge_walk(self, value: object) -> None:
        """Charge every node of ``value``, a shared one each time that it is met."""
        open_nodes, spent = [iter([value])], 0
        while open_nodes and spent <= self.left:
            node = next(open_nodes[-1], _END)
            spent += 1  # no calls here: deep in a recursion, Python 3.11 may pay ten times as much for one
            if node is _END:
                open_nodes.pop()
            elif isinstance(node, str):
                spent += len(node) // _CHARACTERS_PER_UNIT
            elif isinstance(node, list):
                open_nodes.append(iter(node))
            elif isinstance(node, dict):
                open_nodes.append(iter(node.values()))
            elif node is not None and not isinstance(node, (int, float)):
                msg = "an expression (&...) is not a value; it is an argument of functions such as sort_by"
                raise TypeError(msg)
        self.charge(spent)


class _Functions(Functions):
    """JMESPath's functions, each charged before it is called."""

    def __init__(self, meter: _Meter, compared: Compared) -> None:
        self._meter = meter
        self._compared = compared
        self._keys: list[list[object]] = []
        """What items are ordered by, for each ordering function that is still running."""

    def call_function(self, function_name: str, resolved_args: Any) -> Any:  # noqa: ANN401 - as the base declares it
        self._charge(function_name, resolved_args)
        running = len(self._keys)
        try:
            result = super().call_function(function_name, resolved_args)
            if function_name == "to_number" and result is None:
                self._compared.see_unread(resolved_args[0])
            ordering = function_name.removesuffix("_by")
            if ordering in _WHICH_MATTER:
                ordered = resolved_args[0] if ordering == function_name else chain(*self._keys[running:])
                self._compared.see_order(ordered, _WHICH_MATTER[ordering])
        finally:
            del self._keys[running:]
        return result

    def _charge(self, function_name: str, arguments: list[object]) -> None:
        for argument in arguments:
            if isinstance(argument, str):
                self._meter.charge_text(len(argument))
            elif isinstance(argument, (list, dict)):
                self._meter.charge(len(argument))
        if function_name in {"to_string", "contains"}:
            for argument in arguments:
                self._meter.charge_walk(argument)
        elif function_name == "join":
            self._charge_join(arguments)
        elif function_name in {"sort", "max", "min"}:
            for items in arguments:
                for item in items if isinstance(items, list) else ():
                    self._charge_ordering(item)

    def _create_key_func(self, expref: Any, allowed_types: Any, function_name: Any) -> Any:  # noqa: ANN401
        """Return the key function of ``sort_by``, ``max_by`` and ``min_by``. Each key is charged when it is made."""
        if expref.expression["type"] == "literal":
            text = to_valid_unicode(str(expref.expression["value"]))
            raise InvalidRequest(wording.constant_key(function_name, text))
        key_of = super()._create_key_func(expref, allowed_types, function_name)  # type: ignore[misc]  # not in the stubs
        keys: list[object] = []
        self._keys.append(keys)

        def key(item: object) -> object:
            made = key_of(item)
            self._charge_ordering(made)
            keys.append(made)
            return made

        return key

    def _charge_ordering(self, item: object) -> None:
        if isinstance(item, float) and math.isnan(item):  # values before and after it would be in any order
            raise InvalidRequest(wording.NOT_ORDERED)
        if isinstance(item, str):
            self._meter.charge(len(item) // _CHARACTERS_ORDERED_PER_UNIT * _MAX_ORDERINGS)

    def _charge_join(self, arguments: list[object]) -> None:
        """Charge the joined text: where items share one long string, the arguments' size hides its length."""
        separator, items = (*arguments, None, None)[:2]
        if isinstance(separator, str) and isinstance(items, list):
            lengths = sum(len(item) for item in items if isinstance(item, str))
            self._meter.charge_text(lengths + len(separator) * len(items))


class _Interpreter(TreeInterpreter):
    """JMESPath's interpreter, each step charged before it is taken."""

    def __init__(self, meter: _Meter, compared: Compared) -> None:
        super().__init__(Options(custom_functions=_Functions(meter, compared)))
        self._meter = meter
        self._compared = compared

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the base declares it
        self._meter.charge(1)
        return super().visit(node, *args, **kwargs)

    def visit_comparator(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        first, second = node["children"]
        left, right = self._operand(first, value), self._operand(second, value)
        kind, other = kinds = kind_of(left), kind_of(right)
        self._compared.see(node, kinds)
        compare = self.COMPARATOR_FUNC[node["value"]]
        self._charge_comparison(left, right)
        if node["value"] in {"eq", "ne"}:
            return compare(left, right)
        self._compared.see_numbers(first, second, left, right)
        # For a number and a string, the library raises, although the language specifies null.
        return compare(left, right) if kind == other in {"text", "number"} else None

    def visit_filter_projection(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        base, projected, condition = node["children"]
        items = self.visit(base, value)
        self._compared.filtered.setdefault(id(node), set()).add(type(items))
        if not isinstance(items, list):
            return None
        found = [self.visit(projected, item) for item in self._matching(condition, items)]
        return [each for each in found if each is not None]

    def _matching(self, condition: Any, items: list[object]) -> list[object]:  # noqa: ANN401 - a node
        """Return the items that match, without those whose type a function of the condition refuses.

        The library fails at the first such item. But one null must not hide all other items, nor a list of one null all
        other lists.
        """
        is_true: Callable[[object], bool] = self._is_true  # type: ignore[attr-defined]  # not in the stubs
        matching: list[object] = []
        asked = self._compared.asked[id(condition)]
        asked.items += len(items)
        for item in items:
            try:
                if is_true(self.visit(condition, item)):
                    matching.append(item)
            except JMESPathTypeError as error:  # noqa: PERF203 - one item must not fail the others
                self._meter.charge(_UNITS_OF_A_MISMATCH)
                asked.refused[_mismatch(error)] += 1
        return matching

    def visit_function_expression(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        name, count = node["value"], len(node["children"])
        if name not in _SEARCHES or count != 2:  # noqa: PLR2004 - the text and what to find in it
            return super().visit_function_expression(node, value)
        text, wanted = arguments = [self._operand(child, value) for child in node["children"]]
        self._compared.see(node, ("other" if isinstance(text, list) else kind_of(text), kind_of(wanted)))
        # Text in double quotes is null at first. And for a number in a string, the library raises another error.
        if isinstance(text, str) and (wanted is None or (name == "contains" and not isinstance(wanted, str))):
            return False
        return self._functions.call_function(name, arguments)  # type: ignore[attr-defined]  # not in the stubs

    def _operand(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        """Return the value to compare; for a name without a field, the text or literal that it must mean."""
        if id(node) in self._compared.texts:
            return node["value"]
        found = self.visit(node, value)
        if found is not None or node["type"] != "field":
            return found
        if isinstance(value, dict) and node["value"] in value:
            self._compared.present.add(id(node))
            return None
        return _WORDS.get(node["value"])

    def _charge_comparison(self, left: object, right: object) -> None:
        if isinstance(left, (list, dict)) and type(left) is type(right):
            self._meter.charge_walk(left)
        elif isinstance(left, str) and isinstance(right, str):
            self._meter.charge_text(min(len(left), len(right)))

    def visit_flatten(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        nested = self.visit(node["children"][0], value)
        if not isinstance(nested, list):
            return None
        # Charged before it is built: [@,@,...][] may name a list of millions a hundred times.
        self._meter.charge(sum(len(item) if isinstance(item, list) else 1 for item in nested))
        return [part for item in nested for part in (item if isinstance(item, list) else (item,))]


def _mismatch(error: JMESPathTypeError) -> Mismatch:
    """Return the mismatch that a library error reports; a number written as text is named as such."""
    actual = TYPES_MAP.get(error.actual_type, error.actual_type)
    if is_number_as_text(error.current_value):
        actual = wording.NUMERIC_STRING
    return error.function_name, tuple(error.expected_types), actual


def _quote_bare_literals(query: str) -> str:
    """Add quotes in literals such as `` `open` ``, and backticks around bare numbers.

    Models omit both. JMESPath accepts the first with a warning, and a host that turns warnings into errors would fail.
    A bare number after a comparison or a comma is an error in JMESPath, so it can mean nothing else.
    """
    return _LITERALS.sub(_quoted, query)


def _quoted(found: re.Match[str]) -> str:
    literal = found[0]
    if found[2] is not None:
        return f"{found[1]}`{found[2]}`"
    if not literal.startswith("`") or found[3] is not None:
        return literal
    content = literal[1:-1]
    try:
        json.loads(content.replace("\\`", "`"))
    except (ValueError, RecursionError):
        return f'`"{content.lstrip()}"`'
    return literal
