# SPDX-License-Identifier: MIT
"""The kernels' results as text: a line each while they run, and the table of docs/results/platforms.md."""
import os
import re

from guest import ROOT

PAGE = os.path.join(ROOT, "docs", "results", "platforms.md")
BEGIN, END = "<!-- kernels: begin -->", "<!-- kernels: end -->"
# A check for which an emulated CPU has no time, and reports that: its budget is in CPU time.
OF_SLOWNESS = ("unwinding",)


def line(outcome):
    if outcome.impossible:
        return f"  {outcome.variant.name}: this kernel can't, and the recorder says so"
    result = "; ".join(outcome.wrong) if outcome.wrong else f"all {len(outcome.scored)} named"
    return f"  {outcome.variant.name} ({outcome.seconds:.0f} s): {result}"


def columns(outcomes):
    """The injections, in order."""
    found = []
    for outcome in outcomes:
        for s in outcome.scored:
            key = (s.wanted, s.injection["magnitude"])
            found += [key] if key not in found else []
    return found


def cell(outcome, key):
    for s in outcome.scored:
        if (s.wanted, s.injection["magnitude"]) == key:
            truth = s.injection["stall_ns"]
            time = f"{s.attributed_ns / 1e6:.0f} ms" + (f" of {truth / 1e6:.0f}" if truth else "")
            return time if s.hit else f"**no: {s.named}**"
    return "-"


def slowness(outcome):
    return sum(count for what, count in outcome.drops.items() if what in OF_SLOWNESS)


def drops(outcome):
    return ", ".join(f"{count} {what}" for what, count in outcome.drops.items() if what not in OF_SLOWNESS) or "none"


def row(name, outcomes, value):
    return f"| {name} | " + " | ".join(value(o) for o in outcomes) + " |"


def text(outcomes):
    """A column for each way of attaching on each kernel."""
    ran = [o for o in outcomes if not o.failed and not o.impossible]
    out = [row("", ran, lambda o: f"{o.kernel.version} {o.variant.name}"), "|---|" + "---:|" * len(ran),
           row("accounts are kept in", ran, lambda o: o.map)]
    for key in columns(ran):
        out.append(row(f"{key[0]}: {key[1]}", ran, lambda o: cell(o, key)))
    out += [row("account off by", ran, lambda o: f"{100 * o.account_error:.3f} %"), row("dropped", ran, drops),
            row("not unwound", ran, lambda o: str(slowness(o))), row("seconds", ran, lambda o: f"{o.seconds:.0f}"), ""]
    releases = dict.fromkeys(o.kernel.release for o in outcomes)
    out.append("Kernels: " + ", ".join(f"Debian's {release}" for release in releases) + ".")
    out += [f"{o.kernel.version} can't do {o.variant.name}, and the recorder says so." for o in outcomes if o.impossible]
    out += [f"{o.kernel.version} {o.variant.name} failed: {o.failed}." for o in outcomes if o.failed]
    return "\n".join(out) + "\n"


def write(what):
    with open(PAGE) as f:
        page = f.read()
    page = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{what}{END}", page, flags=re.S)
    with open(PAGE, "w") as f:
        f.write(page)
