# SPDX-License-Identifier: MIT
"""Checks the published figures (python/forktail/lab/published.csv) against the texts of the five reports, and the reports
against arithmetic. It needs nothing of forktail, so that no error of forktail can hide in it.

    published.py [DIR]

DIR: a directory with the reports' texts A.txt to E.txt, which are not ours to publish; without it only the arithmetic is
checked. Exit status 1 if a figure of the file is not in its report as often as in the file.
"""

import csv
import re
import sys
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parents[1] / "python/forktail/lab/published.csv"
GBIT = 125e6  # bytes/s


def missing_figures(rows: list[dict[str, str]], directory: Path) -> list[str]:
    """The figures that their report does not have, or has less often."""
    missing = []
    for report in "ABCDE":
        text = (directory / f"{report}.txt").read_text(errors="replace")
        have = Counter(re.findall(r"\d+(?:\.\d+)?[KM]?", text.replace(",", "")))
        columns: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if row["table"][0] == report:
                columns.setdefault((row["table"], row["column"]), []).append(row["value"])
        for cells in set(map(tuple, columns.values())):  # B's text has the cells of a line without a space between them
            if len(cells) > 1:
                have.update(cells * text.count(f"){''.join(cells)}\n"))
        want = Counter(row["value"] for row in rows if row["table"][0] == report)
        for value, count in sorted(want.items()):
            estimated = value.endswith("0000") and f"{value[:-4]}w/s" in text  # in units of ten thousand
            if have[value] < count and not estimated:
                missing.append(f"{report}: {value} is {count} times in the file and {have[value]} times in the report")
    return missing


def column(rows: list[dict[str, str]], table: str, name: str) -> dict[str, float]:
    """A column of a table by row."""
    return {row["row"]: float(row["value"]) for row in rows if row["table"] == table and row["column"] == name}


def laws(rows: list[dict[str, str]]) -> None:
    """Prints what the reports' own figures say about them."""
    rate, mean = column(rows, "E2", "requests/s"), column(rows, "E2", "mean")
    failed = column(rows, "E2", "failed")
    clients = {"read": 0.8, "read 2": 0.8, "write": 0.2}
    flights, failures = [], []
    for row in rate:
        key, _, part = row.rpartition("/")
        total = float(key.split("/")[3].split()[0])
        reads = 2 if f"{key}/read 2" in rate else 1
        share = 1 if part == "sum" else clients[part] / (reads if part != "write" else 1)
        if part != "sum":
            flights.append(rate[row] * mean[row] / (total * share))
        else:
            failures.append(failed[row] / total)
    print(f"E: rate x mean latency / clients in {len(flights)} rows: {min(flights):.2f} to {max(flights):.2f} (a closed loop: 1)")
    print(f"E: failures per connection in {len(failures)} sums: {min(failures):.2f} to {max(failures):.2f}")
    lrange = column(rows, "D1", "15000")["LRANGE_600"]
    print(f"D: LRANGE_600 of 15,000-byte elements at {lrange:,.0f}/s: {lrange * 600 * 15000 / 1e9:,.0f} GB/s")
    sizes = {name: [column(rows, "D1", size)[name] for size in ("10", "15000")] for name in column(rows, "D1", "10")}
    for name in ("GET", "LRANGE_600", "SET"):
        print(f"D: {name} with 15,000 bytes against 10: {sizes[name][1] / sizes[name][0]:.2f}")
    unix = column(rows, "A3", "unix requests/s")
    print(f"A: MSET over a Unix socket is LRANGE_600's figure: {unix['MSET'] == unix['LRANGE_600']}")
    for name in ("SADD", "SPOP"):
        ratio = column(rows, "A5", "pipeline 10 requests/s")[name] / column(rows, "A5", "pipeline 1 requests/s")[name]
        print(f"A: {name} with a pipeline of 10: {ratio:.2f} times, a gain of {ratio - 1:.0%}")
    for name in ("SET", "SADD"):
        ratio = column(rows, "A8", "no wait, 10 requests/s")[name] / column(rows, "A8", "no wait, 1 requests/s")[name]
        print(f"A: {name} of the C client with ten per send: {ratio:.2f} times, a gain of {ratio - 1:.0%}")
    memory = {row["row"]: row["value"] for row in rows if row["table"] == "A2"}
    before, after = float(memory["before"][:-1]) * 1024, float(memory["after"][:-1]) * 1024**2
    print(f"A: bytes per set with binary K and M: {(after - before) / 2e6:.1f}")
    alone, attached = (next(iter(column(rows, table, "run time").values())) for table in ("B1 run", "B3 run"))
    print(f"B: an empty replica adds {(attached - alone) / 1000:.1f} s; 1.1 GB over 100 Mbit/s take {1.1e9 / (GBIT / 10):.0f} s")
    largest = max(value for row, value in column(rows, "E1", "requests/s").items())
    print(f"E: {largest:,.0f}/s of 1.2 kB are {largest * 1200 / GBIT:.2f} of 1 Gbit/s")


def main() -> int:
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    counts = Counter(row["table"][0] for row in rows)
    print(f"{len(rows)} figures: {', '.join(f'{report} {count}' for report, count in sorted(counts.items()))}")
    missing = missing_figures(rows, Path(sys.argv[1])) if len(sys.argv) > 1 else []
    print("".join(f"{one}\n" for one in missing), end="")
    laws(rows)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
