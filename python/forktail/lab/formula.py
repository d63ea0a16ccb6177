# SPDX-License-Identifier: MIT
"""Arithmetic of scenarios: in templates "{keys*2/3}", and in tables' columns "run.SET.rps / base.run.SET.rps".

Operators are + - * / ^, comparisons, && || and "a ? b : c", which Python's own parser does not have. The caller
provides the figures, so that a scenario can be checked before it runs.
"""

import math
import re
from collections.abc import Callable, Mapping

from forktail.failure import USAGE, Failure

Figures = Callable[[str], float | None]


class FormulaError(Exception):
    """Why an expression cannot be evaluated: 'unknown name "x"', 'unexpected ")"'."""


# A name may contain dots, {row} and {variable}.
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>(?:[A-Za-z_]|\{\w+\})(?:[\w.]|\{\w+\})*)"
    r"|(?P<operator>\|\||&&|[<>=!]=|[-+*/^<>])|(?P<other>\S)",
    re.ASCII,
)


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _ieee(function: Callable[..., float]) -> Callable[..., float]:
    """The function with infinity and NaN as results where Python raises an exception."""

    def result(*arguments: float) -> float:
        try:
            return function(*arguments)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if arguments == (0,) and "log" in function.__name__ else math.nan

    return result


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(function(x)) if math.isfinite(x) else x


# Precedence and meaning. ^ binds to the right, and tighter than a sign before it.
_POWER = 6
_OPERATORS: dict[str, tuple[int, Callable[[float, float], float]]] = {
    "||": (1, lambda a, b: float(a != 0 or b != 0)),
    "&&": (2, lambda a, b: float(a != 0 and b != 0)),
    "<": (3, lambda a, b: float(a < b)),
    ">": (3, lambda a, b: float(a > b)),
    "<=": (3, lambda a, b: float(a <= b)),
    ">=": (3, lambda a, b: float(a >= b)),
    "==": (3, lambda a, b: float(a == b)),
    "!=": (3, lambda a, b: float(a != b)),
    "+": (4, lambda a, b: a + b),
    "-": (4, lambda a, b: a - b),
    "*": (5, lambda a, b: a * b),
    "/": (5, _divide),
    "^": (_POWER, _ieee(math.pow)),
}
_OF_ONE: dict[str, Callable[[float], float]] = {
    name: _ieee(getattr(math, name)) for name in ("log2", "log10", "log", "sqrt", "exp")
} | {
    "ln": _ieee(math.log),
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "rint": _whole(lambda x: math.floor(x + 0.5)),
    "sign": lambda x: float((x > 0) - (x < 0)),
}
_OF_SEVERAL: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
}
_CONSTANTS = {"_pi": math.pi, "_e": math.e}


class _Parser:
    """Recursive descent, left to right; each method returns the value of what it has read."""

    def __init__(self, text: str, names: Mapping[str, float]) -> None:
        self.names = {**_CONSTANTS, **names}
        self.tokens = ["", *(match[0] for match in reversed(list(_TOKEN.finditer(text))))]  # the next one is the last

    def take(self, token: str) -> bool:
        """Reads the next token if it is this one."""
        found = self.tokens[-1] == token
        if found:
            self.tokens.pop()
        return found

    def need(self, token: str) -> None:
        """Refuses another token than this."""
        if not self.take(token):
            found = self.tokens[-1]
            raise FormulaError(f'unexpected "{found}"' if found else "it ends too early")

    def call(self, name: str) -> float:
        """The arguments of a function, after its parenthesis."""
        arguments = [self.choice()]
        while self.take(","):
            arguments.append(self.choice())
        self.need(")")
        if name in _OF_SEVERAL:
            return _OF_SEVERAL[name](arguments)
        if name not in _OF_ONE:
            raise FormulaError(f'unknown function "{name}"')
        if len(arguments) > 1:
            raise FormulaError(f'the function "{name}" has one argument')
        return _OF_ONE[name](arguments[0])

    def operand(self) -> float:
        if self.take("-"):
            return -self.binary(_POWER)
        if self.take("+"):
            return self.binary(_POWER)
        if self.take("("):
            value = self.choice()
            self.need(")")
            return value
        match = _TOKEN.match(self.tokens[-1])
        if match and match["number"]:
            return float(self.tokens.pop())
        if not match or not match["name"]:
            self.need("a value")
        name = self.tokens.pop()
        if self.take("("):
            return self.call(name)
        if name not in self.names:
            raise FormulaError(f'unknown name "{name}"')
        return self.names[name]

    def binary(self, least: int) -> float:
        """Operators of at least this precedence."""
        value = self.operand()
        while _OPERATORS.get(self.tokens[-1], (0,))[0] >= least:
            precedence, function = _OPERATORS[self.tokens.pop()]
            value = function(value, self.binary(precedence if precedence == _POWER else precedence + 1))
        return value

    def choice(self) -> float:
        value = self.binary(1)
        if not self.take("?"):
            return value
        yes = self.choice()
        self.need(":")
        no = self.choice()
        return yes if value else no


def calculate(expression: str, names: Mapping[str, float]) -> float:
    """The value, which may be infinite or NaN. Raises FormulaError."""
    if not expression.strip():
        raise FormulaError("it is empty")
    parser = _Parser(expression, names)
    try:
        value = parser.choice()
    except RecursionError:
        raise FormulaError("it has too many parentheses") from None
    parser.need("")
    return value


def check_formula(formula: str) -> None:
    """Raises Failure for an invalid formula. {row} and {variable} are allowed."""
    work_out(formula, lambda name: 1)


def names_in(formula: str) -> list[str]:
    """The figures and variables in the formula, each once, as written: "run.{row}.rps", "base.run.rps"."""
    names = {
        match["name"]: None
        for match in _TOKEN.finditer(formula)
        if match["name"] and formula[match.end() :].lstrip(" ")[:1] != "(" and match["name"] not in _CONSTANTS
    }
    return list(names)


def with_row(text: str, row: str) -> str:
    """Replaces {row} by the row's name in figures."""
    return text.replace("{row}", figure_name(row))


def with_values(text: str, values: Mapping[str, str]) -> str:
    """Replaces {variable} by its value in figures: "run.cause.{cause}.time"."""
    return re.sub(r"\{(\w+)\}", lambda match: figure_name(values[match[1]]) if match[1] in values else match[0], text)


def figure_name(text: str) -> str:
    """ "READ-MODIFY-WRITE" -> "READ_MODIFY_WRITE"."""
    return re.sub(rb"[^A-Za-z0-9]", b"_", text.encode(errors="surrogateescape")).decode()


def work_out(formula: str, figure: Figures) -> float | None:
    """Evaluates the formula with these figures; None if one is missing or the result is not a number.

    Raises Failure for an invalid formula.
    """
    figures = {name: figure(name) for name in names_in(formula)}
    try:
        value = calculate(formula, {name: 1 if number is None else number for name, number in figures.items()})
    except FormulaError as error:
        raise Failure(f'"{formula}" is not a formula: {error}', USAGE) from None
    return value if None not in figures.values() and math.isfinite(value) else None
