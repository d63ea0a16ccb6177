# SPDX-License-Identifier: MIT
"""The kernels' results as text: a line per trial while they run, and the tables of docs/results/platforms.md."""
import os
import re

from guest import ROOT
from packages import BUILT

PAGE = os.path.join(ROOT, "docs", "results", "platforms.md")
# Drops that only show how slow an emulated CPU is: unwinding has a budget of CPU time.
OF_SLOWNESS = ("unwinding",)


def line(outcome):
    if outcome.impossible:
        return f"  {outcome.variant.name}: not supported by this kernel, and the recorder reports it"
    if outcome.sent:
        return f"  {outcome.variant.name}, by {outcome.requests_by}: " + ("; ".join(outcome.wrong) or f"all {outcome.sent} seen")
    result = "; ".join(outcome.wrong) if outcome.wrong else f"all {len(outcome.scored)} named"
    return f"  {outcome.variant.name} ({outcome.seconds:.0f} s): {result}"


def columns(outcomes):
    """What was injected, in its order."""
    found = []
    for outcome in outcomes:
        for s in outcome.scored:
            key = (s.wanted, s.injection["magnitude"])
            found += [key] if key not in found else []
    return found


def span(values):
    """"250", or "6-9"."""
    least, most = f"{min(values):.0f}", f"{max(values):.0f}"
    return least if least == most else f"{least}-{most}"


def cell(outcomes, key):
    """Over all ways of attaching: the attributed time, and the true one where it is known."""
    found = [(o, s) for o in outcomes for s in o.scored if (s.wanted, s.injection["magnitude"]) == key]
    if not found:
        return "-"
    truth = [s.injection["stall_ns"] / 1e6 for _, s in found if s.injection["stall_ns"]]
    missed = "".join(f" **no: {s.named}** ({o.variant.name})" for o, s in found if not s.hit)
    return span([s.attributed_ns / 1e6 for _, s in found]) + (f" of {span(truth)}" if truth else "") + missed


def slowness(outcome):
    return sum(count for what, count in outcome.drops.items() if what in OF_SLOWNESS)


def drops(outcomes):
    return ", ".join(f"{count} {what}" for o in outcomes for what, count in o.drops.items()
                     if what not in OF_SLOWNESS) or "none"


def row(name, kernels, value):
    return f"| {name} | " + " | ".join(value(outcomes) for outcomes in kernels.values()) + " |"


def by_kernel(outcomes):
    kernels = {}
    for o in outcomes:
        kernels.setdefault(o.kernel.version, []).append(o)
    return kernels


def head(first, kernels):
    return [f"| {first} | " + " | ".join(kernels) + " |", "|---|" + "---:|" * len(kernels)]


def remarks(outcomes):
    impossible = ", ".join(f"{version} {' and '.join(o.variant.name for o in of)}"
                           for version, of in by_kernel([o for o in outcomes if o.impossible]).items())
    out = [f"Not supported, and the recorder reports it: {impossible}."] if impossible else []
    return out + [f"{o.kernel.version} {o.variant.name} failed: {o.failed}." for o in outcomes if o.failed]


def sources(outcomes):
    source = lambda kernel: f"{kernel.release} (built from its sources)" if kernel.version == BUILT else kernel.release
    return "Kernels of Debian: " + ", ".join(dict.fromkeys(source(o.kernel) for o in outcomes)) + "."


def ways(kernels):
    """The ways of attaching, each list once."""
    lists = {}
    for version, of in kernels.items():
        lists.setdefault(", ".join(o.variant.name for o in of), []).append(version)
    return "; ".join(f"{', '.join(versions)}: {names}" for names, versions in lists.items()) + "."


def causes(outcomes):
    """A column for each kernel."""
    ran = [o for o in outcomes if not o.failed and not o.impossible]
    kernels = by_kernel(ran)
    out = head("ms", kernels)
    out += [row(f"{key[0]}: {key[1]}", kernels, lambda of, key=key: cell(of, key)) for key in columns(ran)]
    same = []
    for name, value in (("accounts are in", lambda of: ", ".join(dict.fromkeys(o.map for o in of))),
                        ("account off by", lambda of: f"{100 * max(o.account_error for o in of):.3f} %"),
                        ("dropped", drops), ("not unwound", lambda of: span([slowness(o) for o in of]))):
        values = {value(of) for of in kernels.values()}
        if len(values) == 1:
            same.append(f"{name} {values.pop()}")
        else:
            out.append(row(name, kernels, value))
    return out + ["", *([f"In all: {'; '.join(same)}."] if same else []), ways(kernels), sources(outcomes)] + remarks(outcomes)


def requests(outcomes):
    """Likewise: what was seen of the requests that were sent."""
    kernels = by_kernel(outcomes)
    how = lambda of: next((o.requests_by for o in of if o.requests_by), "not supported")
    out = head("requests", kernels) + [row("seen at", kernels, how)]
    for name in dict.fromkeys(o.variant.name for o in outcomes):
        out.append(row(name, kernels, lambda of, name=name: ", ".join(
            "; ".join(o.wrong) or ((f"all {o.sent}" if o.seen == o.sent else f"{o.seen} of {o.sent}") if o.sent else "-") for o in of if o.variant.name == name)))
    return out + [""] + remarks(outcomes)


def write(name, lines):
    with open(PAGE) as f:
        page = f.read()
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page, found = re.subn(f"{begin}.*{end}", lambda _: "\n".join([begin, *lines, end]), page, flags=re.S)
    if not found:
        raise RuntimeError(f"{PAGE} has no markers {begin} and {end}")
    with open(PAGE, "w") as f:
        f.write(page)
