# SPDX-License-Identifier: MIT
"""The truth suite: injects real stalls into real servers and scores forktail's explanation (docs/results/truth.md).

Exit status: 0 every injectable cause was named and nothing innocent was, 1 else, 2 usage, 3 the environment is not suitable.
"""
import argparse
import os
import shutil
import signal
import sys
import time

import redis

import first_lines
import public
import score
import symbols
import tables
import tools
import whatif
from expected import FACTS
from kernel import DelayAccounting
from registry import in_order
from trial import CLIENT_CPU, SERVER_CPU, Skip, Trial, forktail, program

import cases_code  # noqa: F401 (these register their cases)
import cases_cpu  # noqa: F401
import cases_disk  # noqa: F401
import cases_division  # noqa: F401
import cases_memory  # noqa: F401
import cases_network  # noqa: F401
import cases_pairs  # noqa: F401
import cases_places  # noqa: F401
import cases_public  # noqa: F401
import cases_runs  # noqa: F401
import cases_threads  # noqa: F401

ACCOUNT_AIM, UNKNOWN_AIM = 0.001, 0.05
SHORT_TRIES = 5  # tries per case in the short form: another VM may have disturbed the first


class Outcome:
    """A case's result: scored injections and slow requests outside of them, or why there is none."""

    def __init__(self, case):
        self.case, self.skipped, self.failed = case, None, None
        self.scored, self.not_injected, self.elsewhere, self.unknown = [], [], {}, 0.0
        self.account_error, self.drops = 0.0, 0
        self.first_lines = []  # (injection, its judged first line), without injections that did not happen
        self.whole_lines = []  # judged first lines of whole runs
        self.too_long = []  # entries of the server's slow log in episodes that were shorter
        self.innocent = {}  # {thread: slow requests blamed on it}, for threads that may have none
        self.public = None  # verdicts by the words of the public set

    @property
    def lines(self):
        return [line for _, line in self.first_lines] + self.whole_lines

    @property
    def wrong(self):
        """Wrong first lines, and impossible results of forktail, whatever was injected, as sentences."""
        problems = [problem for line in self.lines for problem in line.amiss] + self.too_long
        if self.account_error > ACCOUNT_AIM:
            problems.append(f"a thread's account is {100 * self.account_error:.2f} % off its wall time")
        problems += [f"{count} requests are blamed on thread {tid}, which serves no connection" for tid, count in self.innocent.items() if count]
        if not self.case.causes:
            problems += [f"{name} was named but not injected" for name in self.elsewhere if name in score.INJECTED_ONLY]
            if self.unknown > UNKNOWN_AIM:
                problems.append(f"{100 * self.unknown:.1f} % of the slow time is unattributed")
        return problems

    @property
    def hit(self):
        return not self.failed and not self.wrong and all(s.hit for s in self.scored) and (not self.public or self.public.right)


def account_error(explained):
    """The worst relative difference of a thread's account to its wall time. Threads of under 10 ms do not count."""
    return max((abs(t["accounted_ns"] - t["wall_ns"]) / t["wall_ns"] for t in explained["account"]["threads"]
                if t["wall_ns"] > 10_000_000), default=0.0)


def run_case(case, delays, arguments):
    outcome, keep = Outcome(case), arguments.keep
    try:
        with Trial(case.name, delays, case.threshold) as t:
            case.function(t, case.chosen(arguments.short or arguments.public, arguments.seed))
            explained = t.explain()
            scored = [score.score(i, explained) for i in t.injections]
            for s in scored:
                if s.injection.get("division"):
                    s.division = first_lines.division_of(t, explained["requests"], s.injection)
            if not arguments.kernel_log:
                outcome.whole_lines = [first_lines.of_run(*whole) for whole in t.wholes]
                if case.name in FACTS or not arguments.short:
                    outcome.first_lines = [(s.injection, first_lines.of_injection(t, explained["requests"], s.injection))
                                           for s in scored if s.happened]
            if arguments.public and outcome.lines:
                outcome.public = public.Public(t, outcome.lines)
            if keep:
                shutil.copytree(t.run, os.path.join(keep, case.name), dirs_exist_ok=True)
    except Skip as why:
        outcome.skipped = str(why)
        return outcome
    except (RuntimeError, OSError, redis.exceptions.RedisError) as why:
        outcome.failed = f"{type(why).__name__}: {why}"
        return outcome
    outcome.scored = [s for s in scored if s.happened and not s.injection.get("line_only")]
    outcome.not_injected = [s for s in scored if not s.happened]
    if scored and len(outcome.not_injected) == len(scored):
        outcome.skipped = "the injection took no time of the server"
    outcome.elsewhere = score.elsewhere(t.injections, explained)
    outcome.unknown = sum(c["share"] for c in explained["causes"] if c["cause"] == "unknown")
    outcome.account_error = account_error(explained)
    outcome.too_long = score.too_long(explained)
    outcome.innocent = {tid: score.blamed(explained, tid) for tid in t.innocent}
    outcome.drops = explained["drops"]["count"]
    return outcome


def main():
    parser = argparse.ArgumentParser(prog="script/truth", description=__doc__.split("\n")[0],
                                     epilog="script/truth --judge FILE... only judges what a tool printed, by the truth.json in the same directory")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="run only these cases (see --list)")
    parser.add_argument("--list", action="store_true", help="list the cases and exit")
    parser.add_argument("--short", action="store_true", help="one magnitude per case, up to five tries (used in CI)")
    parser.add_argument("--seed", type=int, metavar="N", help="draw other magnitudes, 0.7 to 1.4 times those that forktail "
                        "was developed with")
    parser.add_argument("--keep", metavar="DIR", help="keep the runs in DIR, for forktail explain")
    parser.add_argument("--what-if", type=int, metavar="PAIRS", help="verify the what-if percentiles with PAIRS pairs of "
                        "runs each, instead of the cases. CASE is then one of " + ", ".join(whatif.SCENES))
    parser.add_argument("--symbols", action="store_true", help="compare servers that were built stripped, with full symbols, and "
                        "with frame pointers (script/symbols)")
    parser.add_argument("--record", metavar="OPTION", action="append", default=[], help="pass OPTION to forktail record, "
                        "such as --record=--light")
    parser.add_argument("--kernel-log", action="store_true", help="explain the requests that the server's kernel saw "
                        "(forktail record --requests), without the load generator's log")
    parser.add_argument("--public", action="store_true", help="run the cases that come from public reports, one magnitude each, "
                        "and judge the first line by words. With --keep, DIR/CASE has truth.json and what the tools printed")
    parser.add_argument("--beside", metavar="NAME=COMMAND", action="append", default=[], help="with --public: run a shell command "
                        "during each injection, until SIGINT, and judge what it prints. Its environment has PID, SOCKET or PORT, CASE")
    parser.add_argument("--after", metavar="NAME=COMMAND", action="append", default=[], help="the same, after each injection")
    parser.add_argument("--operators", action="store_true", help="with --public: run what operators use (LATENCY DOCTOR, SLOWLOG, "
                        "perf sched, bpftrace) during each injection")
    parser.add_argument("--first-lines", action="store_true", help="write the first line of each explanation into the "
                        "page (not with --short)")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/results/truth.md")
    arguments = parser.parse_args()
    if arguments.list:
        for case in in_order():
            print(f"{case.number:>8}  {case.name:<20} {', '.join(case.causes)}")
        return 0
    names = (list(whatif.SCENES) if arguments.what_if else symbols.CASES if arguments.symbols else
             list(public.BY_CASE) if arguments.public else [case.name for case in in_order()])
    for name in arguments.cases:
        if name not in names:
            parser.error(f"no case {name}. See --list.")
    try:
        Trial.tools = tools.OPERATORS * arguments.operators + tools.as_tools(arguments.beside, arguments.after)
    except ValueError as why:
        parser.error(str(why))
    if Trial.tools and not arguments.public:
        parser.error("--beside, --after and --operators need --public")
    if os.geteuid() != 0:
        print("script/truth: must run as root to record and to inject. Use sudo.", file=sys.stderr)
        return 3
    try:
        for name in ("forktail", "forktail-record", "forktail-load"):
            program(name)
    except forktail.Failure as why:
        print(f"script/truth: {why}. Build it first.", file=sys.stderr)
        return 3
    if arguments.symbols and symbols.missing():
        print("script/truth: --symbols needs build-symbols/. Run script/symbols.", file=sys.stderr)
        return 3
    if not {SERVER_CPU, CLIENT_CPU} <= os.sched_getaffinity(0):
        print("script/truth: needs two CPUs, one for the server and one for the load", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every clean-up runs
    # Not on the server's CPU, where only the injections should run.
    os.sched_setaffinity(0, {CLIENT_CPU})
    Trial.record_options = arguments.record + ["--requests=1/1"] * arguments.kernel_log
    Trial.explained = "server.forktail" if arguments.kernel_log else ""
    delays = DelayAccounting()
    try:
        if arguments.what_if:
            text = whatif.table({cause: whatif.verify(cause, arguments.what_if, delays)
                                 for cause in arguments.cases or whatif.SCENES})
            print(text)
            if arguments.write:
                tables.write(text, "what-if")
            return 0

        def run(case):
            for _ in range(SHORT_TRIES if arguments.short else 1):
                since = time.monotonic()
                outcome = run_case(case, delays, arguments)
                print(tables.line(outcome, time.monotonic() - since), flush=True)
                if outcome.skipped or outcome.hit:
                    break
            return outcome

        cases = [case for case in in_order() if case.name in (arguments.cases or names) and
                 (case.in_short or not arguments.short or arguments.cases)]
        if arguments.public:
            cases.sort(key=lambda case: names.index(case.name))
        if arguments.symbols:
            builds = symbols.outcomes(cases, run)
            print("\n" + symbols.table(builds))
            if arguments.write:
                tables.write(symbols.table(builds), "symbols")
            return 0 if all(o.skipped or o.hit for of in builds.values() for o in of) else 1
        outcomes = [run(case) for case in cases]
    finally:
        delays.close()
    if arguments.public:
        print("\n" + public.table(outcomes))
        if Trial.tools:
            print("\n" + public.comparison(outcomes))
        if arguments.write:
            tables.write(*((public.comparison(outcomes), "comparison") if Trial.tools else (public.table(outcomes), "public")))
        return 3 if all(o.skipped for o in outcomes) else 0 if all(o.skipped or o.hit for o in outcomes) else 1
    text = tables.text(outcomes, arguments.seed)
    print("\n" + text)
    if arguments.write:
        tables.write(text, "truth")
        tables.write(first_lines.places(outcomes, public.BY_CASE), "places")
        tables.write_scores(outcomes)
    if arguments.first_lines:
        tables.write(first_lines.table(outcomes), "first-lines")
    if all(o.skipped for o in outcomes):
        return 3
    return 0 if all(o.skipped or o.hit for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
