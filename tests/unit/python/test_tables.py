# SPDX-License-Identifier: MIT
"""Tables of a scenario: which point gives which cell, and how cells are printed."""

import pytest

from forktail.failure import Failure
from forktail.lab.format import Format
from forktail.lab.results import Point, Results
from forktail.lab.scenario import Conclusion, Line, Table
from forktail.lab.tables import (
    MadeTable,
    chance_note,
    conclude,
    line_sentence,
    make_table,
    table_csv,
    table_html,
    table_markdown,
    table_text,
)
from lab_sample import column, sample_results, sample_scenario

UNIX, TCP = {"listen": ["unix"]}, {"listen": ["tcp"]}


def make(table: Table, results: Results | None = None) -> MadeTable:
    made = make_table(sample_scenario(), table, results or sample_results())
    assert all(len(row) == len(made.heads) for row in made.rows)
    return made


def rows(made: MadeTable) -> list[str]:
    """Rows as "a|b|c"."""
    return ["|".join(cell.text for cell in row) for row in made.rows]


def heads(made: MadeTable) -> str:
    return "|".join(head.title for head in made.heads)


def by_clients() -> Table:
    columns = [column("Unix", "run.SET.rps", where=UNIX, _20=184928), column("TCP", "run.SET.rps", where=TCP)]
    return Table("By connections", by=["clients"], columns=columns)


def test_rows_by_name_take_their_figures_from_one_point() -> None:
    gain = column("gain", "run.{row}.rps / base.run.{row}.rps", Format.DECIMALS2, UNIX)
    gain.against = {"listen": "tcp"}
    table = Table(
        names=["SET", "LRANGE_100", "SPOP"],
        where={"clients": ["20"]},
        columns=[column("Unix", "run.{row}.rps", where=UNIX, SET=184928, SPOP=241284), gain],
    )
    made = make(table)
    assert heads(made) == "|Unix|published|gain"
    assert rows(made) == ["SET|20,000|184,928|2.00", "LRANGE_100|2,000|-|2.00", "SPOP|-|241,284|-"]


def test_rows_by_variables_are_the_points_each_column_its_own() -> None:
    made = make(by_clients())
    assert heads(made) == "connections|Unix|published|TCP"
    assert rows(made) == ["8|8,000|-|4,000", "20|20,000|184,928|10,000"]
    p99_9 = column("p99.9", "run.SET.p99_9", Format.US)
    p99_9.published = {"8/tcp": 4.25}
    cpu = column("CPU", "run.redis.cpu_percent", Format.PERCENT)
    memory = column("memory", "run.redis.used_memory", Format.BYTES)
    made = make(Table(by=["clients", "listen"], columns=[p99_9, cpu, memory]))
    assert heads(made) == "connections|listen|p99.9, us|published|CPU, %|memory"
    assert rows(made) == [
        "8|unix|9,872|-|61.4|84.0 MB",
        "8|tcp|4,936|4.25|61.4|84.0 MB",
        "20|unix|24,680|-|61.4|84.0 MB",
        "20|tcp|12,340|-|61.4|84.0 MB",
    ]


def test_rows_by_both_list_all_names_of_each_point() -> None:
    rps = column("requests/s", "run.{row}.rps")
    rps.published = {"20/SET": 5, "SET": 6}
    made = make(Table(by=["clients"], names=["SET", "LRANGE_100"], where=TCP, columns=[rps]))
    assert rows(made) == ["8|SET|4,000|-", "8|LRANGE_100|400|-", "20|SET|10,000|5", "20|LRANGE_100|1,000|-"]


def test_a_row_with_several_matching_points_is_refused_naming_the_variable_that_differs() -> None:
    table = by_clients()
    table.columns[0].where = {}
    with pytest.raises(Failure) as refused:
        make(table)
    where = 'table "By connections", column "Unix", row "8"'
    why = 'several points match. They differ in "listen": select one with `where`'
    assert str(refused.value) == f"{where}: {why}"
    table = by_clients()
    table.columns[1].value = "run.SET.rps +"
    with pytest.raises(Failure, match="is not a formula"):
        make(table)


def test_a_missing_value_is_a_dash_and_its_column_stays() -> None:
    table = by_clients()
    table.columns.append(column("seeks", "run.disk.seeks", where=TCP))
    results = sample_results()
    del results.points[1]  # 8, tcp
    assert rows(make(table, results)) == ["8|8,000|-|-|-", "20|20,000|184,928|10,000|-"]
    results.points.clear()
    assert make(table, results).rows == []
    assert heads(make(table, results)) == "connections|Unix|published|TCP|seeks"


def test_texts_and_variables_are_in_text_columns_on_one_line() -> None:
    names = {"worst": "run.worst", "keys": "keys", "none": "run.none"}
    columns = [column(title, value, Format.TEXT) for title, value in names.items()]
    made = make(Table(by=["clients"], where={"clients": ["8"], **UNIX}, columns=columns))
    assert rows(made) == ["8|the fork held the server for 58.9 ms it copied page tables another|5000|-"]
    assert not made.heads[1].number


def test_repeats_print_the_median_and_the_range_around_it() -> None:
    results = sample_results()
    for point in results.points:
        rps = point.numbers["run.SET.rps"]
        point.repeats, point.runs = 3, {"run.SET.rps": [rps - 100, rps, rps + 300]}
    table = by_clients()
    table.columns[1].value = "run.LRANGE_100.rps * 10"  # is the same in all repeats
    made = make(table, results)
    assert rows(made) == ["8|8,000 (7,900-8,300)|-|4,000", "20|20,000 (19,900-20,300)|184,928|10,000"]
    assert made.rows[0][1].least == 7900
    assert '<td class="number">8,000 <span class="range">(7,900-8,300)</span></td>' in table_html(made)
    assert table_csv(made) == (
        "connections,Unix,Unix (least),Unix (most),Unix (published),TCP,TCP (least),TCP (most)\n"
        "8,8000,7900,8300,,4000,4000,4000\n"
        "20,20000,19900,20300,184928,10000,10000,10000\n"
    )
    for point in results.points:  # all equal: no range to print
        point.runs = {}
    assert rows(make(by_clients(), results))[0] == "8|8,000|-|4,000"


RATIO = "run.SET.rps / base.run.SET.rps"


@pytest.mark.parametrize(
    ("unix", "tcp", "seconds", "cell", "sentence"),
    [
        ([8], [4], 3, "2.00", "2.00 times in one run. Run it with --repeat 5 before you conclude."),
        ([8, 9, 10], [4, 4, 4], 3, "2.25 (2.00-2.50)", "2.25 times (2.00 to 2.50 in 3 pairs)."),
        ([0.1, 0.2, 0.3], [10, 10, 10], 3, "0.02 (0.01-0.03)", "0.02 times (0.01 to 0.03 in 3 pairs)."),
        ([3, 9, 8], [4, 4, 4], 3, "no difference shown (0.75-2.25)", "no difference shown (0.75 to 2.25 in 3 pairs)."),
        ([12, 13, 11, 12, 3], [4, 4, 4, 4, 4], 3, "inconclusive (0.75-3.25)",
         "inconclusive (0.75 to 3.25 in 5 pairs, one of them on the other side)."),
        ([12, 3, 11, 12, 3], [4, 4, 4, 4, 4], 3, "no difference shown (0.75-3.00)",
         "no difference shown (0.75 to 3.00 in 5 pairs)."),
        ([8, 9, 10], [4, 4, 4], 0.07, "too short", "not compared, because a load ran for only 0.07 s."),
        ([8], [], 3, "-", "not measured here."),
    ],
)  # fmt: skip
def test_a_comparison_says_no_more_than_its_pairs_show(
    unix: list[float | None], tcp: list[float | None], seconds: float, cell: str, sentence: str
) -> None:
    results = sample_results()
    for point, runs in zip(results.points[:2], (unix, tcp), strict=True):
        point.repeats, point.runs = len(unix), {"run.SET.rps": runs}
        point.numbers["run.SET.seconds"] = seconds
    gain = column("gain", RATIO, Format.DECIMALS2, UNIX)
    gain.against = {"listen": "tcp"}
    where = {"clients": ["8"]}
    assert rows(make(Table(by=["clients"], where=where, columns=[gain]), results)) == [f"8|{cell}"]
    conclusion = Conclusion("SET over a Unix socket against TCP", RATIO, where | UNIX, gain.against)
    assert conclude(sample_scenario(), results, conclusion) == f"SET over a Unix socket against TCP: {sentence}"


def test_the_chance_that_pairs_agree_is_said_once_for_all_conclusions() -> None:
    shown = "A: 2.25 times (2.00 to 2.50 in 3 pairs)."
    assert chance_note([shown, shown, "B: no difference shown (0.75 to 2.25 in 5 pairs)."]) == (
        "If nothing differs, all 3 pairs still agree in 25.0 % of runs."
    )
    assert chance_note(["C: 0.32 times (0.25 to 0.36 in 5 pairs).", shown]) == (
        "If nothing differs, all 3 pairs still agree in 25.0 % of runs, all 5 pairs still agree in 6.2 % of runs."
    )
    assert chance_note(["B: 0 in both.", "D: 2.00 times in one run. Run it with --repeat 5 before you conclude."]) == ""


def test_a_cause_that_an_explained_load_does_not_list_took_no_time() -> None:
    formula = "run.cause.{kind}.time / base.run.cause.{kind}.time"
    for unix, tcp, said in (
        ([4.0, None], [2.0, 2.0], "no difference shown (0.00 to 2.00 in 2 pairs)."),
        ([None, 1.0], [None, 2.0], "no difference shown (0.50 to 1.00 in 2 pairs)."),
        ([None, None], [2.0, 4.0], "0.00 times (0.00 to 0.00 in 2 pairs)."),
        ([None, None], [None, None], "0 in both."),
    ):  # fmt: skip
        results = sample_results()
        for point, runs in zip(results.points[:2], (unix, tcp), strict=True):
            point.repeats, point.values["kind"] = 2, "page-in"
            point.runs = {"run.cause.page_in.time": runs, "run.explained_percent": [99, 99]}
        conclusion = Conclusion("page-in", formula, {"clients": ["8"]} | UNIX, {"listen": "tcp"})
        assert conclude(sample_scenario(), results, conclusion) == f"page-in: {said}"
        for point in results.points:
            point.runs.pop("run.explained_percent", None)
        if None in unix and 2.0 not in tcp:
            assert conclude(sample_scenario(), results, conclusion) == "page-in: not measured here."


def test_the_point_that_others_are_compared_with_has_a_plain_ratio() -> None:
    gain = column("gain", RATIO, Format.DECIMALS2)
    gain.against = {"listen": "unix"}
    made = make(Table(by=["listen"], where={"clients": ["8"]}, columns=[gain]))
    assert rows(made) == ["unix|1.00", "tcp|0.50"]


def test_a_table_as_text_is_aligned_with_titles_wrapped_to_their_figures_width() -> None:
    table = by_clients()
    table.columns[1].title = "requests over the loopback interface"
    assert (
        table_text(make(table), 100)
        == """\
                                 requests
                                 over the
                                 loopback
connections    Unix  published  interface
-----------  ------  ---------  ---------
          8   8,000          -      4,000
         20  20,000    184,928     10,000
"""
    )
    # Too wide: it continues below, with a published column next to its own.
    narrow = """\
connections    Unix  published
-----------  ------  ---------
          8   8,000          -
         20  20,000    184,928

connections     TCP
-----------  ------
          8   4,000
         20  10,000
"""
    assert table_text(make(by_clients()), 30) == narrow
    assert table_text(make(by_clients()), 20) == narrow
    assert table_text(make(by_clients()), 0).count("\n") == 4


def test_long_texts_are_wrapped_between_words() -> None:
    results = sample_results()
    results.points[0].texts["run.worst"] = "äöü " * 20
    where = {"clients": ["8"], **UNIX}
    made = make(Table(by=["clients"], where=where, columns=[column("worst", "run.worst", Format.TEXT)]), results)
    lines = table_text(made, 100).splitlines()
    assert lines[2:] == ["          8  " + " ".join(["äöü"] * 12), " " * 13 + " ".join(["äöü"] * 8)]


def test_a_cells_text_cannot_break_the_table() -> None:
    names = ["a|b", "<script>alert(1)</script>", "*x* _y_ LRANGE_100 `z` \\"]
    where = {"clients": ["8"], **TCP}
    columns = [column('"A" & <b>', "run.{row}", Format.TEXT)]
    made = make(Table(names=names, where=where, columns=columns))
    assert (
        table_markdown(made)
        == r"""|  | "A" \& \<b\> |
| --- | --- |
| a\|b | - |
| \<script\>alert(1)\</script\> | - |
| \*x\* \_y\_ LRANGE_100 \`z\` \\ | - |
"""
    )
    html = table_html(made)
    assert "<script>" not in html
    assert '<th scope="row">&lt;script&gt;alert(1)&lt;/script&gt;</th>' in html
    assert '<th scope="col">&quot;A&quot; &amp; &lt;b&gt;</th>' in html
    made.rows[0][0].text = 'a,"b"\nc'
    assert '"a,""b""\nc",-' in table_csv(made)


def test_markdown_and_html_mark_numbers_and_published_figures() -> None:
    made = make(by_clients())
    assert (
        table_markdown(made)
        == """\
| connections | Unix | *published* | TCP |
| ---: | ---: | ---: | ---: |
| 8 | 8,000 |  | 4,000 |
| 20 | 20,000 | 184,928 | 10,000 |
"""
    )
    assert '<td class="number published">184,928</td>' in table_html(made)


def test_a_line_through_all_measurements_has_slope_and_intercept_with_intervals() -> None:
    results = Results()
    for gigabytes in (1, 2, 4):
        runs = [40 * gigabytes + 3 + noise for noise in (-1, 0, 1)]
        point = Point(
            {"pages": "4 kB"}, {"x": gigabytes, "y": runs[1]}, runs={"x": [gigabytes] * 3, "y": list(runs)}, repeats=3
        )
        results.points.append(point)
    line = Line("fork time", "x", "y", "ms", "GB", {"pages": ["4 kB"]})
    said = line_sentence(results, line)
    assert (
        said.startswith("fork time: 40 ms per GB (39.")
        and " 3 ms at 0 (" in said
        and said.endswith("of 9 measurements.")
    )
    assert line_sentence(results, line) == said
    line.where = {"pages": ["huge"]}
    assert line_sentence(results, line) == "fork time: not measured here at three sizes."
