# SPDX-License-Identifier: MIT
"""Figures as tables and charts print them: in the unit of their column, with the unit in the column's title.

Figures have three significant digits unless the format has fixed decimals. Times are stored in ns, sizes in bytes.
"""

import math
import re
from enum import Enum

from forktail.text import format_bytes


class Format(Enum):
    """Print format of a figure; the values are the words of scenario files."""

    NUMBER = "number"
    COUNT = "count"
    DECIMALS1 = "decimals1"
    DECIMALS2 = "decimals2"
    PERCENT = "percent"
    MS = "ms"
    US = "us"
    SECONDS = "s"
    BYTES = "bytes"
    TEXT = "text"


_MOST_DECIMALS = 6
_UNITS = {Format.PERCENT: "%", Format.MS: "ms", Format.US: "us", Format.SECONDS: "s"}
_SCALES = {Format.MS: 1e6, Format.US: 1e3, Format.SECONDS: 1e9}
_DECIMALS = {Format.DECIMALS1: 1, Format.DECIMALS2: 2}


def _decimals_for(number: float, significant: int, most: int) -> int:
    """The number of decimals for `significant` digits, after rounding: 9.996 is 10.0, not 10.00."""
    if number == 0:
        return 0
    unit = math.pow(10, math.floor(math.log10(abs(number))) - significant + 1)
    rounded = math.floor(abs(number) / unit + 0.5) * unit
    magnitude = math.floor(math.log10(rounded) + 1e-9)
    return min(max(significant - 1 - magnitude, 0), most)


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def unit_of(form: Format) -> str:
    """ "ms"; "" for plain numbers, and for bytes, which choose their unit by size."""
    return _UNITS.get(form, "")


def in_unit(figure: float, form: Format) -> float:
    """A figure (ns, bytes, percent) in that unit."""
    return figure / _SCALES.get(form, 1)


def format_decimals(number: float, decimals: int) -> str:
    """A number with `decimals` decimals and commas between thousands."""
    text = f"{number:,.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def format_figure(figure: float, form: Format) -> str:
    """ "1,204", "0.57", "84.0 MB"."""
    number = in_unit(figure, form)
    if form == Format.NUMBER:
        return _without_zeros(format_decimals(number, _decimals_for(number, 4, _MOST_DECIMALS)))
    if form == Format.PERCENT:
        return format_decimals(number, 1 if abs(number) < 99.95 else 0)
    if form in _SCALES:
        return format_decimals(number, _decimals_for(number, 3, 3))
    if form == Format.BYTES:
        return ("-" if number < 0 else "") + format_bytes(math.floor(abs(number) + 0.5))
    return format_decimals(number, _DECIMALS.get(form, 0))


def format_published(published: float, form: Format) -> str:
    """A published figure is already in the column's unit (bytes: in bytes) and is printed with its own digits."""
    if form == Format.BYTES:
        return format_figure(published, form)
    digits = _without_zeros(f"{published:.{_MOST_DECIMALS}f}")
    return format_decimals(published, len(digits.partition(".")[2]))


def with_unit(title: str, form: Format) -> str:
    """ "average" -> "average, ms", unless the title contains the unit."""
    unit = unit_of(form)
    if not unit or re.search(rf"(?<![A-Za-z0-9]){unit}(?![A-Za-z0-9])", title):
        return title
    return f"{title}, {unit}"
