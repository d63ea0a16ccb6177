# SPDX-License-Identifier: MIT
"""The machine and its free resources for an experiment. /proc and /sys are read at each call, because an experiment
changes them."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from forktail.text import format_bytes

# The data set, the same amount for copied pages while a child writes it, and the page cache for the files.
_MEMORY_PER_SIZE = 3
# On disk: the AOF of the fill, a snapshot, the rewritten AOF in addition to the old one, and a reserve.
_DISK_PER_SIZE = 4
_SMALLEST_MB = 64  # with less data a fork is too short to see


def first_line(path: str | Path) -> str:
    """The first line of a file in /proc or /sys; "" if missing."""
    try:
        with open(path, errors="replace") as file:
            return file.readline().rstrip("\n")
    except OSError:
        return ""


def fields(path: str | Path) -> dict[str, int]:
    """The lines "name value" and "name: value" of a file in /proc or /sys; those with "kB" in bytes. Empty if the file
    is missing."""
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return {}
    lines = re.findall(r"^([^:\s]+)[:\s]+(\d+)( kB)?", text, re.MULTILINE)
    return {name: int(value) << (10 if unit else 0) for name, value, unit in lines}


def find_program(name: str) -> str:
    """The path of a program: in PATH or in the sbin directories, which not every PATH has. "": not found."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin") or ""


def host_name() -> str:
    """This host's name."""
    return os.uname().nodename


def kernel_release() -> str:
    """The running kernel: "6.1.0-18-amd64"."""
    return os.uname().release


def cpu_name() -> str:
    """The CPUs' model with their number: "Intel(R) Xeon(R) ..., 2 CPUs"."""
    with open("/proc/cpuinfo") as file:
        names = (line.partition(": ")[2].strip() for line in file if line.startswith("model name") and ": " in line)
        name = next(names, "unknown CPU")
    return f"{name}, {os.sysconf('SC_NPROCESSORS_ONLN')} CPUs"


def memory_bytes(name: str) -> int:
    """A line of /proc/meminfo ("SwapFree") in bytes; 0 if it is missing."""
    return fields("/proc/meminfo").get(name, 0)


def available_memory_bytes() -> int:
    """Memory available without swapping, or 0 if unknown."""
    return memory_bytes("MemAvailable")


@dataclass
class DiskRoom:
    """Free space of a file system."""

    free_bytes: int = 0
    in_memory: bool = False  # a tmpfs, whose files take memory


def room_in(directory: str) -> DiskRoom:
    """The space in a directory; none if it does not exist."""
    try:
        room = os.statvfs(directory)
        device = os.stat(directory).st_dev
    except OSError:
        return DiskRoom()
    with open("/proc/self/mountinfo", errors="surrogateescape") as file:
        # "22 27 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw"
        number = f"{os.major(device)}:{os.minor(device)}"
        kinds = {line.partition(" - ")[2].split()[0] for line in file if line.split()[2] == number}
    return DiskRoom(room.f_bavail * room.f_frsize, bool(kinds & {"tmpfs", "ramfs"}))


def choose_size_mb(wanted_mb: int, available_bytes: int, room: DiskRoom) -> tuple[int, str]:
    """The possible size of a data set in MiB, at most `wanted_mb`: less if memory or disk is short, 0 if too little
    for an experiment. With it the shortage in words ("": none)."""
    per_size = _MEMORY_PER_SIZE + (_DISK_PER_SIZE if room.in_memory else 0)
    by_memory, by_disk = available_bytes // per_size >> 20, room.free_bytes // _DISK_PER_SIZE >> 20
    size = min(wanted_mb, by_memory, by_disk)
    why = ""
    if size < wanted_mb:
        short = f"{format_bytes(room.free_bytes)} of temporary disk space are free"
        if by_memory <= by_disk:
            short = f"{format_bytes(available_bytes)} of memory are available"
        times = per_size if by_memory <= by_disk else _DISK_PER_SIZE
        why = f"only {short}, but {times} times the size of the data set is needed"
    return (0 if size < min(_SMALLEST_MB, wanted_mb) else size), why
