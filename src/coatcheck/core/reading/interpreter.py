"""JMESPath with a budget: the same language, refused if it would run or grow without end.

A query of 200 characters can build a value of a billion nodes by naming the same part again and again
(``[@,@]|[@,@]|...``). Building it is cheap, since the parts are shared; comparing, printing or joining it is not. So
each step costs one unit, and walking through a value costs its size.

What a query compares is noted in ``compared``. Only evaluating belongs here.
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
"""Steps and sizes of one query, about a second of work."""

MAX_RESULT_UNITS = 2_000_000
"""The size of the largest result that is printed. No part of 8 MB of JSON is larger, unless it is all single digits."""

_CHARACTERS_PER_UNIT = 64
"""Text is copied and compared some hundred times as fast as it is interpreted."""

_CHARACTERS_ORDERED_PER_UNIT = 1_024
_MAX_ORDERINGS = 20
"""How often sorting compares each text in a list as long as the budget allows. Two texts are compared up to where they
differ, which takes as long as a step only if they share a thousand characters."""

_UNITS_OF_A_MISMATCH = 20
"""What a function costs if it refuses its argument: an exception takes as long as this many steps, and on JSON Lines
every line may raise one."""

_WORDS = {"true": True, "false": False}
"""What models write without backticks. Where no field has such a name, the literal is meant."""

_SEARCHES = frozenset({"contains", "starts_with", "ends_with"})

_WHICH_MATTER = {"sort": slice(None), "max": slice(-1, None), "min": slice(1)}
"""Of what a function orders, the part that its result depends on. ``sort_by`` and the like are the same."""

_END = object()
_STRINGS = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`"""
_NUMBER = r"(?<=[=<>,])(\s*)(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])"
_UNCLOSED = "(['\"`].*)"
_LITERALS = re.compile(f"{_STRINGS}|{_NUMBER}|{_UNCLOSED}", re.DOTALL)


class TooMuchWork(InvalidRequest):
    """A query costs more than its budget."""


class Evaluator:
    """One parsed query, and what is left of its budget."""

    def __init__(self, query: str) -> None:
        """Parse ``query``.

        Raises:
            InvalidRequest: it is not JMESPath, as the message says in the engine's words, or it is nested too deeply.

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
        """Start afresh with each right side of a comparison taken as text if it named a field that was never there.

        Models write text in double quotes, as in Python. Then the field is null, and every item without the left field
        matches. Return whether there was such a text.
        """
        if not self._compared.take_as_text():
            return False
        self.start_afresh()
        return True

    @property
    def notes(self) -> str:
        """What is likely to be wrong in the comparisons, for the header of the result."""
        return to_valid_unicode("".join(self._compared.notes()))

    def search(self, value: object) -> object:
        """Return what the query selects from ``value``. Calls share one budget, until the query starts afresh.

        Raises:
            MismatchedType: a function got a value of a type that it does not take.
            TooMuchWork: the query costs more than what is left of its budget.
            InvalidRequest: the query fails otherwise.

        """
        self._compared.asked.clear()
        try:
            found: object = self._interpreter.visit(self._parsed.parsed, value)
            self._compared.count_left_out()
        except RecursionError:
            raise InvalidRequest(wording.TOO_DEEP) from None
        except JMESPathTypeError as error:
            # Its own text prints the whole value, and a traceback that chains it would, too.
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
    """JMESPath's parser, with all that follows ``a.*`` applied to each value, as it is after ``*`` and ``a[*]``.

    And ``!a.b`` negates ``a.b``.
    """

    _CACHE: ClassVar[dict[str, ParsedResult]] = {}  # not the library's, which holds what it parses itself

    def _token_led_dot(self: Any, left: Any) -> Any:  # noqa: ANN401 - the stubs declare none of this
        if self._current_token() != "star":
            return super()._token_led_dot(left)  # type: ignore[misc]  # nor this
        self._advance()
        # The library gives the power of a dot, so that a.*.b.c asks the list of all b for c, and gets null.
        return ast.value_projection(left, self._parse_projection_rhs(self.BINDING_POWER["star"]))

    def _token_nud_not(self: Any, _: object) -> Any:  # noqa: ANN401
        # The library asks what !a is, true or false, for b or [?b], and gets null.
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
        """Charge every node of ``value``, a shared one each time it is met."""
        open_nodes, spent = [iter([value])], 0
        while open_nodes and spent <= self.left:
            node = next(open_nodes[-1], _END)
            spent += 1  # no call in here: Python 3.11 may pay ten times as much for one deep in a recursion
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
    """JMESPath's functions, each paid for before it is called."""

    def __init__(self, meter: _Meter, compared: Compared) -> None:
        self._meter = meter
        self._compared = compared
        self._keys: list[list[object]] = []
        """What items are ordered by, for each function that does so and has not ended."""

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
        """Return what ``sort_by``, ``max_by`` and ``min_by`` order an item by; each key is paid for when it is made."""
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
        if isinstance(item, float) and math.isnan(item):  # what is before and after it would be in any order
            raise InvalidRequest(wording.NOT_ORDERED)
        if isinstance(item, str):
            self._meter.charge(len(item) // _CHARACTERS_ORDERED_PER_UNIT * _MAX_ORDERINGS)

    def _charge_join(self, arguments: list[object]) -> None:
        """Charge the joined text: if arguments share one long string, their own size does not show its length."""
        separator, items = (*arguments, None, None)[:2]
        if isinstance(separator, str) and isinstance(items, list):
            lengths = sum(len(item) for item in items if isinstance(item, str))
            self._meter.charge_text(lengths + len(separator) * len(items))


class _Interpreter(TreeInterpreter):
    """JMESPath's interpreter, each step paid for before it is taken."""

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
        # For a number and a string, the library raises, although the language says null.
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
        """Return the items that match, without those whose types a function of the condition refuses.

        The library fails at the first such item. But one null is no reason to hide all the others, and a list of one
        null no reason to hide all other lists.
        """
        is_true: Callable[[object], bool] = self._is_true  # type: ignore[attr-defined]  # not in the stubs
        matching: list[object] = []
        asked = self._compared.asked[id(condition)]
        asked.items += len(items)
        for item in items:
            try:
                if is_true(self.visit(condition, item)):
                    matching.append(item)
            except JMESPathTypeError as error:  # noqa: PERF203 - no other item may suffer
                self._meter.charge(_UNITS_OF_A_MISMATCH)
                asked.refused[_mismatch(error)] += 1
        return matching

    def visit_function_expression(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        name, count = node["value"], len(node["children"])
        if name not in _SEARCHES or count != 2:  # noqa: PLR2004 - the text and what to find in it
            return super().visit_function_expression(node, value)
        text, wanted = arguments = [self._operand(child, value) for child in node["children"]]
        self._compared.see(node, ("other" if isinstance(text, list) else kind_of(text), kind_of(wanted)))
        # Null is what text in double quotes is at first. And for a number in a text, the library raises another error.
        if isinstance(text, str) and (wanted is None or (name == "contains" and not isinstance(wanted, str))):
            return False
        return self._functions.call_function(name, arguments)  # type: ignore[attr-defined]  # not in the stubs

    def _operand(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        """Return what is compared; the text or literal that a name must mean if there is no such field."""
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
        # Paid for before it is built: [@,@,...][] names one list of millions some hundred times.
        self._meter.charge(sum(len(item) if isinstance(item, list) else 1 for item in nested))
        return [part for item in nested for part in (item if isinstance(item, list) else (item,))]


def _mismatch(error: JMESPathTypeError) -> Mismatch:
    """Return what an error of the library says; a number that was written as text is called one."""
    actual = TYPES_MAP.get(error.actual_type, error.actual_type)
    if is_number_as_text(error.current_value):
        actual = wording.NUMERIC_STRING
    return error.function_name, tuple(error.expected_types), actual


def _quote_bare_literals(query: str) -> str:
    """Return ``query`` with quotes in literals such as `` `open` ``, and with backticks around bare numbers.

    Models write both. JMESPath accepts the first with a warning, and a host that turns warnings into errors would fail.
    A number after a comparison or a comma is an error in JMESPath, so it can mean nothing else.
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
