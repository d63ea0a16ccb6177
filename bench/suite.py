# SPDX-License-Identifier: MIT
"""Where the time of building and testing goes, as Markdown (docs/results/tests.md).

    suite.py LOG... [--build DIR]

LOG: the output of ctest, or JUnit XML of pytest. Prints the 20 slowest tests, the sum, and with DIR, a build
tree that was made from nothing, the seconds that its targets took, each compiler's run counted alone.
"""

import argparse
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

CTEST = re.compile(r"Test +#\d+: (\S+) \.+ *\**(Passed|Failed|Timeout|Skipped) +([\d.]+) sec")


def seconds_of_tests(path: Path) -> dict[str, float]:
    """{test: seconds} of a log; a test that ran twice has the sum. Tests of pytest are summed by file."""
    seconds: Counter[str] = Counter()
    if path.suffix == ".xml":
        for case in ElementTree.parse(path).iter("testcase"):
            seconds[case.get("classname", "").replace(".", "/")] += float(case.get("time", 0))
    else:
        for name, _, time in CTEST.findall(path.read_text(errors="replace")):
            seconds[name] += float(time)
    return seconds


def seconds_of_build(build: Path) -> tuple[dict[str, float], float]:
    """{target: seconds of its steps}, and the seconds from the first step's start to the last one's end."""
    steps = [line.split("\t") for line in (build / ".ninja_log").read_text().splitlines()[1:]]
    seconds: Counter[str] = Counter()
    counted = set()
    for begin, end, _, output, command in steps:
        if command in counted:  # a step with several outputs
            continue
        counted.add(command)
        parts = output.split("/")
        target = next((part for part in parts if part.endswith(".dir")), parts[-1])
        seconds[target.removesuffix(".dir")] += (int(end) - int(begin)) / 1000
    return seconds, max(int(step[1]) for step in steps) / 1000


def table(head: str, rows: dict[str, float], count: int) -> None:
    """The largest rows."""
    print(f"| {head} | s |\n|---|---|")
    for name, value in sorted(rows.items(), key=lambda row: -row[1])[:count]:
        print(f"| `{name}` | {value:.0f} |")
    print(f"| all {len(rows)} | {sum(rows.values()):.0f} |\n")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description="Prints where the time of building and testing goes.")
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG")
    parser.add_argument("--build", type=Path)
    options = parser.parse_args()
    tests: Counter[str] = Counter()
    for log in options.logs:
        tests.update(seconds_of_tests(log))
    if tests:
        table("test", tests, 20)
    if options.build:
        targets, whole = seconds_of_build(options.build)
        table("target", targets, 20)
        kinds: Counter[str] = Counter()
        for target, value in targets.items():
            kinds["tests" if target.startswith("test_") or "sample" in target else "programs and libraries"] += value
        table("of the build", kinds, 2)
        print(f"From the first step to the last: {whole:.0f} s.")


if __name__ == "__main__":
    main()
