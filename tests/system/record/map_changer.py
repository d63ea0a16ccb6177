# SPDX-License-Identifier: MIT
"""Changes a BPF map until it is killed. Meanwhile the kernel runs no programs of system calls on its CPU; on a
preemptible kernel this also applies while other tasks run there, if it was preempted in the middle of a change.
"""

import ctypes
import os
import platform
import struct

KEYS = 1024
MAP_CREATE, MAP_UPDATE_BATCH = 0, 26
TYPE_HASH = 1
SYS_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    result = libc.syscall(SYS_BPF, command, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return result


table = bpf(MAP_CREATE, struct.pack("=5I", TYPE_HASH, 4, 4, KEYS, 0))
keys = (ctypes.c_uint32 * KEYS)(*range(KEYS))
change = struct.pack("=4Q2I2Q", 0, 0, ctypes.addressof(keys), ctypes.addressof(keys), KEYS, table, 0, 0)
os.sched_setaffinity(0, {0})
while True:
    bpf(MAP_UPDATE_BATCH, change)
