# SPDX-License-Identifier: MIT
"""Figures as tables and charts print them: in the unit of their column, with the unit in the column's title.

Figures have three significant digits unless the format has fixed decimals. Times are stored in ns, sizes in bytes.
"""

import math
import re
from enum import Enum


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


def unit_of(form: Format) -> str:
    """ "ms"; "" for plain numbers, and for bytes, which choose their unit by size."""
    raise NotImplementedError


def in_unit(figure: float, form: Format) -> float:
    """A figure (ns, bytes, percent) in that unit."""
    raise NotImplementedError


def format_decimals(number: float, decimals: int) -> str:
    """A number with `decimals` decimals and commas between thousands."""
    raise NotImplementedError


def format_figure(figure: float, form: Format) -> str:
    """ "1,204", "0.57", "84.0 MB"."""
    raise NotImplementedError


def format_published(published: float, form: Format) -> str:
    """A published figure is already in the column's unit (bytes: in bytes) and is printed with its own digits."""
    raise NotImplementedError


def with_unit(title: str, form: Format) -> str:
    """ "average" -> "average, ms", unless the title contains the unit."""
    raise NotImplementedError
