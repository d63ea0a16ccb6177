#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the page of a synthetic experiment with a table, notes and a chart, which the browser test opens.

  page_sample.py OUT.html

Exit status 77: gnuplot is not installed.
"""

import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TREE / "python"), str(TREE / "tests" / "unit" / "python")]

from forktail.host.session import Session  # noqa: E402
from forktail.lab.charts import Dot, MadeChart, Series, draw_charts  # noqa: E402
from forktail.lab.format import Format  # noqa: E402
from forktail.lab.output import Output  # noqa: E402
from forktail.lab.page import page_of  # noqa: E402
from forktail.lab.scenario import Table  # noqa: E402
from forktail.lab.tables import make_tables  # noqa: E402
from lab_sample import column, sample_results, sample_scenario  # noqa: E402


def main() -> int:
    out = Path(sys.argv[1])
    scenario, results = sample_scenario(), sample_results()
    scenario.about = "What `</script><script>alert(1)</script>` does."
    scenario.report, scenario.source, scenario.question = "A3", "Redis 3.2.3, E5-2620 v3", "Why?"
    columns = [
        column("SET/s", "run.SET.rps"),
        column("p99.9", "run.SET.p99_9", Format.US),
        column("causes", "run.causes", Format.TEXT),
    ]
    title = "By <img src=x onerror=alert(2)> connections"
    scenario.tables = [Table(title, by=["clients", "listen"], columns=columns)]
    results.notes.append("a note with </style><script>alert(3)</script>")
    lines = [Series("unix", dots=[Dot(8, 8000), Dot(20, 20000)]), Series("tcp", dots=[Dot(8, 4000), Dot(20, 10000)])]
    chart = MadeChart("Throughput by connections", "connections", "SET/s", series=lines)
    with Session() as session:
        charts, note = draw_charts(session, [chart])
    if note:
        print(note, file=sys.stderr)
        return 77
    out.write_text(page_of(scenario, results, Output(make_tables(scenario, results), charts), out.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
