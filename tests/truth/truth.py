# SPDX-License-Identifier: MIT
"""The truth suite: injects real stalls into real servers and scores what forktail says of them. docs/truth.md."""
import argparse
import sys

import cases_cpu, cases_memory, cases_disk, cases_code, cases_network  # noqa
import score
from kernel import DelayAccounting
from registry import CASES
from trial import Skip, Trial


def run_case(case, delays, short):
    with Trial(case.name, delays, case.threshold) as t:
        case.function(t, [1] if short else None)
        explained = t.explain()
        return [score.score(case.name, i, explained) for i in t.injections], explained


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("causes", nargs="*")
    arguments = parser.parse_args()
    delays = DelayAccounting()
    for case in CASES:
        if arguments.causes and case.name not in arguments.causes:
            continue
        try:
            scored, explained = run_case(case, delays, False)
        except Skip as why:
            print(case.name, "SKIPPED", why)
            continue
        for s in scored:
            truth = s.injection.get("stall_ns")
            print(case.name, s.injection["magnitude"], "named", s.named, s.shares, "truth", truth and truth / 1e6,
                  "attributed", s.attributed_ns / 1e6, s.culprit_named, s.evidence[:3])
    delays.close()


if __name__ == "__main__":
    sys.exit(main())
