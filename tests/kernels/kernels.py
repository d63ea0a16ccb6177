# SPDX-License-Identifier: MIT
"""The recorder on the kernels that it says it runs on (docs/results/platforms.md): boots Debian's, does known things to a
redis-server that is recorded there, and looks whether forktail names each.

Exit status: 0 every kernel named all and lost nothing, 1 one did not, 2 usage, 3 the environment can't.
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
from packages import RELEASES, Kernel, Missing

sys.path.insert(0, os.path.join(guest.ROOT, "tests", "truth"))
import score  # noqa: E402 (the truth suite's: what was injected beside what forktail said)

# Half of the shortest thing that is done, and what comes at 200 a second can't miss that: a fork takes 10 ms and more. An
# emulated machine's own hiccups are as long; what they are called is in EMULATORS.
SLOW = "5ms"
SLOW_NS = 5_000_000
ACCOUNT_AIM = 0.001
LEAST_NS = 1_000_000  # of a cause, or it can't be what was injected
# What the emulated machine does of its own accord: a vCPU that has to wait for the host is late, or long in an interrupt.
EMULATORS = ("hardirq", "softirq", "run-queue", "client-late", "network", "server-busy")
# What is done beside: a child's pages are copied and files are read in, a file is written before it is synced, and a
# rewrite does all of it. How much of what follows a fork is slow is the host's affair.
AMONG = {"BGSAVE": 4, "appendfsync always": 2, "BGREWRITEAOF": 4}


class Variant:
    """A way of attaching, or of writing: its name, and the options of forktail-record that ask for it."""

    def __init__(self, name, options=""):
        self.name, self.options = name, options


VARIANTS = [Variant("default"), Variant("exact-fentry", "--exact=fentry"), Variant("exact-tracepoints", "--exact=tracepoints"),
            Variant("ring", "--keep 10m")]
NOT_HERE = "does not allow tracing of functions"


class Outcome:
    """What one variant came to on one kernel."""

    def __init__(self, kernel, variant):
        self.kernel, self.variant = kernel, variant
        self.failed = None  # why there is nothing to say
        self.impossible = False  # this kernel can't be asked for it, and says so
        self.scored, self.drops, self.seconds = [], {}, 0.0
        self.account_error, self.map = 0.0, ""

    @property
    def wrong(self):
        """Sentences."""
        if self.failed:
            return [self.failed]
        said = [f"{s.wanted} ({s.injection['magnitude']}) was called {s.named}" for s in self.scored if not s.hit]
        if self.account_error > ACCOUNT_AIM:
            said.append(f"a thread's account is {100 * self.account_error:.2f} % off its wall time")
        said += [f"{count} {what} dropped" for what, count in self.drops.items() if what not in table.OF_SLOWNESS]
        return said


def injections(path):
    """What the scenario wrote down, as the truth suite has it."""
    found = []
    with open(path) as f:
        for line in f:
            causes, start, end, stall_us, what = line.split(maxsplit=4)
            found += [{"cause": cause, "magnitude": what.strip(), "slow_ns": SLOW_NS, "stall_ns": int(stall_us) * 1000,
                       "start_ns": int(start) * 10_000_000, "end_ns": (int(end) + 1) * 10_000_000} for cause in causes.split(",")]
    return found


def judged(injection, explained):
    """The truth suite's score, with the emulator's own causes left out: the first of the others is what was named."""
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


def judge(outcome, left):
    """Fills an outcome from what the guest left of it."""
    with open(os.path.join(os.path.dirname(left), "doctor")) as f:
        outcome.map = next(line.split(": ")[1].strip() for line in f if line.startswith("thread accounts are stored in"))
    if not os.path.exists(os.path.join(left, "injected")):
        with open(os.path.join(left, "recorder")) as f:
            said = f.read().strip()
        outcome.impossible = NOT_HERE in said
        if outcome.impossible:
            return
        raise RuntimeError("the scenario did not begin; the recorder says: " + said[-300:])
    explained = explain(os.path.join(left, "run"))
    done = injections(os.path.join(left, "injected"))
    outcome.scored = [judged(i, explained) for i in done]
    outcome.seconds = (done[-1]["end_ns"] - done[0]["start_ns"]) / 1e9
    outcome.account_error = max((abs(t["accounted_ns"] - t["wall_ns"]) / t["wall_ns"] for t in explained["account"]["threads"]
                                 if t["wall_ns"] > 10_000_000), default=0.0)
    for interval in explained["drops"]["intervals"]:
        outcome.drops[interval["what"]] = outcome.drops.get(interval["what"], 0) + interval["count"]


def run_kernel(version, variants, keep):
    """Boots one kernel, tries all variants on it; returns their outcomes."""
    kernel = Kernel(version)
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
                outcome.failed = f"{type(why).__name__}: {why}"
        print(f"{kernel.release}: {took:.0f} s from power-on to power-off")
        if keep:
            shutil.copytree(runs, os.path.join(keep, version), dirs_exist_ok=True)
            shutil.copy(os.path.join(directory, "console"), os.path.join(keep, version))
    return outcomes


def main():
    parser = argparse.ArgumentParser(prog="script/kernels", description=__doc__.split("\n")[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="only these: " + ", ".join(RELEASES))
    parser.add_argument("--list", action="store_true", help="say which kernels and variants there are")
    parser.add_argument("--short", action="store_true", help="6.1 with the default only: what the test suite runs")
    parser.add_argument("--keep", metavar="DIR", help="keep what the guests leave: recordings, for forktail explain, and logs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results/platforms.md")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{version:<5} Debian's {release}" for version, release in RELEASES.items()))
        print("\n".join(f"{v.name}: {v.options or 'no option'}" for v in VARIANTS))
        return 0
    for version in arguments.kernels:
        if version not in RELEASES:
            parser.error(f"there is no kernel {version}: see --list")
    for name in ("forktail", "forktail-record", "forktail-load"):
        if not os.access(os.path.join(guest.BIN, name), os.X_OK):
            print(f"script/kernels: {os.path.join(guest.BIN, name)} is missing: build it first", file=sys.stderr)
            return 2
    versions = arguments.kernels or (["6.1"] if arguments.short else list(RELEASES))
    variants = VARIANTS[:1] if arguments.short else VARIANTS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of every clean-up
    outcomes, missing = [], 0
    for version in versions:
        try:
            outcomes += run_kernel(version, variants, arguments.keep)
        except Missing as why:
            missing += 1
            print(f"script/kernels: {version} is skipped: {why}", file=sys.stderr, flush=True)
            continue
        for outcome in outcomes[-len(variants):]:
            print(table.line(outcome), flush=True)
    if not outcomes:
        return 3
    text = table.text(outcomes)
    print("\n" + text)
    if arguments.write and not missing:
        table.write(text)
    return 1 if any(o.wrong for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
