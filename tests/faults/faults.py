# SPDX-License-Identifier: MIT
"""The recorder beside hostile and unlucky neighbours: files of targets that block for good or shrink, helpers that die.

Each case asserts that the recorder continues, says what it could not name, ends in time, leaves nothing attached, and that
its recording can be read.
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ.get("FORKTAIL_BIN_DIR") or pathlib.Path(__file__).resolve().parents[2] / "build" / "bin")
HERE = pathlib.Path(__file__).resolve().parent
NAME = "victim-of-fault"
ENDS_S = 5  # a recorder ends within this time
SKIPPED = 3
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


class Skip(Exception):
    pass


def check(truth, what):
    if not truth:
        raise AssertionError(what)


def wait_for(what, condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < until, f"waited {seconds} s for {what}")
        time.sleep(0.02)


def must(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source, target, kind, flags=0, options=""):
    must(libc.mount(source.encode(), str(target).encode(), kind.encode() if kind else None, flags, options.encode()))


class Recorder:
    """A running forktail-record; `err` is what it has printed."""

    def __init__(self, directory, *options, behind=(), said=None):
        """`behind`: the words of a program that starts it, which prints to `said`."""
        self.log = directory / f"record-{time.monotonic_ns()}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([str(w) for w in (*behind, BIN / "forktail-record", *options)], stdin=subprocess.DEVNULL,
                                            stdout=said or log, stderr=log)
        wait_for("the recorder's begin", lambda: "recording " in self.err or self.process.poll() is not None)
        check(self.process.poll() is None, f"the recorder ended with {self.process.returncode}: {self.err}")

    @property
    def err(self):
        return self.log.read_text(errors="replace")

    def ends(self, within, status=0):
        processes = descendants(self.process.pid)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            stack = pathlib.Path(f"/proc/{self.process.pid}/stack").read_text()
            self.process.kill()
            raise AssertionError(f"it did not end within {within} s: {stack}{self.err}") from None
        check(self.process.returncode == status, f"status {self.process.returncode}: {self.err}")
        held = programs(processes)
        check(not held, f"BPF programs are still attached: {held}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.ends(ENDS_S)

    def helper(self, name):
        """The process id of a helper; 0: it does not run."""
        for pid in (p for p in os.listdir("/proc") if p.isdigit()):
            with contextlib.suppress(OSError, IndexError):
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
                if stat[0].split("(", 1)[1] == name and stat[1].split()[0] not in "ZX" and self.is_ours(int(stat[1].split()[1])):
                    return int(pid)
        return 0

    def is_ours(self, parent):
        """Helpers are children of the process that starts them."""
        with contextlib.suppress(OSError):
            return int(pathlib.Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[1]) == self.process.pid
        return False


def descendants(pid):
    """A process, its children, and theirs."""
    found = [pid]
    with contextlib.suppress(OSError):
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += descendants(int(child))
    return found


def names(recorder):
    """{pid: name} of the recorder and all that it started."""
    found = {}
    for pid in descendants(recorder.process.pid):
        with contextlib.suppress(OSError):
            found[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return found


def programs(processes):
    """Which of these processes hold programs in the kernel. Other tests record meanwhile."""
    held = []
    for pid in processes:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("anon_inode:bpf"):
                        held.append(f"{pid} {pathlib.Path(f'/proc/{pid}/comm').read_text().strip()}")
    return sorted(set(held))


def functions(recording):
    """Stacks of the recording, a line each: it can be read."""
    with tempfile.TemporaryDirectory() as directory:
        stacks = pathlib.Path(directory) / "stacks.folded"
        for words in (("explain", recording), ("export", recording, "-o", stacks)):
            done = subprocess.run([BIN / "forktail", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            check(done.returncode == 0, f"{words[0]}: {done.returncode} {done.stderr}")
        return stacks.read_text()


class Fixtures(contextlib.ExitStack):
    def __init__(self, words):
        super().__init__()
        self.victim, self.library, self.profile = words.victim, words.library, words.profile
        self.directory = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory(prefix="forktail-faults-")))

    def start(self, words, **how):
        process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, **how)
        self.callback(process.wait)
        self.callback(process.kill)
        return process

    def recorder(self, *options, behind=()):
        recorder = Recorder(self.directory, *options, behind=behind)
        self.callback(recorder.process.wait)
        self.callback(recorder.process.kill)
        return recorder

    def blocked(self, overlay):
        """A process whose program is on FUSE, perhaps below an overlay, in a separate mount namespace. The server of its file
        system does not answer any more."""
        if not os.path.exists("/dev/fuse"):
            raise Skip("there is no /dev/fuse")
        below, top = self.directory / "below", self.directory / "top"
        for name in ("below", "top", "upper", "work"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
            (self.directory / name).mkdir()
        fuse = os.open("/dev/fuse", os.O_RDWR)
        self.callback(os.close, fuse)
        server = self.start(["/usr/bin/python3", HERE / "fuse_server.py", fuse, self.victim], pass_fds=[fuse])

        def mounts():
            must(libc.unshare(CLONE_NEWNS))
            must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
            mount("faults", below, "fuse", options=f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other")
            if overlay:
                mount("faults", top, "overlay",
                      options=f"lowerdir={below},upperdir={self.directory}/upper,workdir={self.directory}/work")

        try:
            process = self.start([(top if overlay else below) / "program", NAME, "later"], preexec_fn=mounts, pass_fds=[fuse])
        except subprocess.SubprocessError as e:
            raise Skip(f"cannot mount FUSE{' and an overlay' if overlay else ''}: {e}") from None
        time.sleep(0.3)  # it has read all pages that it needs
        server.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        process.send_signal(signal.SIGUSR2)
        wait_for("the victim's name", lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text().strip() == NAME[:15])
        return process


def blocked_file(f, overlay):
    """A recording of a process whose program cannot be opened any more, with another target that is innocent."""
    process = f.blocked(overlay)
    other = f.start([f.victim, "innocent"])
    recorder = f.recorder( "-p", process.pid, "-p", other.pid, "--duration", "4s", "-o", f.directory / "file.forktail")
    recorder.ends(4 + ENDS_S)
    if overlay:
        check("left alone" in recorder.err, f"it does not say what it could not open: {recorder.err}")
    check("burn" in functions(f.directory / "file.forktail"), "the innocent target's functions have no names")


def fuse(f):
    blocked_file(f, overlay=False)


def overlay(f):
    blocked_file(f, overlay=True)


def ring(f):
    """A flight recorder that finds such a process while it runs ends on SIGTERM, and another one can begin at once."""
    directory = f.directory / "ring"
    options = ("--name", NAME[:15], "--keep", "20s,64MB", "-o", directory)
    recorder = f.recorder(*options)
    process = f.blocked(overlay=True)
    wait_for("the target's begin", lambda: f"({process.pid}) began" in recorder.err)
    wait_for("the hung helper's end", lambda: "left alone" in recorder.err)
    recorder.stop()
    f.recorder(*options).stop()
    functions(directory)


def truncated(f):
    """A target cuts off its own libraries: names stay known, and the helper that reads files lives."""
    copies = f.directory / "copies"
    copies.mkdir()
    process = f.start([f.victim, "truncates", copies, f.library])
    recorder = f.recorder("-p", process.pid, "--duration", "12s", "-o", f.directory / "cut.forktail")
    first = recorder.helper("forktail-unwind")
    time.sleep(11)
    last = recorder.helper("forktail-unwind")
    recorder.ends(1 + ENDS_S)
    check(first and first == last, f"the helper was replaced: {recorder.err}")
    check("library_work" in functions(f.directory / "cut.forktail"), "the library's functions have no names")


def helpers(f):
    """Each helper is killed, and is started again; the recording continues."""
    process = f.start([f.victim, "helped"])
    recorder = f.recorder("-p", process.pid, "-o", f.directory / "helped.forktail")
    for name in ("forktail-unwind", "forktail-files", "forktail-stats", "forktail-events"):
        pid = recorder.helper(name)
        if not pid:
            check(name == "forktail-events", f"there is no {name}")
            continue  # it is started when the recorder gives up its rights, if at all
        os.kill(pid, signal.SIGKILL)
        if name in ("forktail-unwind", "forktail-files"):
            wait_for(f"another {name}", lambda: recorder.helper(name) not in (0, pid))
            check("ended" in recorder.err, f"nothing is said of {name}: {recorder.err}")
    time.sleep(1.5)
    recorder.stop()
    check("burn" in functions(f.directory / "helped.forktail"), "functions have no names")


def profile(f):
    """Under the seccomp profile of contrib/kubernetes a flight recorder records, takes snapshots and explains them."""
    directory = f.directory / "profiled"
    process = f.start([f.victim, "profiled"])
    recorder = f.recorder("-p", process.pid, "--keep", "20s,64MB", "--on", "drops > 0", "-o", directory,
                          behind=(f.profile, HERE.parents[1] / "contrib" / "kubernetes" / "forktail-seccomp.json"))
    wait_for("the guard", lambda: "forktail-run" in names(recorder).values())
    recorder.process.send_signal(signal.SIGUSR1)
    wait_for("an explained snapshot", lambda: list((directory / "snapshots").glob("*/explain.txt")), 30)
    recorder.stop()
    check("refused" not in recorder.err and "cannot" not in recorder.err, recorder.err)
    check("burn" in functions(directory), "functions have no names")


# What a trigger's command can do, a line each: "NAME errno", 0: it could.
PROBE = """#!/usr/bin/python3
import ctypes, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
clone, fsopen, pidfd_getfd = {"x86_64": (56, 430, 438), "aarch64": (220, 430, 438)}[platform.machine()]
NEWUSER, SIGCHLD = 0x10000000, 17
def call(name, *words):
    result = libc.syscall(*words)
    print(name, ctypes.get_errno() if result < 0 else 0, file=out, flush=True)
with open(sys.argv[-1] + "/probe.part", "w") as out:
    result = libc.syscall(clone, NEWUSER | SIGCHLD, 0, 0, 0, 0)
    if result == 0:
        os._exit(0)
    print("clone", ctypes.get_errno() if result < 0 else 0, file=out)
    print("unshare", ctypes.get_errno() if libc.unshare(NEWUSER) else 0, file=out)
    call("fsopen", fsopen, b"tmpfs", 0)
    call("pidfd_getfd", pidfd_getfd, 0, 0, 0)
    print("chroot", ctypes.get_errno() if libc.chroot(b"/") else 0, file=out)
    print("ptrace", ctypes.get_errno() if libc.ptrace(16, os.getppid(), 0, 0) else 0, file=out)
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        print("netfilter 0", file=out)
    except OSError as e:
        print("netfilter", e.errno, file=out)
    print("secret", 0 if "FORKTAIL_SECRET" in os.environ else 1, file=out)
os.rename(sys.argv[-1] + "/probe.part", sys.argv[-1] + "/probe")
"""


def rights(f):
    """The guard, what it starts, and the commands of triggers cannot reach the kernel, other processes or root's environment."""
    os.chmod(f.directory, 0o755)
    probe, config, directory = (f.directory / name for name in ("probe.py", "rights.toml", "rights"))
    probe.write_text(PROBE)
    probe.chmod(0o755)
    config.write_text('[snapshots]\nbefore = "1s"\nafter = "500ms"\n'
                      f'[[trigger]]\nname = "SIGUSR1"\nexec = ["{probe}"]\n')
    process = f.start([f.victim, "rights"])
    os.environ["FORKTAIL_SECRET"] = "x"
    f.callback(os.environ.pop, "FORKTAIL_SECRET")
    recorder = f.recorder("-p", process.pid, "--keep", "20s,64MB", "--user", "nobody", "--config", config, "-o", directory)
    wait_for("the guard", lambda: "forktail-run" in names(recorder).values())
    for pid, name in names(recorder).items():
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        if name in ("forktail-start", "forktail-guard", "forktail-run"):
            check(status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1", f"{name} is not limited")
            check(int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 0, f"{name} has capabilities")
            check(int(status["Uid"].split()[1]) != 0, f"{name} is root")
    recorder.process.send_signal(signal.SIGUSR1)
    wait_for("the command", lambda: list(directory.glob("snapshots/*/probe")), 30)
    found = dict(line.split() for line in next(directory.glob("snapshots/*/probe")).read_text().splitlines())
    check(len(found) == 8 and "0" not in found.values(), f"the command could: {found}")
    # Without the process that starts programs the guard ends, and another one begins.
    before = {pid for pid, name in names(recorder).items() if name in ("forktail-guard", "forktail-run")}
    os.kill(next(pid for pid in before if names(recorder)[pid] == "forktail-run"), signal.SIGKILL)
    wait_for("another guard", lambda: {"forktail-guard", "forktail-run"} <= {n for p, n in names(recorder).items() if p not in before})
    recorder.stop()


def odd_files(f):
    """A FIFO in place of run.json, and a target that has ended and is not reaped, hold nothing up."""
    run = f.directory / "odd"
    run.mkdir()
    os.mkfifo(run / "run.json")
    done = subprocess.run([BIN / "forktail", "explain", run], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    check(done.returncode == 3 and done.stderr, f"explain: {done.returncode} {done.stderr}")
    ended = f.start(["/bin/true"])
    wait_for("its end", lambda: pathlib.Path(f"/proc/{ended.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z")
    done = subprocess.run([BIN / "forktail-record", "-p", str(ended.pid), "--duration", "1s", "-o", f.directory / "ended.forktail"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    check(done.returncode == 3 and done.stderr, f"record: {done.returncode} {done.stderr}")


CASES = {c.__name__: c for c in (fuse, overlay, ring, truncated, helpers, profile, rights, odd_files)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", help="run only these: " + ", ".join(CASES))
    parser.add_argument("--victim", required=True, help="the program built from victim.c")
    parser.add_argument("--library", required=True, help="the library built from library.c")
    parser.add_argument("--profile", required=True, help="the program built from with_profile.c")
    words = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIPPED: it records, which needs root")
        return SKIPPED
    failed = skipped = 0
    for name in words.case or CASES:
        begin = time.monotonic()
        with Fixtures(words) as fixtures:
            try:
                CASES[name](fixtures)
                result = "held"
            except Skip as e:
                skipped += 1
                result = f"SKIPPED: {e}"
            except AssertionError as e:
                failed += 1
                result = f"FAILED: {e}"
        print(f"{name} ({time.monotonic() - begin:.1f} s): {result}", flush=True)
    return 1 if failed else SKIPPED if skipped == len(words.case or CASES) else 0


if __name__ == "__main__":
    sys.exit(main())
