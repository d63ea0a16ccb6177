# SPDX-License-Identifier: MIT
"""The command line of `forktail forecast`: looks, prints, and with --then lets the server do it and compares."""

import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forktail.failure import CANNOT, USAGE, Failure
from forktail.forecast.look import look
from forktail.forecast.model import Earlier, Facts, Forecast, Range, forecast
from forktail.forecast.repeat import Page, Repeated, forecast_every
from forktail.options import JSON_OPTIONS, Command, Option
from forktail.servers.running import OPTIONS, connect, failures_of
from forktail.text import format_bytes, format_count, format_duration, parse_duration

_KINDS = {"bgsave": "BGSAVE", "rewrite": "BGREWRITEAOF", "replica": "a replica's full synchronization"}
_THEN_S = 3600
_POLL_S = 0.05
_PHASES = {
    "BGSAVE": ("rdb_bgsave_in_progress", "rdb_last_cow_size"),
    "BGREWRITEAOF": ("aof_rewrite_in_progress", "aof_last_cow_size"),
}

COMMAND = Command(
    "forktail forecast",
    "Forecast what BGSAVE, BGREWRITEAOF or a new replica would do to a running Redis server now: fork time, copied "
    "memory, peak, what is left, tail latency (docs/guides/snapshots.md).",
    [
        *OPTIONS,
        Option("--ring", "A ring, run or recording with earlier snapshots of this server, which make it exact", "DIR"),
        Option("--look", "Count the server's writes for TIME", "TIME", default="5s"),
        Option("--for", "Only of this: bgsave, rewrite or replica", "WHAT", several=True),
        Option("--then", "Then do it (BGSAVE, or with --for rewrite BGREWRITEAOF), and print forecast beside fact"),
        Option("--every", "Forecast again every TIME, until it is interrupted; needs --metrics-textfile", "TIME"),
        Option("--metrics-textfile", "With --every: write metrics to this directory, for node_exporter", "DIR"),
        *JSON_OPTIONS,
    ],
    examples=("sudo forktail forecast --port 6379", "sudo forktail forecast --port 6379 --ring /var/lib/forktail/ring"),
    schema=Path(__file__).parent / "forecast.schema.json",
)


def _span(of: Range, form: Any) -> str:
    if not of.high:
        return "as without it"
    return f"{form(int(of.likely))} ({form(int(of.low))} to {form(int(of.high))})"


def _left(bytes_left: int) -> str:
    return format_bytes(bytes_left) if bytes_left >= 0 else f"{format_bytes(-bytes_left)} too little"


def _verdict(one: Forecast) -> str:
    word = {"yes": "would fit", "perhaps": "may not fit", "no": "would not fit"}[one.fits]
    return f"{one.command} {word} now."


def _text(facts: Facts, address: str, pid: int, all_of_them: list[Forecast]) -> str:
    lines = [
        f"{address} (process {pid}): {format_bytes(facts.resident)} resident, "
        f"{format_count(int(facts.writes_per_s))} writes/s, {len(facts.earlier)} earlier snapshots known"
    ]
    for one in all_of_them:
        lines += ["", _verdict(one), *(f"  {why}." for why in one.why)]
        rows = [
            ("fork", _span(one.fork_ns, format_duration), one.fork_ns.reason),
            ("duration", _span(one.duration_ns, format_duration), one.duration_ns.reason),
            ("copied", _span(one.copied, format_bytes), one.copied.reason),
            ("peak", _span(one.peak, format_bytes), one.peak.reason),
            ("p99", _span(one.p99_ns, format_duration), one.p99_ns.reason),
            ("p99.9", _span(one.p99_9_ns, format_duration), one.p99_9_ns.reason),
            ("left", _left(one.host_left) + " of the host's memory", "after the high end"),
        ]
        if one.cgroup_left is not None:
            rows.append(("", _left(one.cgroup_left) + f" of {facts.cgroup_name}", "after the high end"))
        lines += [f"  {name:<9} {value:<36} {reason}" for name, value, reason in rows]
    return "\n".join(lines) + "\n"


def _json(facts: Facts, address: str, pid: int, all_of_them: list[Forecast]) -> dict[str, Any]:
    return {
        "server": {"address": address, "pid": pid, "rss_bytes": facts.resident, "writes_per_s": facts.writes_per_s},
        "earlier_snapshots": len(facts.earlier),
        "page_ns": facts.page_ns,
        "forecasts": [asdict(one) for one in all_of_them],
    }


def _fact(server: Any, command: str) -> dict[str, float]:
    """Lets the server do it, and what it reports: fork_ns, duration_ns, copied."""
    running, cow = _PHASES[command]
    began = time.monotonic()
    server.execute_command(command)
    while (persistence := server.info("persistence"))[running] or persistence.get("aof_rewrite_scheduled"):
        if time.monotonic() > began + _THEN_S:
            raise Failure(f"{command} runs for more than {_THEN_S} s", CANNOT)
        time.sleep(_POLL_S)
    took = time.monotonic() - began
    ok = persistence["rdb_last_bgsave_status" if command == "BGSAVE" else "aof_last_bgrewrite_status"]
    if ok != "ok":
        raise Failure(f"{command} failed: see the server's log", CANNOT)
    return {
        "fork_ns": server.info("stats")["latest_fork_usec"] * 1000,
        "duration_ns": took * 1e9,
        "copied": persistence[cow],
    }


def _compare(one: Forecast, fact: dict[str, float]) -> str:
    lines = [f"{one.command}, forecast and fact"]
    for name, of, form in (
        ("fork", one.fork_ns, format_duration),
        ("duration", one.duration_ns, format_duration),
        ("copied", one.copied, format_bytes),
    ):
        key = {"fork": "fork_ns", "duration": "duration_ns"}.get(name, name)
        inside = "inside" if of.low <= fact[key] <= of.high else "OUTSIDE"
        lines.append(f"  {name:<9} {_span(of, form):<36} {form(int(fact[key])):<10} {inside}")
    return "\n".join(lines) + "\n"


def _kinds(words: list[str]) -> list[str]:
    for word in words:
        if word not in _KINDS:
            raise Failure(f'--for: expected bgsave, rewrite or replica, not "{word}"', USAGE)
    return [_KINDS[word] for word in words or _KINDS]


def _every(options: dict[str, Any], look_ns: int) -> int:
    """In ns; 0: once."""
    if bool(options["every"]) != bool(options["metrics_textfile"]):
        raise Failure("--every and --metrics-textfile belong together", USAGE)
    if not options["every"]:
        return 0
    if options["then"] or options["json"]:
        raise Failure("--every only writes metrics: remove --then and --json", USAGE)
    every_ns = parse_duration(options["every"])
    if not every_ns or every_ns < 2 * look_ns:
        raise Failure(f'--every: expected a time of at least twice --look, not "{options["every"]}"', USAGE)
    return every_ns


def main(words: list[str]) -> int:
    """Exit status: 0 all fit, 1 one would not or may not, 2 wrong usage, 3 the server cannot be read."""
    _, options = COMMAND.parse(words)
    kinds = _kinds(options["for"])
    look_ns = parse_duration(options["look"])
    if not look_ns or look_ns > 3600 * 10**9:
        raise Failure(f'--look: expected a time up to 1h such as 5s, not "{options["look"]}"', USAGE)
    if options["then"] and kinds[0] not in _PHASES:
        raise Failure("--then does BGSAVE or BGREWRITEAOF: use --for bgsave or --for rewrite", USAGE)
    every_ns = _every(options, look_ns)
    server, pid, address = connect(options)
    if every_ns:
        page = Page(address)

        def look_again(known: list[Earlier]) -> tuple[Facts, list[Forecast]]:
            facts = look(server, pid, look_ns / 1e9, options["ring"] or "")
            facts.earlier += known
            return facts, [forecast(facts, kind) for kind in kinds]

        with suppress(KeyboardInterrupt):
            repeated = Repeated(page, server.info, look_again)
            forecast_every(every_ns / 1e9, options["metrics_textfile"], page, repeated, address)
        return 0
    with failures_of(address):
        facts = look(server, pid, look_ns / 1e9, options["ring"] or "")
        made = [forecast(facts, kind) for kind in kinds]
        then = options["then"] and made[0].fits == "yes"
        result = _json(facts, address, pid, made)
        if not options["json"]:
            print(_text(facts, address, pid, made), end="", flush=True)
        fact = _fact(server, kinds[0]) if then else None
    if options["json"]:
        print(json.dumps(result | ({"fact": {"command": kinds[0], **fact}} if fact else {}), indent=2))
    elif fact:
        print("\n" + _compare(made[0], fact), end="")
    if options["then"] and not then:
        print(f"forktail: {kinds[0]} is not sent, because it may not fit", file=sys.stderr)
    return 0 if all(one.fits == "yes" for one in made) else 1
