# SPDX-License-Identifier: MIT
"""The truth suite's results as text: a line per case while it runs, and the tables of docs/results/truth.md."""
import collections
import os
import platform
import re
import statistics

import first_lines
from score import INJECTED_ONLY
from trial import ROOT

PAGE = os.path.join(ROOT, "docs", "results", "truth.md")
# The sentence about the score, by README.
SCORES = {
    os.path.join(ROOT, "README.md"):
        "{injections} injections: {named} named; where their true time is known, {within} of the attributed times are within 5 % "
        "(or 1 ms) of it. Of {lines} first lines {wrong} named something innocent without a word of doubt.",
    os.path.join(ROOT, "README.zh-CN.md"):
        "注入 {injections} 次：{named} 被正确指出；凡已知真实时间者，{within} 的归因时间与之相差不超过 5 %（或 1 ms）。"
        "{lines} 句首行结论中，有 {wrong} 句把原因错安在无辜者头上，且未作任何保留。",
}


def number(x):
    """Three digits, and no exponent."""
    return f"{x:.3g}" if abs(x) < 999.5 else f"{float(f'{x:.3g}'):,.0f}"


def ms(ns):
    return f"{number(ns / 1e6)} ms"


def percent(x):
    return f"{100 * x:.0f} %"


def line(outcome, seconds):
    """One case's result, on one line."""
    if outcome.skipped:
        return f"{outcome.case.name}: SKIPPED: {outcome.skipped}"
    if outcome.failed:
        return f"{outcome.case.name}: FAILED: {outcome.failed}"
    parts = []
    for s in outcome.scored:
        truth = s.injection.get("stall_ns")
        said = f"{s.injection['magnitude']}: {s.label}"
        if not s.hit:
            shares = ", ".join(f"{name} {percent(share)}" for name, share in list(s.shares.items())[:4])
            said += f" INSTEAD OF {s.wanted} ({', '.join([shares] + s.amiss)})"
        if truth:
            said += f" {ms(s.attributed_ns)} of {ms(truth)}"
        parts.append(said)
    parts += [f"{line.about}: first line {line.judgement}" for line in outcome.lines]
    parts += [f"by words: {outcome.public}"] if outcome.public else []
    parts += outcome.wrong
    parts += [f"{s.injection['magnitude']}: did not happen" for s in outcome.not_injected]
    slow = ", ".join(f"{name} {count}" for name, count in sorted(outcome.elsewhere.items(), key=lambda x: -x[1])[:4])
    if slow:
        parts.append(f"other slow episodes: {slow}")
    return f"{outcome.case.name} ({seconds:.0f} s): " + "; ".join(parts)


def instead(scored):
    """What was named for injections that were missed: "client-late 1"."""
    counts = collections.Counter(s.label for s in scored if s.label != s.wanted)
    return ", ".join(f"{label} {count}" for label, count in counts.most_common())


def rates(outcomes):
    """A row per cause of which something was missed; the others are a sentence. Precision also counts what the controls
    named, for causes that a machine does not have without an injection."""
    scored = [s for o in outcomes for s in o.scored]
    unasked = {cause: sum(o.elsewhere.get(cause, 0) for o in outcomes if not o.case.causes) for cause in INJECTED_ONLY}
    out = ["| cause | injected | recall, % | precision, % | time: median error, % | worst, % | within aim | named instead |",
           "|---|---:|---:|---:|---:|---:|---:|---|"]
    worst, untimed, fine = 0, [], []
    for cause in sorted({s.wanted for s in scored}):
        mine = [s for s in scored if s.wanted == cause]
        named = sum(1 for s in scored if s.label == cause) + unasked.get(cause, 0)
        timed = [s for s in mine if s.error is not None]
        errors = sorted(abs(s.error) for s in timed)
        right = sum(1 for s in mine if s.label == cause)
        if right == named == len(mine) and all(s.hit for s in mine) and all(s.within_aim for s in timed):
            (fine if timed else untimed).append(cause)
            worst = max([worst, *errors])
            continue
        precision = f"{100 * right / named:.0f}" if named else ""
        out.append(f"| {cause} | {len(mine)} | {100 * sum(s.hit for s in mine) / len(mine):.0f} | {precision} | " +
                   (f"{100 * statistics.median(errors):.0f} | {100 * errors[-1]:.0f} | "
                    f"{sum(s.within_aim for s in timed)} of {len(timed)}" if errors else " | | ") +
                   f" | {instead(mine)} |")
    out += ["", f"Recall and precision of the others are 100 %, and all times within the aim (worst error {percent(worst)}): "
            f"{', '.join(fine)}."] if fine else []
    out += ["", f"The same, without a known true time: {', '.join(untimed)}."] if untimed else []
    return out


def true_ms(s):
    truth = s.injection.get("stall_ns")
    return number(truth / 1e6) if truth else "-"


def details(outcomes):
    """A row per cause: of each of its cases, the attributed and the true time of each injection."""
    cases = {}
    for o in outcomes:
        for cause in dict.fromkeys(s.wanted for s in o.scored):
            mine = [s for s in o.scored if s.wanted == cause]
            hits = sum(s.hit for s in mine)
            missed = f" ({hits} of {len(mine)} named)" if hits < len(mine) else ""
            times = " ".join(f"{number(s.attributed_ns / 1e6)}/{true_ms(s)}" for s in mine)
            cases.setdefault(cause, []).append(f"{o.case.name} {times}{missed}")
    return ["| injected | case: attributed/true of each injection, ms |", "|---|---|",
            *(f"| {cause} | {'; '.join(of)} |" for cause, of in cases.items())]


def controls(outcomes):
    """What was slow where nothing was injected, by first cause."""
    out = ["| control | slow episodes by first cause |", "|---|---|"]
    for o in outcomes:
        slow = ", ".join(f"{name} {count}" for name, count in sorted(o.elsewhere.items(), key=lambda x: -x[1])) or "none"
        out.append(f"| {o.case.name} | {slow} |")
    return out + ["", f"Unattributed in these: at most {percent(max(o.unknown for o in outcomes))}."]


def text(outcomes, seed):
    magnitudes = "" if seed is None else f", magnitudes drawn with seed {seed}"
    ran = [o for o in outcomes if not o.skipped and not o.failed]
    scored = [s for o in ran for s in o.scored]
    out = [f"Linux {platform.release()}, {os.cpu_count()} CPUs; {len(scored)} injections in {len(ran)} trials{magnitudes}.", ""]
    if scored:
        out += rates(ran) + [""] + details(ran) + [""]
    missing = [f"`{o.case.name}` {s.injection['magnitude']}" for o in outcomes for s in o.not_injected]
    if missing:
        out.append(f"Did not happen here (shorter than a slow request, by the true time): {', '.join(missing)}.\n")
    quiet = [o for o in ran if not o.case.causes]
    if quiet:
        out += controls(quiet) + [""]
    if ran:
        worst = max(ran, key=lambda o: o.account_error)
        out.append(f"Every thread's accounted time equals its wall time within {100 * worst.account_error:.3f} % "
                   f"(worst: {worst.case.name}). Events dropped: {sum(o.drops for o in ran)}.")
    if any(o.lines for o in ran):
        out.append(f"First lines: {first_lines.counts(ran)}.")
    out += [f"Wrong: `{o.case.name}`: {first_lines.brief(said).removesuffix('.')}." for o in ran for said in o.wrong]
    out += [f"Failed here: `{o.case.name}`: {o.failed}." for o in outcomes if o.failed]
    for o in outcomes:
        if o.skipped:
            out.append(f"Skipped here: `{o.case.name}`: {o.skipped}.")
    return "\n".join(out)


def write_scores(outcomes):
    """Writes the sentence about the score into each README."""
    ran = [o for o in outcomes if not o.skipped and not o.failed]
    scored = [s for o in ran for s in o.scored]
    timed = [s for s in scored if s.error is not None]
    lines = [line for o in ran for line in o.lines]
    figures = {"injections": len(scored), "named": percent(sum(s.hit for s in scored) / len(scored)),
               "within": percent(sum(s.within_aim for s in timed) / len(timed)), "lines": len(lines),
               "wrong": sum(line.judgement == first_lines.WRONG for line in lines)}
    for page_path, sentence in SCORES.items():
        write(sentence.format(**figures), "score", page_path)


def write(tables, what, page_path=PAGE):
    """Replaces what the page has between its markers of that name."""
    begin, end = f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
    with open(page_path) as f:
        page = f.read()
    page, found = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n{tables}\n{end}", page, flags=re.S)
    if not found:
        raise RuntimeError(f"{page_path} has no markers {begin} and {end}")
    with open(page_path, "w") as f:
        f.write(page)
