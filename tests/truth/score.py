# SPDX-License-Identifier: MIT
"""Sets what was injected beside what forktail said.

An injection's episodes are those that overlap it. The cause that most of their requests' time went to is what
forktail named. A cause that has a time on the server's thread is measured there (thread_ns); client-late and
network are outside of it and measured by the request that had the most of it.
"""

SLACK_NS = 20_000_000  # what an injection did may be felt after it: answers to what queued up
NOT_ON_THREAD = ("client-late", "network")


class Scored:
    """One injection's outcome."""

    def __init__(self, case, injection):
        self.case, self.injection = case, injection
        self.named = "nothing"  # the first cause
        self.shares = {}  # of all of them
        self.attributed_ns = 0
        self.culprit_named = None  # None: there was none to name
        self.evidence = []

    @property
    def cause(self):
        return self.injection["cause"]

    @property
    def hit(self):
        return self.named == self.cause and self.culprit_named is not False

    @property
    def error(self):
        """Relative error of the attributed time, or None where there is no truth to compare with."""
        truth = self.injection.get("stall_ns")
        return (self.attributed_ns - truth) / truth if truth else None

    @property
    def within_aim(self):
        truth = self.injection.get("stall_ns")
        return truth is None or abs(self.attributed_ns - truth) <= max(0.1 * truth, 200_000)


def overlaps(episode, injection):
    start = episode["start_ns"]
    return start <= injection["end_ns"] + SLACK_NS and start + episode["duration_ns"] >= injection["start_ns"]


def score(case, injection, explained):
    s = Scored(case, injection)
    episodes = [e for e in explained["episodes"] if overlaps(e, injection)]
    times, on_thread = {}, {}
    for e in episodes:
        for c in e["causes"]:
            times[c["cause"]] = times.get(c["cause"], 0) + c["time_ns"]
            on_thread[c["cause"]] = on_thread.get(c["cause"], 0) + c["thread_ns"]
        s.evidence += e["evidence"]
    total = sum(times.values())
    s.shares = {name: ns / total for name, ns in sorted(times.items(), key=lambda x: -x[1])}
    if times:
        s.named = next(iter(s.shares))
    if s.cause in NOT_ON_THREAD:
        first = min((e["start_ns"] for e in episodes), default=0)
        last = max((e["start_ns"] + e["duration_ns"] for e in episodes), default=0)
        s.attributed_ns = max((p["direct_ns"] for r in explained["slow_requests"] if first <= r["start_ns"] <= last
                               for p in r["parts"] if p["cause"] == s.cause), default=0)
    else:
        s.attributed_ns = on_thread.get(s.cause, 0)
    if injection.get("culprit"):
        s.culprit_named = any(injection["culprit"] in text for text in s.evidence)
    return s


def elsewhere(injections, explained):
    """{cause: episodes} that overlap no injection."""
    found = {}
    for e in explained["episodes"]:
        if not any(overlaps(e, i) for i in injections) and e["causes"]:
            name = e["causes"][0]["cause"]
            found[name] = found.get(name, 0) + 1
    return found
