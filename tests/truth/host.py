# SPDX-License-Identifier: MIT
"""The injections' changes to the host: hogs, cgroups, slow disks, swap, floods. Each reverts its own change."""
import contextlib
import ctypes
import mmap
import os
import signal
import struct
import subprocess
import time

from trial import Leftover, Skip, forktail, now_ns, program, wait_for

from forktail.host.swap import make_swap, remove_swap  # after trial, which makes the package known

CGROUPS = "/sys/fs/cgroup"


def wait_stopped(pid):
    def stopped():
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    wait_for(f"process {pid}'s stop", stopped)


def hog(trial, cpu, *how):
    """A process that will keep a CPU busy once it is continued (SIGCONT). `how`: a command that starts it."""
    process = trial.start(list(how) + ["sh", "-c", "kill -STOP $$; while :; do :; done"],
                          preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    wait_stopped(process.pid)
    return process


def let_run(process, seconds):
    """Continues a hog for this long, and ends it."""
    process.send_signal(signal.SIGCONT)
    time.sleep(seconds)
    process.kill()
    process.wait()


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def traced(threads):
    """Stops threads, {tid: ms}, each for its time, with ptrace, without stopping other threads of their processes.
    Returns {tid: (start, end)}."""
    times = {}
    for tid in threads:
        if ptrace(PTRACE_SEIZE, tid, None, None):
            raise Skip("ptrace: " + os.strerror(ctypes.get_errno()))
    for tid in threads:
        ptrace(PTRACE_INTERRUPT, tid, None, None)
        os.waitpid(tid, WALL)
        times[tid] = now_ns()
    for tid, ms in sorted(threads.items(), key=lambda thread: thread[1]):
        time.sleep(max(0, (times[tid] - now_ns()) / 1e9 + ms / 1000))
        ptrace(PTRACE_DETACH, tid, None, None)
        times[tid] = (times[tid], now_ns())
    return times


def traced_for(tid, ms):
    """The same for one thread. Returns how long it was, in ns."""
    since, until = traced({tid: ms})[tid]
    return until - since


def sh(*argv):
    """Runs a command that the injection needs to succeed. Returns its output."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        raise Skip(f"{argv[0]} is not installed") from None
    if done.returncode != 0:
        raise Skip(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout.strip()


def write(path, text):
    try:
        with open(path, "w") as f:
            f.write(str(text))
    except OSError as e:
        raise Skip(f"{path} = {text}: {e.strerror}") from e


def unified_cgroups():
    """The mount point of cgroups of version 2."""
    with open("/proc/mounts") as f:
        for line in f:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    raise Skip("no cgroups of version 2 here")


class Cgroup:
    """A cgroup of one v1 controller, for processes of the trial. Without a controller one of version 2."""

    def __init__(self, trial, controller=None):
        root = f"{CGROUPS}/{controller}" if controller else unified_cgroups()
        if not os.path.isdir(root):
            raise Skip(f"no {controller} cgroup controller (v1) here")
        self.path = f"{root}/forktail-truth-{os.getpid()}"
        trial.session.keeper.keep(Leftover.CGROUP, self.path)
        os.makedirs(self.path, exist_ok=True)
        trial.stack.callback(self.remove)

    def set(self, name, value):
        write(os.path.join(self.path, name), value)

    def get(self, name):
        with open(os.path.join(self.path, name)) as f:
            return f.read()

    def add(self, pid):
        self.set("cgroup.procs", pid)

    def remove(self):
        """Remaining processes in it move to the root."""
        with contextlib.suppress(OSError, Skip):
            for pid in self.get("cgroup.procs").split():
                write(os.path.join(os.path.dirname(self.path), "cgroup.procs"), pid)
            os.rmdir(self.path)


class Loop:
    """A separate block device: a file behind /dev/loopN, which can be made slow for all processes."""

    def __init__(self, trial, megabytes):
        self.name = f"disk{len(os.listdir(trial.directory))}"
        image = os.path.join(trial.directory, self.name + ".image")
        with open(image, "wb") as f:
            f.truncate(megabytes << 20)
        self.device = sh("losetup", "--find", "--show", image)
        trial.stack.callback(subprocess.run, ["losetup", "--detach", self.device])
        number = os.stat(self.device).st_rdev
        self.number = f"{os.major(number)}:{os.minor(number)}"
        self.limits = {}
        trial.stack.callback(self.unlimit)

    def limit(self, what, per_second):
        """what: read_iops, write_iops, read_bps, write_bps. 0 removes the limit."""
        write(f"{CGROUPS}/blkio/blkio.throttle.{what}_device", f"{self.number} {per_second}")
        self.limits[what] = per_second

    def unlimit(self):
        for what, per_second in self.limits.items():
            if per_second:
                self.limit(what, 0)

    def little_dirty(self, limit_bytes):
        """Writers wait once this many bytes are dirty on this device, instead of a share of all memory."""
        write(f"/sys/class/bdi/{self.number}/strict_limit", 1)
        write(f"/sys/class/bdi/{self.number}/max_bytes", limit_bytes)

    @contextlib.contextmanager
    def limited(self, what, per_second):
        self.limit(what, per_second)
        try:
            yield
        finally:
            self.limit(what, 0)


class Disk(Loop):
    """The same with a file system, mounted at .path."""

    def __init__(self, trial, megabytes=512):
        super().__init__(trial, megabytes)
        sh("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.device)
        self.path = os.path.join(trial.directory, self.name)
        os.mkdir(self.path)
        sh("mount", self.device, self.path)
        trial.stack.callback(self.unmount)

    def unmount(self):
        self.unlimit()
        subprocess.run(["umount", self.path], stdin=subprocess.DEVNULL)


def compressed_swap(trial, megabytes):
    """Swap in compressed memory."""
    try:
        device = make_swap(trial.session, "zram", megabytes << 20, "")
    except forktail.Failure as why:
        raise Skip(why) from None
    trial.stack.callback(remove_swap, trial.session, device)


def preloaded(trial, library, variable, size, writable=False):
    """A library of the tests, preloaded into a server, which counts in a file or reads orders there: the file, mapped,
    and the additions to the server's environment."""
    path = str(program("forktail").parents[1] / "tests" / f"lib{library}.so")
    if not os.path.exists(path):
        raise RuntimeError(f"{path} is missing: build all targets first")
    counts = os.path.join(trial.directory, library)
    with open(counts, "wb") as f:
        f.truncate(size)
    with open(counts, "r+b") as f:
        table = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
    return table, {"LD_PRELOAD": path, variable: counts}


class MapClock:
    """How long a server's main thread was in mmap, measured inside the server (tests/system/explain/mmap_lock_holder.c)."""

    def __init__(self, trial):
        self.sum, self.environment = preloaded(trial, "mmap_lock_holder", "FORKTAIL_HOLD_CLOCK", 8)

    def spent_ns(self, _tid):
        return struct.unpack("=Q", self.sum[:8])[0]


class CallsClock:
    """How long a server's threads were in calls on files, measured inside the server (calls_clock.c)."""

    THREADS, ROW = 64, struct.Struct("=4Q")
    CALLS = ("fsync", "file-write", "file-meta")

    def __init__(self, trial):
        self.table, self.environment = preloaded(trial, "truth_calls_clock", "FORKTAIL_CALLS_CLOCK", self.THREADS * self.ROW.size)

    def of(self, call):
        """A function of a thread: ns in such calls so far."""
        index = self.CALLS.index(call)

        def spent_ns(tid):
            for i in range(self.THREADS):
                row = self.ROW.unpack_from(self.table, i * self.ROW.size)
                if row[0] == tid:
                    return row[1 + index]
            return 0

        return spent_ns


class ThreadShim:
    """Makes one thread of a server sleep, burn its CPU or hold a mutex, from inside the server (thread_shim.c)."""

    CALLS = ("read", "write", "lock")
    ORDER, RESULT, ASKED, DONE = struct.Struct("=4I16sQ"), struct.Struct("=4Q"), 1, 3

    def __init__(self, trial):
        self.table, self.environment = preloaded(trial, "truth_thread_shim", "FORKTAIL_THREAD_SHIM",
                                                 self.ORDER.size + self.RESULT.size, writable=True)

    def order(self, comm, call, ms, burn=False):
        """Orders a delay for a thread of this name in its next such call."""
        self.ORDER.pack_into(self.table, 0, 0, self.CALLS.index(call), burn, 0, comm.encode(), int(ms * 1e6))
        struct.pack_into("=I", self.table, 0, self.ASKED)

    def done(self):
        """{tid, start_ns, end_ns, cpu_ns} of the thread that carried it out, once that is over. Else None."""
        if struct.unpack_from("=I", self.table)[0] != self.DONE:
            return None
        return dict(zip(("tid", "start_ns", "end_ns", "cpu_ns"), self.RESULT.unpack_from(self.table, self.ORDER.size)))
