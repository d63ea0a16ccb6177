# SPDX-License-Identifier: MIT
"""Cgroups for tests, of the version that this host has. Each is removed at the end of its `with` block."""

import os
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from processes import Closing, eventually

ROOT = Path("/sys/fs/cgroup")


def _write(path, text):
    """Whether there is such a file and the kernel accepted the text."""
    try:
        with path.open("r+") as file:
            file.write(text)
    except OSError:
        return False
    return True


def _remove(path):
    """A group can be removed once its last process has been reaped."""
    with suppress(OSError):
        path.rmdir()
    return not path.exists()


class MemoryCgroup(Closing):
    """A memory limit for programs. One that needs more is killed, because there is no swap beyond the limit. Where
    such a group cannot be made, a warning says so and there is no limit."""

    def __init__(self, limit_bytes):
        v1 = (ROOT / "memory/memory.limit_in_bytes").exists()
        root = ROOT / "memory" if v1 else ROOT
        if not v1:
            _write(root / "cgroup.subtree_control", "+memory")
        self.path = root / f"forktail-test-{os.getpid()}"
        with suppress(OSError):
            self.path.mkdir()
        self.usable = _write(self.path / ("memory.limit_in_bytes" if v1 else "memory.max"), str(limit_bytes))
        if not self.usable:
            warnings.warn("no memory limit: cannot make a memory cgroup here", stacklevel=2)
        # These files do not exist where swap is not accounted.
        elif v1:
            _write(self.path / "memory.memsw.limit_in_bytes", str(limit_bytes))
        else:
            _write(self.path / "memory.swap.max", "0")

    def within(self, *words):
        """The words of a command, within the limit from its first page on."""
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', self.path / "cgroup.procs", *words] if self.usable else words

    def close(self):
        eventually(lambda: _remove(self.path))


class CpuCgroup(Closing):
    """A CPU quota for programs. The test is skipped where such a group cannot be made.

    name: in the hierarchy, "/forktail-test-4711".
    """

    def __init__(self):
        self._v1 = any((ROOT / "cpu" / name).exists() for name in ("cpu.shares", "cgroup.procs"))
        if not self._v1:
            _write(ROOT / "cgroup.subtree_control", "+cpu")
        self.name = f"/forktail-test-{os.getpid()}"
        self.path = (ROOT / "cpu" if self._v1 else ROOT) / self.name[1:]
        with suppress(OSError):
            self.path.mkdir()
        if not os.access(self.path / ("cpu.cfs_quota_us" if self._v1 else "cpu.max"), os.W_OK):
            _remove(self.path)
            pytest.skip("cannot make a cgroup with the CPU controller here")

    def add(self, pid):
        """Moves a process into the group."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def set_quota(self, quota_us, period_us=100_000):
        """Limits the group to this much CPU time in each period."""
        if self._v1:
            (self.path / "cpu.cfs_period_us").write_text(str(period_us))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (self.path / "cpu.max").write_text(f"{quota_us} {period_us}")

    def _count(self, name):
        return int(dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())[name])

    @property
    def throttles(self):
        """How often it has used up its quota."""
        return self._count("nr_throttled")

    @property
    def throttled_ns(self):
        """How long it has waited for the next period."""
        return self._count("throttled_time") if self._v1 else self._count("throttled_usec") * 1000

    def close(self):
        eventually(lambda: _remove(self.path))


class Freezer(Closing):
    """A container's cgroup with a freezer, as Docker makes it. version: 1, or 2, alone or together with version 1.
    Skips the test where the host lacks it."""

    def __init__(self, version):
        # No other container on this host has this id now.
        self.name = "/docker/" + str(os.getpid()).rjust(64, "f")
        self._version = version
        for mount in ("freezer", "unified", "."):
            self.path = ROOT / mount / self.name[1:]
            with suppress(OSError):
                self.path.parent.mkdir(exist_ok=True)
                self.path.mkdir()
                if os.access(self._file, os.W_OK):
                    return
            self._remove()
        pytest.skip(f"cannot make a cgroup with a freezer of version {version} here")

    @property
    def _file(self):
        return self.path / ("freezer.state" if self._version == 1 else "cgroup.freeze")

    def _remove(self):
        removed = _remove(self.path)
        _remove(self.path.parent)
        return removed

    def add(self, pid):
        """Moves a process into the group."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def _set(self, frozen):
        words = ("THAWED", "FROZEN") if self._version == 1 else ("0", "1")
        self._file.write_text(words[frozen])

    def _is_frozen(self):
        if self._version == 1:
            return "FROZEN" in self._file.read_text()
        return "frozen 1" in (self.path / "cgroup.events").read_text()

    @contextmanager
    def frozen(self):
        """All of it is frozen in the `with` block."""
        self._set(True)
        try:
            assert eventually(self._is_frozen)
            yield
        finally:
            self._set(False)

    def close(self):
        eventually(self._remove)
