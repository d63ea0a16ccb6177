# SPDX-License-Identifier: MIT
"""The first line that `forktail explain` prints for each injected stall, and for whole runs: what it says, and whether
that is right, against the facts of expected.py.

The first line speaks of all slow requests of a run, and a trial's set-up makes slow requests too (it fills the
server). So an injection's line is of the requests that were due around it.

A wrong name is worse than none, so the two are counted apart:
  right      it names what was injected
  in part    it names another cause in the same place, such as the server's own work by another name
  no name    it says that the cause is not known, or names one with a word of doubt
  wrong name it names a place, process or command that was innocent, without a word of doubt
On a machine with other work, the load generator and the server wait for their CPUs too. Where the scheduler's own account
says that they did for a noticeable part of the injection, that is no wrong name, but in part.
"""
import collections
import json
import os
import re
import subprocess

import score
from expected import FACTS, Fact
from trial import ROOT, program

AROUND_NS = 20_000_000  # before and after what was injected
NOTICEABLE = 0.1  # of an injection's time
RIGHT, PART, NONE, WRONG = "right", "in part", "no name", "wrong name"
KINDS = ("unattributed", "overload", "outage", "none")  # of verdicts, besides cause
PLACES = {"network": "network", "client-late": "client"}  # of causes. Others are the server's
# Nothing was slow enough to be explained.
UNKNOWN = {"answer": "", "verdict": {"kind": "none", "causes": [], "sure": False}, "slow_requests": [], "episodes": []}


def place(cause):
    return PLACES.get(family(cause), "server")


def family(cause):
    """softirq/net_rx is of the family softirq."""
    return cause.split("/")[0]


class Line:
    """A first line that was judged. `about`: what was injected, in the words of the tables. `excused`: as of judge."""

    def __init__(self, fact, about, explained, gate=None, excused=()):
        self.fact, self.about, self.gate = fact, about, gate
        self.answer, self.verdict = explained["answer"], explained["verdict"]
        self.judgement = judge(fact, self.answer, self.verdict, excused)

    @property
    def amiss(self):
        """What is wrong, as sentences. Where a fact says what the line must have, it must be there; whether other
        injections were named is for score.py."""
        problems = []
        if self.judgement == WRONG or self.fact.says and self.judgement != RIGHT:
            problems.append(f"{self.judgement} in the first line: {self.answer or 'none'}")
        if self.gate and self.gate.returncode == 0:
            problems.append(f"the gate passed {self.fact.gate}")
        if self.gate and self.fact.ranked and not any(f"without {cause}" in self.gate.stdout for cause in self.verdict["causes"][:1]):
            problems.append(f"the gate names another cause: {self.gate.stdout.strip()}")
        return problems


def judge(fact, answer, verdict, excused=()):
    """`excused`: causes that were there without being injected, by an independent account."""
    kind, causes, sure = verdict["kind"], verdict["causes"], verdict["sure"]
    named = [family(c) for c in causes]
    if sure and (any(c in fact.innocent and c not in excused for c in named) or fact.unsaid and re.search(fact.unsaid, answer)):
        return WRONG
    if (kind in fact.right or kind == "cause" and named and named[0] in fact.right) and re.search(fact.says, answer):
        return RIGHT
    if kind == "overload" and any(f"({cause} " in answer for cause in fact.right):  # what the one at its limit did
        return RIGHT
    if sure and kind in ("overload", "outage"):
        return PART if kind in fact.right else WRONG
    if not sure or kind != "cause" or not named:
        return NONE
    if named[0] in fact.right or named[0] in excused or place(named[0]) in {place(c) for c in fact.right if c not in KINDS}:
        return PART
    return WRONG


def fact_of(case, injections):
    """The row of a case, or what holds for all: only the injected causes are guilty."""
    guilty = [name for i in injections for name in (family(i["cause"]), i.get("activity")) if name]
    return FACTS.get(case) or Fact(case, right=tuple(guilty) or ("none",))


def explained(path, *options):
    done = subprocess.run([program("forktail"), "explain", "--json", *options, path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode < 0:
        raise RuntimeError(f"forktail explain was killed by signal {-done.returncode}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else UNKNOWN


def between(requests, since_ns, until_ns):
    """Options that select the requests due in that time. `requests`: of the JSON of the whole run."""
    to_realtime = requests["first_realtime_ns"] - requests["first_ns"]
    since, until = (f"{(ns + to_realtime) / 1e9:.6f}" for ns in (since_ns, until_ns))
    return ["--since", since, "--until", until]


def excused_by(injection):
    """Causes that were there without being injected, by the scheduler's account."""
    noticeable = NOTICEABLE * (injection["end_ns"] - injection["start_ns"])
    return [cause for cause, ns in injection.get("waited", {}).items() if ns > noticeable]


def of_injection(trial, requests, injection):
    """The line about requests due around an injection."""
    at_once = [i for i in trial.injections if i["start_ns"] == injection["start_ns"]]  # a pair: either may be named first
    return Line(fact_of(trial.name, at_once), injection["magnitude"], explained(
        trial.run, "--slow", trial.threshold,
        *between(requests, injection["start_ns"] - AROUND_NS, injection["end_ns"] + AROUND_NS)), excused=excused_by(injection))


def division_of(trial, requests, injection):
    """How far the division of requests that wait for one iteration is from their thread's account (score.py). Those of
    its first tenth wait for nearly all of it, and for nothing else."""
    since, until = injection["start_ns"], injection["end_ns"]
    return score.division_error(explained(trial.run, "--requests", "--slow", trial.threshold,
                                          *between(requests, since, since + (until - since) // 10)))


def of_run(name, path, slow):
    """The line about a whole run, and the gate's answer."""
    fact = FACTS[name]
    gate = fact.gate and subprocess.run([program("forktail"), "gate", path, fact.gate], stdin=subprocess.DEVNULL,
                                        capture_output=True, text=True)
    return Line(fact, "whole run", explained(path, *(("--slow", slow) if slow else ())), gate)


def brief(answer):
    """The answer without its forecasts of percentiles and its advice. "12 %" means of the slow requests' time."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", answer.replace(" of the slow requests' time", ""))
    return " ".join(s for s in sentences if not s.startswith(("Without ", "Next is ", "To see which", "Run ")))


def text_of(line):
    return brief(line.answer).replace("|", "/") or "(nothing was slow)"


def table(outcomes):
    """A row per cause: the longest injection of its first case, and the line about it. Cases of `places` are there. Of lines
    that differ in the command and the figures only, the first one is enough."""
    rows = {}
    for outcome in outcomes:
        for injection, line in outcome.first_lines:
            cause = injection.get("activity", injection["cause"])
            case, longest, _ = rows.get(cause, (outcome.case.name, 0, None))
            length = injection["end_ns"] - injection["start_ns"]
            if line.answer and case == outcome.case.name and length >= longest:
                rows[cause] = case, length, line
    forms = {}
    for cause, (_, _, line) in rows.items():
        if not in_places(line):
            forms.setdefault(re.sub(r"[\d.]+ m?s\b|[\d.]+ %|^[A-Z]+\b| in \d+ event-loop iterations?", "", text_of(line)), (cause, line))
    return "\n".join(["| injected | first line |", "|---|---|"] +
                     [f"| `{cause}` | {text_of(line)} |" for cause, line in forms.values()])


def notable(lines):
    """Of the lines about a case's injections, the first one that is not right, or else the last one."""
    return next((line for line in lines if line.judgement != RIGHT), lines[-1])


def by_case(lines):
    """{fact's case: its lines}, in their order."""
    cases = {}
    for line in lines:
        cases.setdefault(line.fact.case, []).append(line)
    return cases


def in_places(line):
    return bool(line.fact.negative or line.fact.before)


def share_right(lines):
    """ "all", or "1 of 3, no name"."""
    right = sum(one.judgement == RIGHT for one in lines)
    return "all" if right == len(lines) else f"{right} of {len(lines)}, {notable(lines).judgement}"


def places(outcomes, public):
    """A row per case in which something innocent looks guilty: what was innocent (a place, or a cause in the same place),
    how many lines were judged right, and what one of them says. Of the cases that the `public` set has too, only those
    with a line that is not right."""
    rows = by_case(line for o in outcomes for line in o.lines if in_places(line))
    rows = {name: lines for name, lines in rows.items() if name not in public or share_right(lines) != "all"}
    return "\n".join(["| innocent | case | injected | a first line | right |", "|---|---|---|---|---|"] +
                     [f"| {line.fact.negative} | {name} | {line.fact.injected} | {text_of(line)} | {share_right(lines)} |"
                      for name, lines, line in sorted(((name, lines, notable(lines)) for name, lines in rows.items()),
                                                      key=lambda row: row[2].fact.negative or "~")])


def counts(outcomes):
    """How many first lines were right, and how many named the innocent."""
    found = collections.Counter(line.judgement for o in outcomes for line in o.lines)
    return ", ".join(f"{found[j]} {j}" for j in (RIGHT, PART, NONE, WRONG))
