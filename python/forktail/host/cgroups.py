# SPDX-License-Identifier: MIT
"""The cgroups of a process, in version 1 or 2: their limits of memory and CPU time."""

from pathlib import Path

from forktail.host.machine import fields, first_line

_NO_LIMIT = 1 << 60  # version 1 says so where memory has no limit; version 2 says "max"


def hierarchy_of(controller: str) -> tuple[Path, bool] | None:
    """The root of the hierarchy with this controller ("memory"), and whether it is of version 1. None: no such one."""
    found = None
    for line in Path("/proc/mounts").read_text(errors="surrogateescape").splitlines():
        _, path, kind, options = line.split()[:4]
        if kind == "cgroup" and controller in options.split(","):
            found = Path(path), True
        elif kind == "cgroup2" and controller in first_line(f"{path}/cgroup.controllers").split():
            found = Path(path), False
    return found


def groups_of(pid: int, controller: str) -> list[Path]:
    """The process's cgroups with this controller, as directories, the innermost first. Empty: none, or no process."""
    hierarchy = hierarchy_of(controller)
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    for line in lines if hierarchy else ():
        assert hierarchy
        root, v1 = hierarchy
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") if v1 else not controllers:
            return [root / str(group).lstrip("/") for group in (Path(path), *Path(path).parents)]
    return []


def memory_limit(group: Path) -> int | None:
    """In bytes; None: no limit."""
    text = first_line(group / "memory.max") or first_line(group / "memory.limit_in_bytes")
    return int(text) if text.isdigit() and int(text) < _NO_LIMIT else None


def memory_left(group: Path) -> int | None:
    """Bytes until the limit, without file pages that can be dropped; None: no limit."""
    limit = memory_limit(group)
    used = first_line(group / "memory.current") or first_line(group / "memory.usage_in_bytes")
    if limit is None or not used.isdigit():
        return None
    stat = fields(group / "memory.stat")  # of version 1 "total_" is with the groups below
    return limit - int(used) + stat.get("total_inactive_file", stat.get("inactive_file", 0))


def cpu_quota(group: Path) -> float | None:
    """In CPUs; None: no quota."""
    words = first_line(group / "cpu.max").split() or [
        first_line(group / f"cpu.cfs_{name}_us") for name in ("quota", "period")
    ]
    return int(words[0]) / int(words[1]) if len(words) == 2 and all(word.isdigit() for word in words) else None
