# SPDX-License-Identifier: MIT
"""Finds the time of a message in a server's log. Times in Redis' logs are local time with milliseconds."""

import re
import time

_LINE = re.compile(r"\S* (\d+ \w{3} \d{4} \d\d:\d\d:\d\d)\.(\d{3})(?!\d)")


def time_of_line(line: str) -> int:
    """The time of a line of Redis' or Sentinel's log ("123:M 21 Nov 2026 12:39:49.419 * ..."), in ns since 1970; 0 if
    it has none."""
    found = _LINE.match(line)
    if not found:
        return 0
    try:
        second = time.mktime(time.strptime(found[1], "%d %b %Y %H:%M:%S"))
    except ValueError:
        return 0
    return int(second) * 1_000_000_000 + int(found[2]) * 1_000_000


def find_in_log(path: str, text: str, from_ns: int) -> int:
    """The time of the first line with the text, not earlier than `from_ns`, in ns since 1970; 0: none."""
    try:
        with open(path, errors="surrogateescape") as lines:
            return next((t for line in lines if text in line and (t := time_of_line(line)) >= from_ns), 0)
    except OSError:
        return 0
