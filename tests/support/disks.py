# SPDX-License-Identifier: MIT
"""Disks for tests: one that hangs or fails on request, and a small one."""

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from processes import Closing, Program, eventually, run

FIFREEZE, FITHAW, EXT4_IOC_SHUTDOWN = 0xC0045877, 0xC0045878, 0x8004587D
MOUNT = (
    'truncate -s 64M "$0" && mkfs.ext4 -q "$0" && mkdir "$1" && mount -o loop,errors=remount-ro "$0" "$1" && '
    "echo mounted && exec sleep infinity"
)


class StandingDisk(Closing):
    """An ext4 file system in a file. The kernel freezes it, so that each write to it waits until it is thawed, or
    treats it as damaged. The test is skipped where it cannot be mounted.

    It is mounted in a separate mount namespace, so it cannot outlast the test. path: the disk as root sees it.
    within: the words before a command that is to see it at `inside`.
    """

    def __init__(self, directory):
        self.inside = directory / "disk"
        self._holder = Program("unshare", "--mount", "sh", "-c", MOUNT, directory / "image", self.inside)
        eventually(lambda: self._holder.out or not self._holder.running, 30)
        if not self._holder.out:
            why = self._holder.err
            self._holder.close()
            pytest.skip(f"mounting a file system image needs root and a loop device: {why}")
        self.within = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--"]
        self.path = Path(f"/proc/{self._holder.pid}/root{self.inside}")
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)

    def freeze(self):
        """Returns when running writes have ended. Every later write waits."""
        fcntl.ioctl(self._fd, FIFREEZE, 0)

    def thaw(self):
        """Waiting writes continue."""
        fcntl.ioctl(self._fd, FITHAW, 0)

    def fail(self, error):
        """From now on writes fail: with EROFS, as after damage was found, or with EIO, as without the device."""
        if error == errno.EIO:
            without_writing_anything_first = 2
            fcntl.ioctl(self._fd, EXT4_IOC_SHUTDOWN, without_writing_anything_first.to_bytes(4, "little"))
        else:
            device = os.fstat(self._fd).st_dev
            name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
            Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("1")

    def close(self):
        with suppress(OSError):  # it is not frozen
            self.thaw()
        os.close(self._fd)
        self._holder.close()


def on_a_disk(path):
    """Whether a directory is on a block device: nothing waits for a disk on a tmpfs."""
    return os.major(os.stat(path).st_dev) != 0


@contextmanager
def small_disk(path, size):
    """A tmpfs of this size ("4m") at a directory, for the `with` block's time."""
    path.mkdir(exist_ok=True)
    mounted = run("mount", "-t", "tmpfs", "-o", f"size={size}", "forktail-test", path)
    assert mounted.status == 0, mounted.err
    try:
        yield path
    except BaseException:
        run("umount", "--lazy", path)  # what the failed test has started may still use it
        raise
    unmounted = run("umount", path)
    assert unmounted.status == 0, unmounted.err
