# SPDX-License-Identifier: MIT
"""A memory limit for an experiment's servers: a cgroup of the host's version, 1 or 2. The keeper is informed before a
group is created, so that it removes the group however the session ends.
"""

import contextlib
import os
from pathlib import Path

from forktail.failure import Failure
from forktail.host.cgroups import hierarchy_of
from forktail.host.keeper import Leftover, remove_cgroup, write_setting
from forktail.host.machine import fields, first_line, memory_bytes
from forktail.host.session import Session

BEYOND_BYTES = 16 << 20
_SWAP_BYTES = 1 << 20  # less free swap counts as none


def _enable_for_children(session: Session, root: Path) -> None:
    """In version 2 the root must enable the controller for its children."""
    file = f"{root}/cgroup.subtree_control"
    if "memory" in first_line(file).split():
        return
    session.keeper.keep(Leftover.SETTING, file, "-memory")
    try:
        write_setting(file, "+memory")
    except OSError as e:
        raise Failure(f"cannot limit memory: {file} does not accept +memory: {e.strerror}") from e


def _swap_is_free() -> bool:
    return memory_bytes("SwapFree") >= _SWAP_BYTES


def _reclaim(path: str, limit_bytes: int) -> None:
    """A v1 group has no background reclaim like kswapd: the thread that needs a page of a full group reclaims one. In
    a group of a few hundred MB without file pages the kernel (6.18) sometimes finds only recently used pages and
    kills a process although there is swap. So the group has some space beyond the limit, and this process does the
    background reclaim by setting the limit, which fails without harm."""
    if int(first_line(f"{path}/memory.usage_in_bytes") or 0) <= limit_bytes:
        return
    for size in (limit_bytes, limit_bytes + BEYOND_BYTES) if _swap_is_free() else (limit_bytes,):
        with contextlib.suppress(OSError):
            write_setting(f"{path}/memory.limit_in_bytes", str(size))


def limit_memory(session: Session, name: str, limit_bytes: int) -> str:
    """Creates a cgroup whose processes may use `limit_bytes` of memory together, including their page cache. More
    goes to swap; without swap processes are killed. Returns its directory, for Command.cgroup. With v1 and swap,
    `step` does the work of kswapd, and BEYOND_BYTES more are allowed in between."""
    hierarchy = hierarchy_of("memory")
    if not hierarchy:
        raise Failure("cannot limit memory: this host has no cgroup with the memory controller")
    root, v1 = hierarchy
    if not v1:
        _enable_for_children(session, root)
    path = f"{root}/forktail-lab-{os.getpid()}-{name}"
    session.keeper.keep(Leftover.CGROUP, path)
    limit = f"{path}/memory.limit_in_bytes" if v1 else f"{path}/memory.max"
    try:
        os.mkdir(path)
        write_setting(limit, str(limit_bytes))
        if v1 and _swap_is_free():
            write_setting(limit, str(limit_bytes + BEYOND_BYTES))
            session.chores[path] = lambda: _reclaim(path, limit_bytes)
    except OSError as e:
        raise Failure(f"cannot limit memory to {limit_bytes} bytes with the cgroup {path}: {e.strerror}") from e
    return path


def oom_kills(path: str) -> int:
    """The processes of the cgroup that the kernel killed because it was full, its servers' children too."""
    return sum(fields(f"{path}/{file}").get("oom_kill", 0) for file in ("memory.oom_control", "memory.events"))


def remove_group(session: Session, path: str) -> None:
    """Removes it after its processes have ended."""
    session.chores.pop(path, None)
    try:
        remove_cgroup(path)
    except OSError as e:
        raise Failure(f"cannot remove the cgroup {path}: {e.strerror}") from e
    session.keeper.release(Leftover.CGROUP, path)
