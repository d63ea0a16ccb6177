# SPDX-License-Identifier: MIT
"""The processes of a running recorder, by the kernel's data about them."""

from pathlib import Path


def status(of):
    """/proc/PID/status of a process, by its pid, or of a thread, by its directory."""
    path = of if isinstance(of, Path) else Path(f"/proc/{of}")
    lines = (line.partition(":") for line in (path / "status").read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:
        return ""  # it has ended


def children(pid, name):
    """Children of this name, in the order of their start."""
    pids = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return sorted(child for child in pids if _name(child) == name)


def helpers(recorder, name):
    """Helper processes of a recorder: children of the process that starts them."""
    starters = children(recorder.pid, "forktail-spawn")
    return children(starters[0], name) if len(starters) == 1 else []
