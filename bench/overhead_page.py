# SPDX-License-Identifier: MIT
"""Turns the measurements of bench/overhead into Markdown and writes it into docs/results/overhead.md."""
import os
import re
import statistics
import subprocess
import sys
import time

import bench
import quiet
import setups

PAGE = os.path.join(bench.ROOT, "docs", "results", "overhead.md")
# The aim for the worst case: one request per event-loop iteration, as many as the server can process.
AIMS = {"default": 1.05, "light": 1.02}
AIM_SETUPS = ("unix", "tcp")
AIM_PAIRS = 5  # fewer pairs decide nothing
FEWEST_RUNS = 5  # per second; rarer programs are not listed
MOST_PROGRAMS = 3


def middle(values, digits=3):
    """Median and range."""
    if not values:
        return "-"
    return (f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"
            if len(values) > 1 else f"{values[0]:.{digits}f}")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ratios(pairs, of):
    """Ratios of `of` with the recorder to `of` without, for each pair where it is known."""
    return [of(on) / of(off) for off, on in pairs if of(off)]


def fewest_and_most(counts):
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*:\s*(.*)", f.read())
    redis = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout
    return (f"{os.cpu_count()} CPUs ({model.group(1) if model else 'unknown'}), Linux {os.uname().release}, "
            f"redis-server {re.search(r'v=([0-9.]+)', redis).group(1)}")


def heading(run):
    """How it was measured: machine, load, disturbances."""
    lines = [f"`{run.command}`,", f"{time.strftime('%Y-%m-%d')}, {machine()}.",
             f"{fewest_and_most([len(p) for p in run.pairs.values()])} pairs of {run.options.requests:,} requests "
             f"({run.options.requests * setups.PIPELINE_REQUESTS:,} with pipeline {setups.PIPELINE}, "
             f"{run.options.requests // 2:,} at half load) for each figure, in {(time.monotonic() - run.begun) / 60:.0f} min."]
    stretches = [m.stretch for pairs in run.pairs.values() for pair in pairs for m in pair]
    seen = (f"Load average {run.load_average:.2f} at the start. In the counted pairs other work took "
            f"{middle([s.others for s in stretches], 1)} % of a CPU,\nthe hypervisor "
            f"{middle([s.steal for s in stretches], 1)} % (median and range).")
    if run.options.force:
        lines.insert(0, "**Measured with `--force`: the machine was not checked for other load, and no pair was discarded. "
                     "Do not rely on these figures.**")
        return "\n".join([*lines, seen])
    lost = f"{run.discarded} of {run.discarded + run.counted} pairs were disturbed (more than {quiet.limits()}) and measured again"
    if run.given_up:
        lost += f".\n{run.given_up} were abandoned after {run.tries} tries"
    return "\n".join([*lines, seen, lost + "."])


def verdict(run):
    """Whether the aim is met."""
    lines = []
    if run.options.force:
        return ""
    for name, aim in AIMS.items():
        verdicts = []
        for setup in AIM_SETUPS:
            got = ratios(run.pairs.get((setup, name), []), lambda m: m.cost)
            if not got:
                continue
            median = statistics.median(got)
            met = "undecided, too few pairs" if len(got) < AIM_PAIRS else "met" if median <= aim else "missed"
            verdicts.append(f"{setup} {median:.3f}, {met}")
        if verdicts:
            lines.append(f"- {name}, aim at most {aim:.2f}: {'; '.join(verdicts)}.")
    return "\n".join(lines)


def spread(run, of, setups, digits=3):
    """A row for each recorder, a column for each setup, with ratios of `of`. Rows without any ratio are omitted."""
    rows = []
    for recorder in run.recorders:
        cells = [middle(ratios(run.pairs.get((setup.name, recorder.name), []), of), digits) for setup in setups]
        if any(cell != "-" for cell in cells):
            rows.append([recorder.name, *cells])
    return rows


def pairs_of(run):
    head = ["server's CPU per request, on : off", *(setup.name for setup in run.setups)]
    off = [middle([off.cost for recorder in run.recorders for off, _ in run.pairs.get((setup.name, recorder.name), [])])
           for setup in run.setups]
    rows = [["off: CPU s per million requests", *off], *spread(run, lambda m: m.cost, run.setups)]
    text = [heading(run), verdict(run), table(head, rows)]
    for setup in (s for s in run.setups if s.how == "half"):
        text.append(half(run, setup))
    return "\n\n".join(part for part in text if part)


def half(run, setup):
    off = [off for recorder in run.recorders for off, _ in run.pairs.get((setup.name, recorder.name), [])]
    if not off:
        return ""
    rows = [["off, us", middle([m.p50 / 1000 for m in off], 1), middle([m.p99 / 1000 for m in off], 1)]]
    p50, p99 = spread(run, lambda m: m.p50, [setup]), spread(run, lambda m: m.p99, [setup])
    rows += [[name, a, b] for (name, a), (_, b) in zip(p50, p99)]
    return table([f"{setup.name}: {off[-1].rate:,.0f} requests per second; on : off", "p50", "p99"], rows)


def recorders(run):
    rows = []
    for account in run.accounts:
        m = account.measured.stretch
        rows.append([account.recorder.name, account.setup.name + (" (disturbed)" if account.disturbed else ""),
                     f"{account.measured.rate:,.0f}", f"{100 * m.recorder_s / m.wall_s:.2f}", f"{account.start_s:.2f}",
                     f"{account.resident_kb / 1024:.0f}", f"{account.bytes_per_s * 3600 / 1e6:,.0f}",
                     f"{m.wakeups / m.wall_s:,.0f}", account.reported["drops"]])
    return table(["recorder", "under", "requests/s", "% of a CPU", "CPU s to start", "memory, MiB", "MB/h",
                  "wake-ups/s", "dropped"], rows)


def programs(run):
    """By setup: how often forktail's most expensive programs ran and how long, for each profile."""
    text = []
    for setup in run.setups:
        accounts = [a for a in run.accounts if a.setup is setup and "programs" in a.reported]
        cells = {}
        for a in accounts:
            for p in a.reported["programs"]:
                runs = p["runs"] / a.reported["seconds"]
                if runs >= FEWEST_RUNS:
                    cells.setdefault(p["name"], {})[a.recorder.name] = (runs, p["ns_per_run"])
        if not cells:
            continue
        rows = []
        for name in sorted(cells, key=lambda n: -max(runs * ns for runs, ns in cells[n].values()))[:MOST_PROGRAMS]:
            rows.append([f"`{name}`", *(f"{cells[name][a.recorder.name][0]:,.0f} x {cells[name][a.recorder.name][1]:.0f} ns"
                                        if a.recorder.name in cells[name] else "-" for a in accounts)])
        total = [f"{sum(runs * ns for runs, ns in (c[a.recorder.name] for c in cells.values() if a.recorder.name in c)) / 1e7:.1f} % of a CPU"
                 for a in accounts]
        text.append(table([f"{setup.name}: runs per second x time per run", *(a.recorder.name for a in accounts)],
                          [*rows, ["all programs, whole host", *total]]))
    return "\n\n".join(text) or "No recording has the run times of its programs."


def peers(run):
    """What each of the other programs was asked to record and what it lacks, and which could not run here."""
    rows, reasons = [], {}
    for name, why in run.absent.items():
        if name not in run.peer_names:
            reasons.setdefault(why, []).append(name)
    for peer in run.peers:
        lacks = peer.lacks
        for part in peer.parts:
            why = peer.absent.get(part) or run.absent.get(peer.name)
            command = f"`{' '.join(part.argv).format(pid='PID', dir='.', bt='overhead.bt')}`"
            if why:
                reasons.setdefault(why, []).append(command)
                continue
            rows.append([peer.name, command, part.asked, lacks])
            lacks = '"'
    text = [table(["peer", "command", "what it was asked", "what it does not record"], rows)] if rows else []
    absent = [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
    if absent:
        text.append("Not measured here: " + "; ".join(absent) + ".")
    return "\n\n".join(text)


def put(name, text):
    """Writes a part of the page between its markers."""
    bench.put(PAGE, f"<!-- overhead: begin {name} -->\n", f"<!-- overhead: end {name} -->", text)


def publish(run, write):
    """Prints everything. With `write`, also puts each part between its markers in docs/results/overhead.md."""
    if not run.pairs:
        sys.exit("nothing was measured")
    for name, make in (("pairs", pairs_of), ("recorders", recorders), ("programs", programs), ("peers", peers)):
        text = make(run)
        print(f"{text}\n")
        if write:
            put(name, text)
