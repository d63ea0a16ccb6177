# SPDX-License-Identifier: MIT
"""Touches memory on request: page_toucher.py MEMORY STEP... performs the next step at each SIGUSR1, and prints a line
when it is done. MEMORY: "anonymous", or a file that is mapped privately. A step is one or more of the functions
below: "fork,write".
"""

import ctypes
import mmap
import os
import signal
import sys
import threading
import time

PAGE, PAGES, THREADS = 4096, 2000, 100
PR_SET_PDEATHSIG, MAP_NORESERVE = 1, 0x4000
RW = mmap.PROT_READ | mmap.PROT_WRITE
ONES = b"\1" * PAGES

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def anonymous(size=PAGES * PAGE, prot=RW):
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def read():
    memory[::PAGE]  # noqa: B018


def write():
    memory[::PAGE] = ONES


def fork():
    """Starts a process that shares the memory."""
    global child
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pause()


def kill():
    """Ends that process."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def run_with_garbage():
    """For 400 ms, runs with a frame pointer to untouched memory: following it causes a fault and returns nothing."""
    # push %rbp; mov %rsi, %rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret
    code = anonymous(PAGE, RW | mmap.PROT_EXEC)
    code.write(bytes.fromhex("55 4889f5 48ffcf 75fb 5d c3"))
    run = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)(address_of(code))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    garbage = libc.mmap(None, 1 << 36, mmap.PROT_READ, flags, -1, 0)
    end = time.monotonic_ns() + 400_000_000
    while time.monotonic_ns() < end:
        run(200_000, garbage)
        garbage += 64 * PAGE


def write_forbidden():
    """Writes to a page that cannot be written to until a signal handler has made it writable, which takes it 60 ms.
    Prints the page's address first."""
    page = anonymous(PAGE)
    address = ctypes.c_void_p(address_of(page))

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def on_fault(_):
        end = time.monotonic_ns() + 60_000_000
        while time.monotonic_ns() < end:
            pass
        libc.mprotect(address, PAGE, RW)

    print(address.value, flush=True)
    libc.signal(signal.SIGSEGV, on_fault)
    libc["raise"](signal.SIGSEGV)  # nothing in it, nor its stack, is new to the process afterwards
    libc.mprotect(address, PAGE, 0)
    ctypes.memset(address, 1, 1)


def start_threads():
    for _ in range(THREADS - 1):
        threading.Thread(target=touch_on_request, daemon=True).start()


def touch_on_request():
    requested.wait()
    touched.append(anonymous())
    touched[-1][::PAGE] = ONES
    signal.pause()


def touch_in_threads():
    requested.set()
    while len(touched) < THREADS - 1:
        time.sleep(0.001)


child, requested, touched = 0, threading.Event(), []
if sys.argv[1] == "anonymous":
    memory = anonymous()
else:
    with open(sys.argv[1], "r+b") as file:
        memory = mmap.mmap(file.fileno(), PAGES * PAGE, mmap.MAP_PRIVATE, RW)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
for step in sys.argv[2:]:
    signal.sigwait([signal.SIGUSR1])
    for function in step.split(","):
        globals()[function]()
    print("done", flush=True)
signal.pause()
