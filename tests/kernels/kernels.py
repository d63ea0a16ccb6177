# SPDX-License-Identifier: MIT
"""Tests the recorder on the kernels that it supports (docs/results/platforms.md): boots Debian's kernels, makes known
disturbances of a redis-server that is recorded there, and checks that forktail names each. Then compares the requests
that the kernel saw with those that the load generator logged.

Exit status: 0 every kernel named all and lost nothing, 1 one did not, 2 usage, 3 the environment is not suitable.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import guest
import table
import unit
from machines import MACHINES
from packages import EXTRA, Kernel, Missing, versions

sys.path.insert(0, os.path.join(guest.ROOT, "tests", "truth"))
import score  # noqa: E402 (the truth suite's: compares injections with forktail's explanation)

COMPARE = os.path.join(os.path.dirname(guest.BIN), "tests", "compare_requests")
# Half of the shortest disturbance, which 200 requests per second cannot miss: a fork takes at least 10 ms. An emulated
# machine's own stalls are as long. Their causes are listed in EMULATORS.
SLOW = "5ms"
SLOW_NS = 5_000_000
ACCOUNT_AIM = 0.001
LEAST_NS = 1_000_000  # of a cause, below which it is not the injection
# Causes that the emulated machine produces by itself: a vCPU that has to wait for the host is late, or long in an
# interrupt.
EMULATORS = ("hardirq", "softirq", "run-queue", "client-late", "network", "server-busy")
# Side effects of the disturbances: a child's pages are copied and files are read, a file is written before it is
# synced, and a rewrite does all of it. How much of the time after a fork is slow depends on the host.
AMONG = {"BGSAVE": 4, "appendfsync always": 2, "BGREWRITEAOF": 4}


class Variant(guest.Script):
    """A way of attaching or of writing: its name, the options of forktail-record for it, and the guest's script."""

    def __init__(self, name, options="", script="scenario"):
        super().__init__(script, name=name, options=options)


REQUESTS = Variant("requests", "--requests", "requests")
REQUESTS_RING = Variant("requests-ring", "--keep 10m --requests", "requests")
VARIANTS = [Variant("default"), Variant("exact-fentry", "--exact=fentry"), Variant("exact-tracepoints", "--exact=tracepoints"),
            Variant("ring", "--keep 10m"), REQUESTS, REQUESTS_RING]
NOT_HERE = "does not allow tracing of functions"
# The kernels that cannot record requests, and what the recorder says there.
NO_REQUESTS = {"amd64": ("5.10",), "arm64": ("5.10", "6.1")}
NO_TRACEPOINTS = "forktail record: --requests: this kernel has no tracepoints"
# The kernel of the short form.
SHORT = {"amd64": "6.1", "arm64": "6.12"}
LOADS = {"requests": ("one", "many", "pipeline-2", "pipeline-16", "large"), "requests-ring": ("paced",)}
UNIX_LATE = 200  # as test_requests.py: one in so many may be answered just before the kernel notes it


class Outcome:
    """The result of one variant on one kernel."""

    def __init__(self, kernel, variant):
        self.kernel, self.variant = kernel, variant
        self.failed = None  # why there is no result
        self.impossible = False  # this kernel cannot do it, and reports that
        self.scored, self.drops, self.seconds = [], {}, 0.0
        self.account_error, self.map = 0.0, ""
        self.sent, self.seen, self.requests_wrong, self.requests_by = 0, 0, [], ""

    @property
    def wrong(self):
        """Problems, as sentences."""
        if self.failed:
            return [self.failed]
        problems = self.requests_wrong + [f"{s.wanted} ({s.injection['magnitude']}) was named {s.named}" for s in self.scored if not s.hit]
        if self.account_error > ACCOUNT_AIM:
            problems.append(f"a thread's account is {100 * self.account_error:.2f} % off its wall time")
        problems += [f"{count} {what} dropped" for what, count in self.drops.items() if what not in table.OF_SLOWNESS]
        return problems


def injections(path):
    """The scenario's steps, in the truth suite's format."""
    found = []
    with open(path) as f:
        for line in f:
            causes, start, end, stall_us, what = line.split(maxsplit=4)
            found += [{"cause": cause, "magnitude": what.strip(), "slow_ns": SLOW_NS, "stall_ns": int(stall_us) * 1000,
                       "start_ns": int(start) * 10_000_000, "end_ns": (int(end) + 1) * 10_000_000} for cause in causes.split(",")]
    return found


def judged(injection, explained):
    """The truth suite's score, ignoring the emulator's own causes: the first of the others is what was named."""
    s = score.score(injection, explained)
    others = [name for name in s.shares if name == s.cause or name.split("/")[0] not in EMULATORS]
    among_first = s.cause in others[:AMONG.get(injection["magnitude"], 1)]
    s.named = s.cause if among_first and s.attributed_ns >= LEAST_NS else (others + ["nothing"])[0]
    return s


def explain(run):
    done = subprocess.run([os.path.join(guest.BIN, "forktail"), "explain", "--json", "--requests", "--slow", SLOW, run],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError("forktail explain: " + done.stderr.strip())
    return json.loads(done.stdout)


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def doctors(left, start):
    """What doctor printed after the start of a line."""
    return next(line.split(": ", 1)[1] for line in read(os.path.dirname(left), "doctor").splitlines() if line.startswith(start))


def requests_wrong(name, found):
    """Problems of one load, of what tests/kernels/compare_requests printed."""
    late = found["sent"] // UNIX_LATE if name.startswith("unix") else 0
    wrong = [f"{name}: {found[what]} of {found['sent']} requests {what}" for what, allowed in
             (("missed", 0), ("invented", 0), ("late", late)) if found[what] > allowed]
    return wrong + ([f"{name}: {found['seen']} of {found['sent']} requests seen"] if found["seen"] != found["sent"] else [])


def judge_requests(outcome, left):
    if not os.path.exists(os.path.join(left, "status")):
        raise RuntimeError(f"the scenario did not end within {outcome.variant.limit_s} s")
    doctor, message, status = doctors(left, "requests of clients"), read(left, "recorder").strip(), read(left, "status").strip()
    if outcome.kernel.version in NO_REQUESTS[outcome.kernel.architecture]:
        outcome.impossible = status == "3" and message.startswith(NO_TRACEPOINTS) and doctor.startswith("no, this kernel has no tracepoints")
        outcome.failed = None if outcome.impossible else f"status {status}, doctor: {doctor}, the recorder's message: {message[-300:]}"
        return
    if status != "0":
        raise RuntimeError(f"status {status}. The recorder's message: {message[-300:]}")
    outcome.requests_by = "fentry" if doctor == "yes, by fentry" else "tracepoints" if doctor == "yes" else doctor
    ring = outcome.variant is REQUESTS_RING
    names = [f"{how}-{load}" for how in ("ipv4", "ipv6", "unix") for load in LOADS[outcome.variant.name]]
    compared = subprocess.run([COMPARE] + [os.path.join(left, name) for name in ["ring" if ring else "server.forktail"] + names],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if compared.returncode != 0:
        raise RuntimeError(compared.stderr.strip())
    result = json.loads(compared.stdout)
    for name, found in zip(names, result["loads"]):
        outcome.sent, outcome.seen = outcome.sent + found["sent"], outcome.seen + found["seen"]
        outcome.requests_wrong += requests_wrong(name, found)
        if ring and found["slices"] < 2:
            outcome.requests_wrong.append(f"{name}: seen in {found['slices']} slices")
    outcome.requests_wrong += [f"{result['note'][what]} {what}" for what in ("lost", "impossible", "dropped_events")
                               if result["note"][what] and not (ring and what == "lost")]


def judge(outcome, left):
    """Fills an outcome from the guest's results."""
    outcome.map = doctors(left, "thread accounts are stored in")
    if outcome.variant.script == "requests":
        judge_requests(outcome, left)
        return
    if not os.path.exists(os.path.join(left, "injected")):
        message = read(left, "recorder").strip()
        outcome.impossible = NOT_HERE in message
        if outcome.impossible:
            return
        raise RuntimeError("the scenario did not begin. The recorder's message: " + message[-300:])
    explained = explain(os.path.join(left, "run"))
    done = injections(os.path.join(left, "injected"))
    outcome.scored = [judged(i, explained) for i in done]
    outcome.seconds = (done[-1]["end_ns"] - done[0]["start_ns"]) / 1e9
    outcome.account_error = max((abs(t["accounted_ns"] - t["wall_ns"]) / t["wall_ns"] for t in explained["account"]["threads"]
                                 if t["wall_ns"] > 10_000_000), default=0.0)
    if not any(t.get("counters", {}).get("cycles") for t in explained["account"]["threads"]):
        raise RuntimeError("CPU samples read no counters")
    for interval in explained["drops"]["intervals"]:
        outcome.drops[interval["what"]] = outcome.drops.get(interval["what"], 0) + interval["count"]


def run_kernel(version, machine, variants, keep):
    """Boots one kernel and tries all variants on it. Returns their outcomes."""
    kernel = Kernel(version, machine.architecture)
    outcomes = [Outcome(kernel, variant) for variant in variants]
    with tempfile.TemporaryDirectory(prefix="forktail-kernels-") as directory:
        since = time.monotonic()
        try:
            runs = guest.boot(directory, kernel, variants)
        except RuntimeError as why:
            for outcome in outcomes:
                outcome.failed = str(why)
            return outcomes
        took = time.monotonic() - since
        for outcome in outcomes:
            try:
                judge(outcome, os.path.join(runs, outcome.variant.name))
            except (RuntimeError, OSError, ValueError) as why:
                outcome.failed = str(why) if isinstance(why, RuntimeError) else f"{type(why).__name__}: {why}"
        print(f"{kernel.release}: {took:.0f} s from power-on to power-off")
        if keep:
            shutil.copytree(runs, os.path.join(keep, version), dirs_exist_ok=True)
            shutil.copy(os.path.join(directory, "console"), os.path.join(keep, version))
    return outcomes


def main():
    parser = argparse.ArgumentParser(prog="script/kernels", description=__doc__.split("\n")[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="test only these of --list")
    parser.add_argument("--list", action="store_true", help="list the kernels and variants and exit")
    parser.add_argument("--arch", choices=sorted(MACHINES), default="amd64", help="the guest's architecture, as Debian calls it")
    parser.add_argument("--short", action="store_true", help="with the default and requests only; one kernel, unless others are named (used by the test suite)")
    parser.add_argument("--keep", metavar="DIR", help="keep the guests' recordings (for forktail explain) and logs in DIR")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/results/platforms.md; with --short, the tables of more kernels")
    parser.add_argument("--unit", nargs="?", const=".", metavar="REGEX",
                        help="run the unit tests of the build for --arch in one guest instead (default: all)")
    parser.add_argument("--only", choices=("causes", "requests"), help="test only one part")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(versions(arguments.arch)))
        print("\n".join(f"{v.name}: {v.options or 'no option'}" for v in VARIANTS))
        return 0
    for version in arguments.kernels:
        if version not in versions(arguments.arch):
            parser.error(f"no kernel {version}. See --list.")
    machine = MACHINES[arguments.arch]
    for path in [os.path.join(machine.bin(), "forktail-record"), os.path.join(machine.bin(), "forktail-load"),
                 os.path.join(guest.BIN, "forktail"), COMPARE]:
        if not os.access(path, os.X_OK):
            print(f"script/kernels: {path} is missing. Build it with script/kernels --arch {arguments.arch}", file=sys.stderr)
            return 3 if path.startswith(machine.bin()) and machine is not MACHINES["amd64"] else 2
    chosen = arguments.kernels or ([SHORT[arguments.arch]] if arguments.short else
                                   [version for version in versions(arguments.arch) if version not in EXTRA])
    variants = [VARIANTS[0], REQUESTS, REQUESTS_RING] if arguments.short else VARIANTS
    if arguments.only:
        variants = [v for v in variants if (v.script == "requests") == (arguments.only == "requests")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every clean-up runs
    if arguments.unit:
        try:
            passed = [unit.run(version, machine, arguments.unit, arguments.keep) for version in arguments.kernels or [SHORT[arguments.arch]]]
        except (Missing, RuntimeError) as why:
            print(f"script/kernels: {why}", file=sys.stderr)
            return 3 if isinstance(why, Missing) else 1
        return 0 if all(passed) else 1
    outcomes, missing = [], 0
    for version in chosen:
        try:
            outcomes += run_kernel(version, machine, variants, arguments.keep)
        except Missing as why:
            missing += 1
            print(f"SKIPPED: Linux {version}: {why}", file=sys.stderr, flush=True)
            continue
        for outcome in outcomes[-len(variants):]:
            print(table.line(outcome), flush=True)
    if not outcomes:
        return 3
    parts = {"causes": ("kernels", table.causes([o for o in outcomes if o.variant.script != "requests"])),
             "requests": ("kernels requests", table.requests([o for o in outcomes if o.variant.script == "requests"]))}
    for part, (name, lines) in parts.items():
        if arguments.only in (None, part):
            print("\n" + "\n".join(lines))
            if arguments.write and not missing:
                name += " short" if arguments.short else ""
                table.write(name if arguments.arch == "amd64" else f"{name} {arguments.arch}", lines)
    return 1 if any(o.wrong for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
