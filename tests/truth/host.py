# SPDX-License-Identifier: MIT
"""What injections do to the host: hogs, cgroups, slow disks, swap, floods. Each takes back what it did."""
import contextlib
import mmap
import os
import signal
import struct
import subprocess
import time

from trial import BIN, Skip, wait_for

CGROUPS = "/sys/fs/cgroup"


def wait_stopped(pid):
    def stopped():
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    wait_for(f"process {pid}'s stop", stopped)


def hog(trial, cpu, *how):
    """A process that will keep a CPU busy once it is continued (SIGCONT); `how`: a command that it is started by."""
    process = trial.start(list(how) + ["sh", "-c", "kill -STOP $$; while :; do :; done"],
                          preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    wait_stopped(process.pid)
    return process


def let_run(process, seconds):
    """Continues a hog for so long, and ends it."""
    process.send_signal(signal.SIGCONT)
    time.sleep(seconds)
    process.kill()
    process.wait()


def sh(*argv):
    """Runs a command that has to succeed for the injection to be possible; returns what it printed."""
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


class Cgroup:
    """A cgroup of one v1 controller, for processes of the trial."""

    def __init__(self, trial, controller):
        self.path = f"{CGROUPS}/{controller}/forktail-truth-{os.getpid()}"
        if not os.path.isdir(f"{CGROUPS}/{controller}"):
            raise Skip(f"there is no {controller} cgroup controller (v1) here")
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
        """Its processes, if any are left, go back to the root."""
        with contextlib.suppress(OSError, Skip):
            for pid in self.get("cgroup.procs").split():
                write(os.path.join(os.path.dirname(self.path), "cgroup.procs"), pid)
            os.rmdir(self.path)


class Loop:
    """A block device of its own: a file behind /dev/loopN, which can be made slow for everybody."""

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
        """what: read_iops, write_iops, read_bps, write_bps; 0 takes the limit back."""
        write(f"{CGROUPS}/blkio/blkio.throttle.{what}_device", f"{self.number} {per_second}")
        self.limits[what] = per_second

    def unlimit(self):
        for what, per_second in self.limits.items():
            if per_second:
                self.limit(what, 0)

    def little_dirty(self, limit_bytes):
        """Writers wait once so much is dirty on this device, rather than a share of all memory."""
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
    device = sh("zramctl", "--find", "--size", f"{megabytes}M")
    trial.stack.callback(subprocess.run, ["zramctl", "--reset", device])
    sh("mkswap", device)
    sh("swapon", device)
    trial.stack.callback(subprocess.run, ["swapoff", device])


class CallsClock:
    """How long a server's threads were in calls on files, measured inside the server (calls_clock.c)."""

    THREADS, ROW = 64, struct.Struct("=4Q")
    CALLS = ("fsync", "file-write", "file-meta")

    def __init__(self, trial):
        library = os.path.join(os.path.dirname(BIN), "tests", "libtruth_calls_clock.so")
        if not os.path.exists(library):
            raise RuntimeError(f"{library} is missing: build all targets first")
        path = os.path.join(trial.directory, "calls-clock")
        with open(path, "wb") as f:
            f.truncate(self.THREADS * self.ROW.size)
        with open(path, "rb") as f:
            self.table = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        self.environment = dict(os.environ, LD_PRELOAD=library, FORKTAIL_CALLS_CLOCK=path)

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
