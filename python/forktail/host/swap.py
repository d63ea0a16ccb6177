# SPDX-License-Identifier: MIT
"""Swap for one experiment, in compressed memory or in a file, so that the host's own swap does not affect the
measurement. It is created with mkswap(8), has the highest priority, and the keeper removes it, however the session
ends.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import time

from forktail.failure import Failure
from forktail.host.keeper import Leftover, remove_swap_device, write_setting
from forktail.host.machine import find_program, first_line, room_in
from forktail.host.session import Command, Session, Stopped

_ZRAM_NODE_S = 2  # time limit for the device node in /dev
_MKSWAP_S = 60  # it writes one page, but the disk may be busy
_PREFER_HIGHEST = 0x8000 | 0x7FFF  # swapon(2): SWAP_FLAG_PREFER, and the priority
_HOT_ADD = "/sys/class/zram-control/hot_add"
_numbers = itertools.count()


def _fill(path: str, size: int, write_blocks: bool) -> None:
    """A swap file must have no holes. Not every file system can reserve blocks without writing them or accepts such
    blocks for swap."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb", buffering=0) as file:
        if not write_blocks:
            return os.posix_fallocate(fd, 0, size)
        zeros = memoryview(bytes(1 << 20))
        left = size
        while left:
            left -= file.write(zeros[:left])


def _swap_on(session: Session, device: str) -> None:
    """Formats the device as swap and switches it on."""
    mkswap = session.start(Command("mkswap", [find_program("mkswap") or "mkswap", device], output=os.devnull))
    session.wait_for_end(mkswap, 0, _MKSWAP_S)
    mkswap.check()
    if ctypes.CDLL(None, use_errno=True).swapon(os.fsencode(device), _PREFER_HIGHEST) != 0:
        raise Failure(os.strerror(ctypes.get_errno()))


def _make_swap_file(session: Session, path: str, size: int) -> None:
    directory = os.path.dirname(path)
    if room_in(directory).in_memory:
        raise Failure(f"cannot swap to a file in {directory}: it is in memory. Set TMPDIR to a directory on a disk.")
    session.keeper.keep(Leftover.SWAP, path)
    reason = ""
    for write_blocks in (False, True):
        try:
            _fill(path, size, write_blocks)
            return _swap_on(session, path)
        except OSError as e:
            reason = e.strerror or str(e)
            if e.errno == errno.ENOSPC:
                break
        except Stopped as e:
            reason = str(e)
            break
        except Failure as e:
            reason = str(e)
    raise Failure(f"cannot create swap of {size} bytes in {path}: {reason}")


def _make_zram(session: Session, size: int) -> str:
    if not os.access(_HOT_ADD, os.R_OK):
        raise Failure("cannot swap to compressed memory: the zram module is not loaded. Try modprobe zram.")
    number = first_line(_HOT_ADD)  # reading it creates the device
    if not number:
        raise Failure(f"cannot swap to compressed memory: {_HOT_ADD} returned no device")
    device = f"/dev/zram{number}"
    session.keeper.keep(Leftover.SWAP, device)
    try:
        try:
            write_setting(f"/sys/block/zram{number}/disksize", str(size))
        except OSError as e:
            raise Failure(f"cannot set the size of {device} to {size} bytes: {e.strerror}") from e
        limit = time.monotonic() + _ZRAM_NODE_S
        while not os.access(device, os.R_OK | os.W_OK) and time.monotonic() < limit:
            time.sleep(0.001)
        try:
            _swap_on(session, device)
        except Failure as e:
            raise Failure(f"cannot swap to {device}: {e}") from e
    except Failure:
        _remove_quietly(session, device)
        raise
    return device


def _remove_quietly(session: Session, device: str) -> None:
    with contextlib.suppress(Failure):  # the first error is reported, and the keeper tries again
        remove_swap(session, device)


def make_swap(session: Session, kind: str, size_bytes: int, directory: str) -> str:
    """Swap of a kind: zram, or file (in `directory` on a disk). It is used before other swap. Returns its device,
    "/dev/zram3", or the file."""
    page_bytes = os.sysconf("SC_PAGESIZE")
    size_bytes -= size_bytes % page_bytes
    if size_bytes < 10 * page_bytes:
        raise Failure(f"swap of {size_bytes} bytes is too little")
    if kind == "zram":
        return _make_zram(session, size_bytes)
    if kind != "file":
        raise Failure(f"unknown kind of swap {kind}: use zram or file")
    path = f"{directory}/forktail-swap-{os.getpid()}-{next(_numbers)}"
    try:
        _make_swap_file(session, path, size_bytes)
    except Failure:
        _remove_quietly(session, path)
        raise
    return path


def remove_swap(session: Session, device: str) -> None:
    """Takes as long as reading back the pages of running processes."""
    try:
        remove_swap_device(device)
    except OSError as e:
        raise Failure(f"cannot remove the swap in {device}: {e.strerror}") from e
    session.keeper.release(Leftover.SWAP, device)
