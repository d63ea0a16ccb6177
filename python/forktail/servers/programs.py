# SPDX-License-Identifier: MIT
"""Finds the installed servers and their versions."""

import os
import re
import subprocess
from pathlib import Path

from forktail.host.machine import find_program
from forktail.servers.kinds import Made, find_kind

_VERSION_LIMIT_S = 20
_BUILT = Path(__file__).parents[3] / "build-servers/trixie/usr/bin"  # by script/servers, in the source tree


def version_of(path: str) -> str:
    """The version in a program's --version output, or "": the first number with a dot in "Redis server v=7.0.15
    sha=...", "This is nutcracker-0.5.0"."""
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=_VERSION_LIMIT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"[0-9]+\.[0-9.]*", done.stdout.decode(errors="replace"))
    return found[0] if found else ""


def find_server(kind: str) -> tuple[str, str] | None:
    """The program for servers of this kind and its version, such as "7.0.15". None: none is installed, or an unknown
    kind."""
    row = find_kind(kind)
    if not row:
        return None
    built = Path(os.environ.get("FORKTAIL_SERVERS") or _BUILT)
    for program in row.programs:
        path = "" if row.made == Made.ALWAYS else find_program(program)
        if not path and row.made != Made.NO and os.access(built / program, os.X_OK):
            path = str(built / program)
        if path:
            return path, version_of(path)
    return None
