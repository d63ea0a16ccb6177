# SPDX-License-Identifier: MIT
"""Arithmetic of scenarios: in templates "{keys*2/3}", and in tables' columns "run.SET.rps / base.run.SET.rps".

Operators, functions and messages are muparser's (https://beltoforion.de/en/muparser/features.php). Python's own parser
has others: ^ is a power here, and ?: selects. The caller provides the figures, so that a scenario can be checked before
it runs.
"""

import math
import re
from collections.abc import Callable, Mapping

from forktail.failure import USAGE, Failure

Figures = Callable[[str], float | None]


class FormulaError(Exception):
    """Why an expression cannot be evaluated: 'Unexpected token "x" found at position 3.'"""


# A name may contain dots and {row}. What is none of these is an unknown token.
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>(?:[A-Za-z_]|\{row\})(?:[\w.]|\{row\})*)"
    r"|(?P<operator>\|\||&&|[<>=!]=|[-+*/^<>=])|(?P<other>[?:(),])",
    re.ASCII,
)
_SPACE = re.compile(r"\s*")


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
    name: _ieee(getattr(math, name))
    for name in [
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "log2",
        "log10",
        "log",
        "sqrt",
        "exp",
    ]
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
        self.text = text
        self.names = {**_CONSTANTS, **names}
        self.depth = 0  # open parentheses
        self.end = 0  # of the current token
        self.advance()

    def advance(self) -> None:
        """Reads the next token; its kind is "" at the end."""
        space = _SPACE.match(self.text, self.end)
        self.at = space.end() if space else self.end
        match = _TOKEN.match(self.text, self.at)
        self.kind = str(match.lastgroup) if match else ""
        self.token = match[0] if match else self.text[self.at :]
        self.end = self.at + len(self.token)
        if self.kind == "name" and self.token in _OF_ONE | _OF_SEVERAL and self.text[self.end :].lstrip(" ")[:1] == "(":
            self.kind = "function"
        elif (self.kind == "name" and self.token not in self.names) or (not match and self.token):
            raise FormulaError(f'Unexpected token "{self.token}{"" if match else " "}" found at position {self.at}.')

    def wrong_end(self) -> FormulaError:
        """The current token cannot follow the value before it."""
        if self.kind == "number":
            return FormulaError(f'Unexpected value "{self.token}" found at position {self.at}')
        if self.kind == "name":
            return FormulaError(f'Unexpected variable "{self.token}" found at position {self.at}')
        if self.kind == "function":
            return FormulaError(f'Unexpected function "{self.token}" at position {self.at}')
        if self.token == ":":
            return FormulaError(f"Misplaced colon at position {self.end}")
        return self.wrong_begin()

    def wrong_begin(self) -> FormulaError:
        """No value begins with the current token."""
        if not self.token:
            return FormulaError(f"Unexpected end of expression at position {len(self.text) + 1}")
        if self.token == ",":
            return FormulaError(f"Unexpected argument separator at position {self.at}")
        if self.token in "()":
            return FormulaError(f'Unexpected parenthesis "{self.token}" at position {self.at}')
        if self.token in "?:":
            return FormulaError(f'The "{self.token}" operator must be preceded by a closing bracket.')
        return FormulaError(f'Unexpected operator "{self.token}" found at position {self.at}')

    def close(self) -> None:
        """Reads the parenthesis after a value."""
        if not self.token:
            raise FormulaError("Missing parenthesis")
        if self.token != ")":
            raise self.wrong_end()
        self.depth -= 1
        self.advance()

    def call(self) -> float:
        name = self.token
        self.advance()
        self.depth += 1
        self.advance()
        arguments = []
        if self.token != ")":
            arguments.append(self.choice())
            while self.token == ",":
                self.advance()
                arguments.append(self.choice())
        end = self.end if name in _OF_SEVERAL else self.at
        self.close()
        if not arguments:
            raise FormulaError(f'Too few parameters for function "{name}" at expression position {end}')
        if name in _OF_SEVERAL:
            return _OF_SEVERAL[name](arguments)
        if len(arguments) > 1:
            raise FormulaError(f'Too many parameters for function "{name}" at expression position {end}')
        return _OF_ONE[name](arguments[0])

    def operand(self) -> float:
        token, kind = self.token, self.kind
        if kind == "function":
            return self.call()
        if kind in ("number", "name"):
            self.advance()
            return float(token) if kind == "number" else self.names[token]
        if token == "(":
            self.depth += 1
            self.advance()
            value = self.choice()
            self.close()
            return value
        if token not in ("+", "-"):
            raise self.wrong_begin()
        self.advance()
        if self.token in ("+", "-"):
            raise FormulaError(f'Unexpected operator "{self.token}" found at position {self.end}')
        value = self.binary(_POWER)
        return -value if token == "-" else value

    def binary(self, least: int) -> float:
        """Operators of at least this precedence."""
        value = self.operand()
        while self.kind == "operator" and self.token in _OPERATORS and _OPERATORS[self.token][0] >= least:
            precedence, function = _OPERATORS[self.token]
            self.advance()
            value = function(value, self.binary(precedence if precedence == _POWER else precedence + 1))
        return value

    def choice(self) -> float:
        value = self.binary(1)
        if self.token != "?":
            return value
        self.advance()
        yes = self.choice()
        if not self.token and self.depth:
            raise FormulaError("Missing parenthesis")
        if self.token in ("", ")"):
            raise FormulaError("If-then-else operator is missing an else clause")
        if self.token != ":":
            raise self.wrong_end()
        self.advance()
        no = self.choice()
        return yes if value else no


def calculate(expression: str, names: Mapping[str, float]) -> float:
    """The value, which may be infinite or NaN. Raises FormulaError."""
    if not expression.strip():
        raise FormulaError("Expression is empty.")
    parser = _Parser(expression, names)
    value = parser.choice()
    if parser.token:
        raise parser.wrong_end()
    return value


def check_formula(formula: str) -> None:
    """Raises Failure for an invalid formula. {row} is allowed."""
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
        reason = re.sub("( found)? at position.*", "", str(error)).rstrip(". ")
        raise Failure(f'"{formula}" is not a formula: {reason[:1].lower()}{reason[1:]}', USAGE) from None
    return value if None not in figures.values() and math.isfinite(value) else None
