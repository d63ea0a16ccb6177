# SPDX-License-Identifier: MIT
"""Progress messages on standard error; standard output is for results."""

import functools
import sys
import time

from forktail.text import visible_lines


@functools.cache
def _start() -> float:
    return time.monotonic()


def _line(text: str, replaceable: bool) -> None:
    terminal = sys.stderr.isatty()
    clear, end = ("\033[K", "\r") if terminal else ("", "\n")
    try:
        sys.stderr.write(clear + visible_lines(text) + (end if replaceable else "\n"))
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:
        pass  # a full disk must not end an experiment


def say(text: str) -> None:
    """Prints a step on its own line: "[  3.2 s] text", with the time since the first call."""
    start = _start()
    _line(f"[{time.monotonic() - start:5.1f} s] {text}", False)


def say_meanwhile(text: str) -> None:
    """Prints progress within a step. On a terminal the next line replaces it."""
    _line("          " + text, True)
