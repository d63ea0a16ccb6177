# SPDX-License-Identifier: MIT
"""A running recorder's processes, and others' children, by the kernel's data about them."""

from pathlib import Path


def status(task):
    """/proc/ID/status of a process, or of a thread, by its id."""
    lines = (line.partition(":") for line in Path(f"/proc/{task}/status").read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:
        return ""  # it has ended


def children(pid, name=None):
    """Children of a process, all or those of this name, in the order of their start."""
    pids = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return sorted(child for child in pids if name in (None, _name(child)))


def helpers(recorder, name):
    """Helper processes of a recorder: children of the process that starts them."""
    starters = children(recorder.pid, "forktail-spawn")
    return children(starters[0], name) if len(starters) == 1 else []
