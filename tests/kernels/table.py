# SPDX-License-Identifier: MIT
"""What the kernels came to, as text: a line each while they run, and the table of docs/platforms.md."""
import os
import re

from guest import ROOT

PAGE = os.path.join(ROOT, "docs", "platforms.md")
BEGIN, END = "<!-- kernels: begin -->", "<!-- kernels: end -->"
# What an emulated CPU has no time for, and says so: the budget for it is in CPU time.
OF_SLOWNESS = ("unwinding",)


def line(outcome):
    if outcome.impossible:
        return f"  {outcome.variant.name}: this kernel can't, and the recorder says so"
    said = "; ".join(outcome.wrong) if outcome.wrong else f"all {len(outcome.scored)} named"
    return f"  {outcome.variant.name} ({outcome.seconds:.0f} s): {said}"


def columns(outcomes):
    """What was injected, in its order."""
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


def drops(outcome):
    of_slowness = sum(count for what, count in outcome.drops.items() if what in OF_SLOWNESS)
    rest = [f"{count} {what}" for what, count in outcome.drops.items() if what not in OF_SLOWNESS]
    return ", ".join(rest) if rest else "0", str(of_slowness)


def text(outcomes):
    causes = columns(outcomes)
    out = ["| kernel | attached | map | " + " | ".join(f"{cause}: {what}" for cause, what in causes) +
           " | account off by | dropped | not unwound | s |", "|---|---|---|" + "---|" * len(causes) + "---:|---:|---:|---:|"]
    for o in outcomes:
        if o.failed or o.impossible:
            what = "failed" if o.failed else "not there"
            out.append(f"| {o.kernel.release} | {o.variant.name}: {what} | {o.map or '-'} |" + " - |" * (len(causes) + 4))
            continue
        out.append(f"| {o.kernel.release} | {o.variant.name} | {o.map} | " + " | ".join(cell(o, key) for key in causes) +
                   f" | {100 * o.account_error:.3f} % | {' | '.join(drops(o))} | {o.seconds:.0f} |")
    out += [""] + [f"{o.kernel.release}, {o.variant.name}: {o.failed}." for o in outcomes if o.failed]
    return "\n".join(out).rstrip() + "\n"


def write(what):
    with open(PAGE) as f:
        page = f.read()
    page = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{what}{END}", page, flags=re.S)
    with open(PAGE, "w") as f:
        f.write(page)
