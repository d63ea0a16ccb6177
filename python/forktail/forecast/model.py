# SPDX-License-Identifier: MIT
"""What a snapshot would cost, from facts about a server: the models of `forktail forecast`.

Each figure is a range with the reason for it. A server's own earlier snapshots decide where there are some; else what
was measured on this host does; else rates that are typical, with a wide range.
"""

import math
import statistics
from dataclasses import dataclass, field

PAGE = 4096
HUGE = 2 << 20
# Without an earlier snapshot of this server, a child writes this many bytes of the data set per second (low, likely,
# high): between many small keys with compression and few large ones.
_BYTES_PER_S = (60e6, 150e6, 500e6)
# Pages that a write copies the first time it comes there (low, likely, high): an update in place of a large value
# touches less than a page, a new value with its key's entry and the allocator's bookkeeping up to two.
_PAGES_PER_WRITE = (0.5, 1.0, 2.0)
_CHILD_BYTES = 16 << 20  # what the child itself allocates: buffers for input and output
_FIRST_BYTES = (0.5e6, 1e6, 2e6)  # copied for every child: stacks, the allocator's and the event loop's own pages


@dataclass
class Range:
    """A forecast: in most cases between low and high."""

    low: float
    likely: float
    high: float
    reason: str = ""


@dataclass
class Earlier:
    """An earlier snapshot of this server, from a recording."""

    command: str
    rss: int
    fork_ns: int | None
    duration_ns: int
    copied: int
    writes: int | None
    p99_9_ns: int | None = None


@dataclass
class Facts:
    """What is known about a server and its host. Sizes are bytes."""

    anonymous: int  # resident memory that a fork copies page tables for
    resident: int
    swapped: int
    page_tables: int
    huge: tuple[int, int]  # at least and at most of `anonymous` in huge pages
    data: int  # INFO's used_memory
    fork_base_ns: float  # a fork of nothing, a page of 4 kB and a huge page, as measured on this host
    page_ns: float
    huge_page_ns: float
    writes_per_s: float
    available: int  # memory of the host
    swap_free: int
    cgroup_left: int | None = None  # until the nearest limit; None: no limit
    cgroup_name: str = ""
    commit_left: int | None = None  # with vm.overcommit_memory = 2; else None
    writable: int = 0  # private writable memory, which a fork commits again
    disk_free: int | None = None  # where the file is written
    last_file: int | None = None  # bytes of the last file
    last_seconds: dict[str, float] = field(default_factory=dict)  # INFO's time of the last one, by command
    earlier: list[Earlier] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # commands that the server would refuse now, and why


@dataclass
class Forecast:
    """What a command would do now."""

    command: str
    fork_ns: Range
    duration_ns: Range
    copied: Range
    peak: Range
    p99_ns: Range
    p99_9_ns: Range
    host_left: int  # after the high end
    cgroup_left: int | None
    fits: str  # "yes", "perhaps", "no"
    why: list[str]  # what would not fit, or what is close


def _median_rate(values: list[float], amounts: list[int]) -> float:
    return statistics.median(value / amount for value, amount in zip(values, amounts, strict=True))


def fork_time(facts: Facts) -> Range:
    """Of fork(): the kernel copies an entry of the page tables per page of anonymous memory (copy_page_range)."""
    known = [one for one in facts.earlier if one.fork_ns and one.rss]
    if known:
        rate = _median_rate([float(one.fork_ns or 0) for one in known], [one.rss for one in known])
        likely = rate * facts.resident
        many = f"its last {len(known)} forks" if len(known) > 1 else "its last fork"
        return Range(0.8 * likely, likely, 1.25 * likely, f"{many} took {rate * 1e9 / 1e6:.3g} ms per GB")
    all_bytes = facts.anonymous + facts.swapped

    def time(huge: int) -> float:
        pages = max(all_bytes - huge, 0) / PAGE
        return facts.fork_base_ns + pages * facts.page_ns + huge / HUGE * facts.huge_page_ns

    least, most = facts.huge
    slow, fast = time(least), time(most)
    reason = f"{all_bytes / PAGE:,.0f} pages of 4 kB at {facts.page_ns:.0f} ns each, measured on this host"
    if most > least:
        reason += "; how much of it is in huge pages is not known"
    elif least:
        reason += f"; {least / 1e6:,.0f} MB of it are in huge pages"
    likely = slow if most == least else (slow + fast) / 2
    return Range(0.8 * fast, likely, 1.25 * slow, reason)


def duration(facts: Facts, command: str) -> Range:
    """From the fork to the end of the child."""
    known = [one for one in facts.earlier if one.command == command and one.rss]
    if known:
        rate = _median_rate([float(one.duration_ns) for one in known], [one.rss for one in known])
        likely = rate * facts.resident
        return Range(0.8 * likely, likely, 1.25 * likely, f"its last one took {known[-1].duration_ns / 1e9:.3g} s")
    seconds = facts.last_seconds.get(command, 0)
    if seconds > 0:
        # INFO has whole seconds.
        return Range(
            (seconds - 0.5) * 0.8e9, seconds * 1e9, (seconds + 0.5) * 1.25e9, f"INFO: the last one took {seconds:.0f} s"
        )
    low, likely, high = (facts.data / rate * 1e9 for rate in reversed(_BYTES_PER_S))
    return Range(low, likely, high, f"{facts.data / 1e6:,.0f} MB at 60 to 500 MB/s: it has written none yet")


def _touched(pages: float, touches: float) -> float:
    """Different pages of so many that so many touches at random reach: P(1 - e^(-n/P))."""
    return pages * (1 - math.exp(-touches / pages)) if pages else 0


def copied(facts: Facts, command: str, lasts: Range) -> Range:
    """Memory that the server's writes copy while the child runs."""
    pages = facts.anonymous / PAGE
    known = [one for one in facts.earlier if one.rss and one.duration_ns]
    if known:
        last = ([one for one in known if one.command == command] or known)[-1]
        last_pages = last.rss / PAGE
        share = min(last.copied / PAGE / last_pages, 0.98)
        touches = -last_pages * math.log(1 - share)  # inverse of _touched
        if last.writes:
            per_write = touches / last.writes
            writes = facts.writes_per_s * lasts.likely / 1e9
            reason = f"its last one copied {touches / last.writes:.2g} pages per write"
            likely = _touched(pages, per_write * writes) * PAGE
        else:
            reason = f"its last one copied {last.copied / 1e6:,.0f} MB in {last.duration_ns / 1e9:.3g} s"
            likely = _touched(pages, touches * lasts.likely / last.duration_ns) * PAGE
        return Range(0.75 * likely, likely, 1.25 * likely, reason)
    writes = facts.writes_per_s * lasts.likely / 1e9
    low, likely, high = (
        _touched(pages, rate * writes) * PAGE + first
        for rate, first in zip(_PAGES_PER_WRITE, _FIRST_BYTES, strict=True)
    )
    reason = f"{facts.writes_per_s:,.0f} writes/s that touch 0.5 to 2 pages each; keys that are written again copy once"
    return Range(low, likely, high, reason)


def percentile(facts: Facts, share: float, fork: Range, lasts: Range) -> Range:
    """A percentile of requests due at a steady rate from the fork to the child's end: one that is due while the fork
    runs waits for the rest of it. share: 0.99, 0.999. A range of 0: it is what it is without the fork."""

    def of(fork_ns: float, lasts_ns: float) -> float:
        return max(fork_ns - (1 - share) * (fork_ns + lasts_ns), 0)

    low, likely, high = of(fork.low, lasts.high), of(fork.likely, lasts.likely), of(fork.high, lasts.low)
    reason = (
        f"requests due during the fork wait for it: {100 * fork.likely / (fork.likely + lasts.likely):.2g} % of them"
        if high
        else f"fewer than {100 * (1 - share):.2g} % of the requests are due during the fork"
    )
    seen = [one.p99_9_ns for one in facts.earlier if one.p99_9_ns]
    if share > 0.99 and seen:
        last = float(seen[-1] or 0)
        reason = f"during its last one it was {last / 1e6:.3g} ms"
        low, likely, high = last / 1.5, last, 1.5 * last
    return Range(low, likely, high, reason)


def forecast(facts: Facts, command: str) -> Forecast:
    """What the command would do now."""
    fork, lasts = fork_time(facts), duration(facts, command)
    copies = copied(facts, command, lasts)
    own = facts.page_tables + _CHILD_BYTES
    peak = Range(
        facts.resident + copies.low, facts.resident + copies.likely + own, facts.resident + copies.high + own,
        "resident memory, copies, and the child's page tables and buffers",
    )  # fmt: skip
    why, verdicts = [], ["yes"]

    def fit(left: int, what: str, hint: str) -> None:
        for name, need in (("no", copies.likely + own), ("perhaps", copies.high + own)):
            if need > left:
                verdicts.append(name)
                why.append(f"{what}: {max(left, 0) / 1e6:,.0f} MB are left, {need / 1e6:,.0f} MB are needed. {hint}")
                return

    if command in facts.refused:
        verdicts.append("no")
        why.append(f"the server would refuse it: {facts.refused[command]}")
    if facts.commit_left is not None and facts.writable > facts.commit_left:
        verdicts.append("no")
        why.append(
            f"fork() would fail: vm.overcommit_memory is 2, and {facts.writable / 1e6:,.0f} MB more than "
            f"{max(facts.commit_left, 0) / 1e6:,.0f} MB cannot be committed"
        )
    fit(facts.available + facts.swap_free, "memory of the host and swap", "The kernel's OOM killer would end a process")
    if facts.available < copies.high + own <= facts.available + facts.swap_free:
        why.append("the host would swap")
    if facts.cgroup_left is not None:
        swaps = "Its processes would swap, or " if facts.swap_free else ""
        fit(
            facts.cgroup_left, f"the memory limit of {facts.cgroup_name}",
            f"{swaps}{'the' if swaps else 'The'} OOM killer would end one of its processes",
        )  # fmt: skip
    if facts.disk_free is not None:
        file = facts.last_file or facts.data
        if facts.disk_free < file:
            verdicts.append("no")
            why.append(f"the disk has {facts.disk_free / 1e6:,.0f} MB left for a file of {file / 1e6:,.0f} MB")
    fits = "no" if "no" in verdicts else "perhaps" if "perhaps" in verdicts else "yes"
    need = int(copies.high + own)
    return Forecast(
        command, fork, lasts, copies, peak, percentile(facts, 0.99, fork, lasts), percentile(facts, 0.999, fork, lasts),
        facts.available - need, None if facts.cgroup_left is None else facts.cgroup_left - need, fits, why,
    )  # fmt: skip
