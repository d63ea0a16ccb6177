# SPDX-License-Identifier: MIT
"""Arithmetic of scenarios: in templates "{keys*2/3}", and in tables' columns "run.SET.rps / base.run.SET.rps".

+ - * / ^ ( ), comparisons, && ||, ?: and functions: max min sum avg abs ceil floor rint sqrt exp log2 ... The caller provides the
figures, so that a scenario can be checked before it runs. Messages are those of muparser, which evaluated scenarios before.
"""

from collections.abc import Callable, Mapping

Figures = Callable[[str], float | None]


class FormulaError(Exception):
    """Why a formula cannot be evaluated: 'Unexpected token "x" found at position 3.'"""


def calculate(expression: str, names: Mapping[str, float]) -> float:
    """The value, which may be infinite or NaN. Names are letters, digits and _. Raises FormulaError."""
    raise NotImplementedError


def check_formula(formula: str) -> None:
    """Raises Failure for an invalid formula. {row} is allowed."""
    raise NotImplementedError


def names_in(formula: str) -> list[str]:
    """The figures and variables in the formula, each once, as written: "run.{row}.rps", "base.run.rps"."""
    raise NotImplementedError


def with_row(text: str, row: str) -> str:
    """Replaces {row} by the row's name in figures."""
    raise NotImplementedError


def figure_name(text: str) -> str:
    """ "READ-MODIFY-WRITE" -> "READ_MODIFY_WRITE"."""
    raise NotImplementedError


def work_out(formula: str, figure: Figures) -> float | None:
    """Evaluates the formula with these figures; None if one is missing or the result is not a number. Raises Failure for an invalid formula."""
    raise NotImplementedError
