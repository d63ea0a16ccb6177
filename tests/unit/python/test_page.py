# SPDX-License-Identifier: MIT
"""The documents about a run: its page, its section in Markdown, and a comparison with another run."""

import lzma
from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.lab.charts import DrawnChart
from forktail.lab.compare import compare_results
from forktail.lab.format import Format
from forktail.lab.output import Output, short_output, write_charts
from forktail.lab.page import IndexEntry, index_of, markdown_of, page_of, text_of, time_taken, write_section
from forktail.lab.results import Results, read_results
from forktail.lab.scenario import Scenario, StepSpec, Table
from forktail.lab.tables import make_tables, table_csv
from lab_sample import column, sample_results, sample_scenario


def with_table() -> Scenario:
    scenario = sample_scenario()
    scenario.about = "What `redis-benchmark` does.\n\nA second paragraph."
    scenario.report, scenario.source, scenario.question = "A3", "Redis 3.2.3, E5-2620 v3", "Why?"
    columns = [
        column("SET/s", "run.SET.rps"),
        column("p99.9", "run.SET.p99_9", Format.US),
        column("causes", "run.causes", Format.TEXT),
    ]
    columns[0].published = {"20/unix": 184928}
    scenario.tables = [Table("By connections", "A note.", by=["clients", "listen"], columns=columns)]
    return scenario


def make(scenario: Scenario, results: Results) -> Output:
    chart = '<?xml version="1.0"?>\n<svg role="img"><title>A chart</title></svg>\n'
    return Output(make_tables(scenario, results), [DrawnChart("A chart", chart)])


def page(scenario: Scenario, results: Results, directory: Path | str = "/nowhere") -> str:
    return page_of(scenario, results, make(scenario, results), directory)


def repeat(results: Results, spread: float) -> None:
    for point in results.points:
        point.repeats = 3
        point.runs = {
            name: [value * (1 - spread), value, value * (1 + spread)] for name, value in point.numbers.items()
        }


def test_a_page_has_the_settings_the_machine_and_the_results() -> None:
    scenario, results = with_table(), sample_results()
    output = make(scenario, results)
    output.note = "no charts: why not"
    text = page_of(scenario, results, output, "/nowhere")
    for part in (
        "<title>A sample</title>",
        "color-scheme",
        "--dark:",  # of analysis/report/base.css
        ".charts figure",  # of style.css
        '<p class="prose">What <code>redis-benchmark</code> does.</p>',
        '<p class="prose">A second paragraph.</p>',
        "Why?",
        "Some CPU",
        "6.1.0",
        "forktail 0.1.0, redis 7.0.15",
        "2023-11-14 22:13 UTC",
        "12.5 s",
        "<code>forktail lab run sample --scale small</code>",
        "<li>no zram here: the module is missing</li>",
        "<li>no charts: why not</li>",
        "report A3, Redis 3.2.3, E5-2620 v3",
        '<td class="number published">184,928</td>',
        "A note.",
        '<figure><svg role="img">',
        "<b>connections: 20; listen: tcp</b>fork 61 %, run queue 20 %",
        '<p>the fork held the server for 58.9 ms</p>\n<ul class="evidence">\n<li>it copied page tables</li>\n</ul>\n'
        "<p>another</p>",
    ):
        assert part in text
    for part in ("<?xml", "<script", 'href="point'):
        assert part not in text


def test_a_page_links_to_the_existing_pages_of_its_recordings(tmp_path: Path) -> None:
    results = sample_results()
    results.points[1].recorded = ['a "b"/run']
    for run in ("point-8-unix", 'a "b"/run'):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "report.html").write_text("a page")
    text = page(with_table(), results, tmp_path)
    assert '<a href="point-8-unix/report.html">' in text
    assert '<a href="a%20%22b%22/run/report.html">' in text
    assert '<a href="point-20' not in text


def test_a_points_recorded_steps_have_a_section_each_as_far_as_they_ran() -> None:
    scenario, results = with_table(), sample_results()
    scenario.steps.insert(0, StepSpec("traced", "-t set", record=True, only={"clients": ["20"]}))
    results.points[2].recorded = ["20-unix/traced", "20-unix/run"]  # 20, unix
    results.points[2].texts["traced.causes"] = "swap 99 %"
    results.points[0].texts, results.points[0].recorded = {}, []
    text = page(scenario, results)
    assert "<b>connections: 20; listen: unix; traced</b>swap 99 %" in text
    assert "<b>connections: 20; listen: unix; run</b>fork 61 %" in text
    assert "<b>connections: 8; listen: tcp; run</b>" in text
    assert "<b>connections: 8; listen: tcp; traced</b>" not in text
    assert "<b>connections: 8; listen: unix" not in text


def test_texts_of_scenarios_and_servers_cannot_be_markup_on_a_page() -> None:
    evil = "<script>alert(1)</script>\"'&\x1b[2J\udcff\N{RIGHT-TO-LEFT OVERRIDE}"
    scenario, results = with_table(), sample_results()
    scenario.title = scenario.about = scenario.question = scenario.source = scenario.sweeps[0].title = evil
    table = scenario.tables[0]
    table.title = table.note = table.columns[0].title = evil
    results.host = results.cpu = results.command = evil
    results.notes, results.versions = [evil], {evil: evil}
    for point in results.points:
        point.texts = {"run.causes": evil, "run.worst": evil}
    text = page(scenario, results)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\x1b[2J\\xff\\u202e" in text
    assert "<script" not in index_of([IndexEntry(evil, evil, evil, 1, evil)], results)


def test_an_index_lists_scenarios_with_their_state_and_links_those_that_have_a_page() -> None:
    done = IndexEntry("a3", "The suite", "done", 125, "a3/report.html")
    text = index_of([done, IndexEntry("c", "Memory", "failed: no swap")], sample_results())
    link = '<th scope="row"><a href="a3/report.html">a3</a></th>'
    assert f'{link}<td>The suite</td><td>done</td><td class="number">2 min 5 s</td>' in text
    failed = '<th scope="row">c</th><td>Memory</td><td>failed: no swap</td><td class="number"></td>'
    assert failed in text
    assert "Some CPU" in text
    # Values of one run only.
    assert "12.5 s" not in text and "no zram here" not in text


def test_times_are_printed_in_two_units_at_most() -> None:
    times = {
        0.04: "0.0 s",
        99.94: "99.9 s",
        99.96: "1 min 40 s",
        125: "2 min 5 s",
        3599.6: "1 h 0 min",
        7265: "2 h 1 min",
    }
    assert {seconds: time_taken(seconds) for seconds in times} == times


def test_a_runs_section_in_markdown_has_its_tables_charts_worst_moments_and_notes(tmp_path: Path) -> None:
    scenario, results = with_table(), sample_results()
    output = make(scenario, results)
    text = markdown_of(scenario, results, output, "experiments")
    for part in (
        "## A sample\n\nWhat `redis-benchmark` does.\n\nA second paragraph.\n",
        "**Open question:** Why?\n",
        "; command `forktail lab run sample --scale small`.\n",
        "*published*: report A3, Redis 3.2.3, E5-2620 v3\n",
        "### By connections\n\n| connections | listen | SET/s | *published* | p99.9, us | causes |\n",
        "| 20 | unix | 20,000 | 184,928 | 24,680 | fork 61 %, run queue 20 % |\n",
        "\nA note.\n",
        "![A chart](experiments/sample-1.svg)\n",
        "- **connections: 8; listen: tcp**: fork 61 %, run queue 20 %\n"
        "  - worst: the fork held the server for 58.9 ms\n"
        "  - it copied page tables\n"
        "- **connections: 20",
        "Notes:\n\n- no zram here: the module is missing\n",
    ):
        assert part in text
    write_charts(tmp_path, "sample", output)
    assert (tmp_path / "sample-1.svg").read_text() == output.charts[0].svg
    with pytest.raises(Failure):
        write_charts(tmp_path / "none", "sample", output)


def test_a_short_section_in_a_document_holds_the_main_tables_published_columns_and_a_chart_where_asked(
    tmp_path: Path,
) -> None:
    scenario, results = with_table(), sample_results()
    output = make(scenario, results)
    document = tmp_path / "page.md"
    document.write_text("Before.\n<!-- lab:sample short -->\nold\n<!-- /lab:sample -->\nAfter.\n")
    write_section(document, scenario, results, output)
    assert (
        document.read_text()
        == """Before.
<!-- lab:sample short -->
*published*: report A3, Redis 3.2.3, E5-2620 v3.
*here*: Some CPU; kernel 6.1.0; forktail 0.1.0, redis 7.0.15; scale small; load average 0.25; 2023-11-14 22:13 UTC.

| connections | listen | SET/s | *published* | causes |
| ---: | --- | ---: | ---: | --- |
| 8 | unix | 8,000 |  | fork 61 %, run queue 20 % |
| 8 | tcp | 4,000 |  | fork 61 %, run queue 20 % |
| 20 | unix | 20,000 | 184,928 | fork 61 %, run queue 20 % |
| 20 | tcp | 10,000 |  | fork 61 %, run queue 20 % |
<!-- /lab:sample -->
After.
"""
    )
    table, packed = sorted((tmp_path / "page").iterdir())
    assert table.name == "sample-1.csv" and table.read_text() == table_csv(output.tables[0])
    plain = tmp_path / "results.json"
    plain.write_bytes(lzma.decompress(packed.read_bytes()))
    assert (packed.name, read_results(plain)) == ("sample.json.xz", results)

    document.write_text("<!-- lab:sample short chart -->\n<!-- /lab:sample -->\n")
    output.tables[0].rows += output.tables[0].rows[:1] * 9
    output.charts *= 2
    write_section(document, scenario, results, output)
    text = document.read_text()
    assert "| 8 | unix |" not in text  # a long table: its published rows only
    assert "| 20 | unix | 20,000 | 184,928 |" in text
    assert "\n![A chart](page/sample-1.svg)\n<!-- /lab:sample -->\n" in text
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == [
        "sample-1.csv",
        "sample-1.svg",
        "sample.json.xz",
    ]

    document.write_text("<!-- lab:sample -->\n<!-- /lab:sample -->\n")
    write_section(document, scenario, results, output)
    assert document.read_text().startswith("<!-- lab:sample -->\n## A sample\n")

    document.write_text("<!-- lab:other short -->\n<!-- /lab:other -->\n")
    with pytest.raises(Failure, match="has no section for sample: add the lines <!-- lab:sample --> and <!-- /lab:"):
        write_section(document, scenario, results, output)


def test_a_short_section_leaves_out_details_other_rows_and_what_the_document_states(tmp_path: Path) -> None:
    scenario, results = with_table(), sample_results()
    scenario.tables[0].main = ["20/unix"]
    scenario.tables[0].columns[2].detail = True
    output = make(scenario, results)
    output.conclusions = ["SET/s: 2.00 times (1.90 to 2.10 in 3 pairs)."]
    document = tmp_path / "page.md"
    above = "*here*: Some CPU; kernel 6.1.0; forktail 0.1.0; scale large.\n"
    for parts, conclusions in ((" short", "\n- SET/s: 2.00 times (1.90 to 2.10 in 3 pairs).\n"), (" short table", "")):
        begin = f"{above}<!-- lab:sample{parts} -->\n"
        document.write_text(f"{begin}<!-- /lab:sample -->\n")
        write_section(document, scenario, results, output)
        assert (
            document.read_text()
            == f"""{begin}*published*: report A3, Redis 3.2.3, E5-2620 v3.
*here*: redis 7.0.15; scale small; load average 0.25; 2023-11-14 22:13 UTC.

| connections | listen | SET/s | *published* |
| ---: | --- | ---: | ---: |
| 20 | unix | 20,000 | 184,928 |
{conclusions}<!-- /lab:sample -->
"""
        )
    chance = "If nothing differs, all 3 pairs still agree in 25.0 % of runs."
    assert f"\n{chance}\n" in markdown_of(scenario, results, output, "page")
    assert f"\n{chance}\n" in text_of(results, output, 120)
    assert chance in page_of(scenario, results, output, "/nowhere")


@pytest.mark.parametrize(
    ("causes", "shown"),
    [
        ("fork 61 %, run-queue 10 %, cow-copy 9 %", "fork 61 %, run-queue 10 %"),
        ("fork 5 %, run-queue 4 %", "fork 5 %"),
        ("fork 1.20 s, run-queue 119 ms, cow-copy 120 ms", "fork 1.20 s, cow-copy 120 ms"),
        ("server-busy 64 %: command/EVAL 4 %", "server-busy 64 %: command/EVAL 4 %"),
        ("-", "-"),
    ],
)
def test_a_short_table_names_the_main_causes(causes: str, shown: str) -> None:
    scenario, results = with_table(), sample_results()
    results.points[0].texts["run.causes"] = causes
    output = make(scenario, results)
    assert short_output(output, " short").tables[0].rows[0][-1].text == shown
    assert output.tables[0].rows[0][-1].text == causes


def test_the_terminal_gets_tables_and_notes() -> None:
    scenario, results = with_table(), sample_results()
    text = text_of(results, make(scenario, results), 120)
    assert text.startswith("By connections\n\n")
    assert "184,928" in text
    assert "\nA note.\n\nnote: no zram here: the module is missing\n" in text
    results.notes = ["\x1b[2J"]
    assert "note: \\x1b[2J\n" in text_of(results, make(scenario, results), 120)


def test_a_comparison_shows_both_figures_and_their_ratio_and_marks_ranges_that_do_not_overlap() -> None:
    first, second = sample_results(), sample_results()
    repeat(first, 0.05)
    for point in second.points:
        point.numbers["run.SET.rps"] *= 1.5 if point.values["clients"] == "8" else 1.08
    repeat(second, 0.05)
    second.points.pop()  # 20, tcp
    text = compare_results(with_table(), first, second, 120)
    assert text.startswith(
        """\
By connections

connections  listen                              first                  second  ratio
-----------  ------  ---------  ----------------------  ----------------------  -----  -
8            unix    SET/s         8,000 (7,600-8,400)  12,000 (11,400-12,600)   1.50  *
                     p99.9, us    9,872 (9,378-10,366)    9,872 (9,378-10,366)   1.00
"""
    )
    assert "21,600 (20,520-22,680)   1.08\n" in text
    assert "-      -\n" in text  # what only the first has
    assert text.endswith(
        "\n*: the ranges of the repeats do not overlap. With 3 and 3 repeats of identical runs, this happens by chance "
        "for 10.0 % of the figures.\n"
    )
    for part in ("differ", "noise", "fork 61", "184,928"):
        assert part not in text
    # What only the second has is last.
    assert (
        "20           tcp     SET/s" in compare_results(with_table(), second, first, 120).split("20           unix")[1]
    )


def test_a_comparison_of_single_runs_warns_that_noise_is_possible_and_lists_other_differences() -> None:
    first, second = sample_results(), sample_results()
    second.scale, second.host, second.versions["redis"] = "tiny", "", "8.0.0"
    for point in second.points:
        point.numbers["run.SET.rps"] = 0
    text = compare_results(with_table(), first, second, 120)
    assert text.startswith(
        "The scales differ: small and tiny.\nThe hosts differ: box and unknown.\n"
        "The versions differ: forktail 0.1.0, redis 7.0.15 and forktail 0.1.0, redis 8.0.0.\n"
        "A single run cannot distinguish a change from noise"
    )
    assert "*" not in text
    assert "  8,000      -\n" in compare_results(with_table(), second, first, 120)  # no ratio to 0
    other = sample_results()
    other.scenario = "another"
    with pytest.raises(Failure, match="^cannot compare runs of two scenarios: sample and another$"):
        compare_results(with_table(), first, other, 120)
