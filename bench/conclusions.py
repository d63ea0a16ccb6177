#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether a second run of scenarios concludes the same as the first, whose figures are beside its page in docs/results.
`script/experiments --reverse` runs it.

    bench/conclusions.py DIR...     directories of `forktail lab run`, with SCENARIO/results.json

The second run of a page of one scenario: forktail lab run settings --scale small --repeat 3 --reverse --out DIR/settings.

Prints each conclusion of both runs. Exit status 1 if one changes sign: both runs show a difference, in opposite
directions.
"""
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "python"))
from forktail.lab.results import Results, read_results  # noqa: E402
from forktail.lab.scenario import Scenario, read_scenario  # noqa: E402
from forktail.lab.tables import base_of, compare, conclude, find_point  # noqa: E402


def sign(scenario: Scenario, results: Results, conclusion) -> int:
    """1: the figure is larger than the other point's, -1: smaller, 0: no difference shown, or not compared."""
    point = find_point(scenario, results, [conclusion.where])
    compared = compare(conclusion.value, point, base_of(scenario, results, conclusion, point)) if point else None
    if not compared or not compared.ratios or compared.too_short or compared.none_shown:
        return 0
    return 1 if statistics.median(compared.ratios) > 1 else -1


def main(directories: list[str]) -> int:
    counts = {"the same": 0, "a difference in one run only": 0, "CHANGES SIGN": 0}
    for path in sorted(file for directory in directories for file in Path(directory).glob("*/results.json")):
        scenario = read_scenario(ROOT / f"python/forktail/lab/scenarios/{path.parent.name}.toml")
        first_run = next(ROOT.glob(f"docs/results/*/{scenario.name}.json.xz"), None)
        if not first_run:
            sys.exit(f"bench/conclusions.py: docs/results has no figures of {scenario.name}")
        runs = [read_results(first_run), read_results(path)]
        for conclusion in scenario.conclusions:
            first, second = (sign(scenario, run, conclusion) for run in runs)
            verdict = "the same" if first == second else "CHANGES SIGN" if first * second else "a difference in one run only"
            counts[verdict] += 1
            print(f"{scenario.name}: {verdict}")
            for run in runs:
                print(f"    {conclude(scenario, run, conclusion)}")
    print(", ".join(f"{verdict}: {count}" for verdict, count in counts.items()))
    return 1 if counts["CHANGES SIGN"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else "usage: bench/conclusions.py DIR...")
