# SPDX-License-Identifier: MIT
"""Compares injections with forktail's explanation.

An injection's episodes are those that overlap it. The cause with most of their requests' time is what forktail named;
for two injections at once (among: 2) it is one of the two first causes. A cause that has a time on the server's thread
is measured there (thread_ns). client-late and network are outside of it, and are measured by the request that had the
most of it. If the injection is the server's own work, that work must be named too (activity), and its time includes the
page faults and interrupts during it, as the server's own clock does, and the causes that are part of it (includes). If
another process caused it, that process must be named (culprit). If one of several threads was affected, most of the
cause's time must be at that thread (thread). If that thread serves some of the connections, exactly the requests on these must be blamed on it
(connections). An effect of the injection that is another cause counts if the evidence says what it comes from (also).
If the injection is one event-loop iteration (division), the requests that wait for it must be divided as its thread's time.
An injection that no cause of one thread describes is judged by its first line only (line_only).
"""
import re

# Causes that a machine never produces by itself on an undisturbed server.
INJECTED_ONLY = ("fork", "fsync", "cow-copy", "page-in", "reclaim", "cpu-quota", "stopped", "frozen", "ptrace",
                 "mmap-lock", "sleep", "peer-wait", "held")
# Causes whose time the server's own clock includes.
OF_OWN_WORK = ("page-zero", "page-file", "cow-reuse", "hardirq", "softirq")
SLACK_NS = 20_000_000  # effects may continue after the injection: answers to queued requests
NOT_ON_THREAD = ("client-late", "network", "held")
OF_REQUESTS_AIM = 0.95  # recall and precision
DIVISION_AIM = 0.05  # shares of a request that waits for one iteration, against those of its thread


class Scored:
    """One injection's outcome."""

    def __init__(self, injection):
        self.injection = injection
        self.named = "nothing"  # the cause
        self.activity = None  # the server's activity, if that was injected
        self.shares = {}  # of all causes, largest first
        self.attributed_ns = 0
        self.culprit_named = None  # None: there was nothing to name
        self.thread_named = None  # the same
        self.recall = self.precision = None  # of requests, where connections are known
        self.division = None  # the largest difference of a share, where the injection is one iteration
        self.evidence = []

    @property
    def happened(self):
        """False if, by the truth, the injection was too small to make a request slow: then there is nothing to name."""
        truth = self.injection.get("stall_ns")
        return self.injection.get("happened", True) and (truth is None or truth >= self.injection["slow_ns"])

    @property
    def cause(self):
        return self.injection["cause"]

    @property
    def wanted(self):
        return self.injection.get("activity") or self.cause

    @property
    def label(self):
        """What was named, in the words of `wanted`."""
        return self.activity if self.named == "server-busy" and self.activity else self.named

    @property
    def amiss(self):
        """What is wrong apart from the cause, in words."""
        problems = ["culprit not named"] if self.culprit_named is False else []
        problems += ["at another thread"] if self.thread_named is False else []
        if self.recall is not None and min(self.recall, self.precision) < OF_REQUESTS_AIM:
            problems.append(f"of its connections' requests {100 * self.recall:.1f} % named, "
                        f"of those named {100 * self.precision:.1f} % theirs")
        if self.division is not None and self.division > DIVISION_AIM:
            problems.append(f"divided {100 * self.division:.0f} points away from the thread's own account")
        return problems

    @property
    def hit(self):
        return self.label == self.wanted and not self.amiss

    @property
    def error(self):
        """Relative error of the attributed time, or None without a truth to compare with."""
        truth = self.injection.get("stall_ns")
        return (self.attributed_ns - truth) / truth if truth else None

    @property
    def within_aim(self):
        """5 % or 1 ms, whichever is larger."""
        truth = self.injection["stall_ns"]
        return abs(self.attributed_ns - truth) <= max(0.05 * truth, 1_000_000)


def overlaps(episode, injection):
    start = episode["start_ns"]
    return start <= injection["end_ns"] + SLACK_NS and start + episode["duration_ns"] >= injection["start_ns"]


def add(sums, key, ns):
    sums[key] = sums.get(key, 0) + ns


def most(sums):
    return max(sums, key=sums.get) if sums else None


def parts_at(request, tid, threads):
    """{cause: ns} of a slow request at a thread. `threads`: {hop's name: thread}."""
    sums = {}
    for p in request["parts"]:
        if threads.get(p.get("hop")) == tid:
            add(sums, p["cause"], p["direct_ns"] + p["queued_ns"])
    return sums


def hop_threads(explained):
    """{hop's name: its thread}. For a process that is one hop, its first thread."""
    return {h["name"]: h["thread"]["tid"] if "thread" in h else h["pid"] for h in explained["hops"]}


def on_its_way(request, injection):
    """How long a request lasted during the injection, in ns."""
    end = request["start_ns"] + request["latency_ns"]
    return min(end, injection["end_ns"]) - max(request["start_ns"], injection["start_ns"])


def at_thread(s, injection, explained):
    """Whether it was reported at the affected thread, and on which requests."""
    threads = hop_threads(explained)
    meanwhile = [r for r in explained["slow_requests"] if on_its_way(r, injection) > 0]
    where = {}
    for r in meanwhile:
        for tid in set(threads.values()):
            add(where, tid, parts_at(r, tid, threads).get(s.cause, 0))
    s.thread_named = most(where) == injection["thread"] and max(where.values()) > 0
    if "connections" in injection:
        theirs = lambda r: r["connection"] in injection["connections"]
        named = [r for r in meanwhile if s.cause in parts_at(r, injection["thread"], threads)]
        hit = [r for r in meanwhile if theirs(r) and on_its_way(r, injection) >= injection["slow_ns"]]
        s.recall = sum(r in named for r in hit) / len(hit) if hit else 0.0
        s.precision = sum(map(theirs, named)) / len(named) if named else 0.0


def blamed(explained, tid):
    """How many slow requests are reported to have lost time at a thread."""
    threads = hop_threads(explained)
    return sum(1 for r in explained["slow_requests"] if parts_at(r, tid, threads))


def division_error(explained):
    """The largest difference between a cause's share of the slow requests' time and of their thread's time in the same
    episodes. `explained`: of requests that were due when one long iteration had just begun, so their episode is that
    iteration. Time outside of the server is in neither."""
    asked, spent = {}, {}
    for r in explained["slow_requests"]:
        for p in r["parts"]:
            if p["cause"] not in NOT_ON_THREAD:
                add(asked, p["cause"], p["direct_ns"] + p["queued_ns"])
    for e in explained["episodes"]:
        for c in e["causes"]:
            add(spent, c["cause"], c["thread_ns"])
    whole, own = sum(asked.values()), sum(spent.values())
    if not whole or not own:
        return 1.0
    return max(abs(asked.get(name, 0) / whole - spent.get(name, 0) / own) for name in asked.keys() | spent.keys())


def score(injection, explained):
    s = Scored(injection)
    episodes = [e for e in explained["episodes"] if overlaps(e, injection)]
    times, on_thread, activities = {}, {}, {}
    for e in episodes:
        for c in e["causes"]:
            add(times, c["cause"], c["time_ns"])
            add(on_thread, c["cause"], c["thread_ns"])
        for a in e.get("activities", []):
            # The same activity in the kernel, or in a program with other symbols, has another name.
            name = injection["activity"] if a["name"] in injection.get("or_named", ()) else a["name"]
            add(activities, name, a["time_ns"])
        s.evidence += e["evidence"]
    for sums in (times, on_thread):  # a family of causes, if one was injected
        members = [name for name in sums if name.startswith(injection["cause"] + "/")]
        if members:
            sums[injection["cause"]] = sum(sums.pop(name) for name in members)
    for name, evidence in injection.get("also", {}).items():
        if any(evidence in text for text in s.evidence):
            for sums in (times, on_thread):
                add(sums, injection["cause"], sums.pop(name, 0))
    total = sum(times.values())
    s.shares = {name: ns / total for name, ns in sorted(times.items(), key=lambda x: -x[1])}
    if s.cause in list(s.shares)[:injection.get("among", 1)]:
        s.named = s.cause
    elif s.shares:
        s.named = next(iter(s.shares))
    if injection.get("activity"):
        s.activity = most(activities)
    if s.cause in NOT_ON_THREAD:
        first = min((e["start_ns"] for e in episodes), default=0)
        last = max((e["start_ns"] + e["duration_ns"] for e in episodes), default=0)
        s.attributed_ns = max((p["direct_ns"] for r in explained["slow_requests"] if first <= r["start_ns"] <= last
                               for p in r["parts"] if p["cause"] == s.cause), default=0)
    elif injection.get("activity"):
        s.attributed_ns = activities.get(injection["activity"], 0)
        if s.attributed_ns:
            parts = (*OF_OWN_WORK, *injection.get("includes", ()))
            s.attributed_ns += sum(ns for name, ns in on_thread.items() if name.split("/")[0] in parts)
    else:
        s.attributed_ns = on_thread.get(s.cause, 0)
    if injection.get("thread"):
        at_thread(s, injection, explained)
    if injection.get("culprit"):
        s.culprit_named = any(injection["culprit"] in text for text in s.evidence)
    return s


SLOW_LOG = re.compile(r"slow log lists (\S+).*? with ([\d.,]+) (us|ms|s)\b")
UNIT_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}


def too_long(explained):
    """Commands that the evidence takes from the server's slow log for episodes that were shorter: a sentence, or none."""
    found = []
    for e in explained["episodes"]:
        for name, amount, unit in SLOW_LOG.findall("\n".join(e["evidence"])):
            if float(amount.replace(",", "")) * UNIT_NS[unit] > e["duration_ns"] + SLACK_NS:
                found.append(f"{name} of {amount} {unit} in one of {e['duration_ns'] / 1e6:.3g} ms")
    return [f"{len(found)} entries of the slow log are in shorter episodes, such as {found[0]}"] if found else []


def elsewhere(injections, explained):
    """{cause: episodes} that overlap no injection."""
    found = {}
    for e in explained["episodes"]:
        if not any(overlaps(e, i) for i in injections) and e["causes"]:
            add(found, e["causes"][0]["cause"], 1)
    return found
