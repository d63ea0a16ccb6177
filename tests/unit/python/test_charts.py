# SPDX-License-Identifier: MIT
"""Charts of a scenario: which figures give which points, and how gnuplot draws them."""

import shutil
from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.host.session import Session
from forktail.lab.charts import Dot, DrawnChart, MadeChart, Series, draw_charts, make_charts
from forktail.lab.format import Format
from forktail.lab.results import Results, source_text
from forktail.lab.scenario import Chart
from lab_sample import column, sample_results, sample_scenario

UNIX, TCP = {"listen": ["unix"]}, {"listen": ["tcp"]}


def by_clients() -> Chart:
    """SET over clients, one series for each way to listen. The one over tcp was published."""
    unix = column("Unix", "run.SET.rps", where=UNIX)
    tcp = column("TCP", "run.SET.rps", where=TCP, _20=146081, _8=99000, _50=150000)
    return Chart("Requests by connections", "clients", "requests/s", series=[unix, tcp])


def make(chart: Chart, results: Results | None = None) -> list[MadeChart]:
    scenario = sample_scenario()
    scenario.charts = [chart]
    return make_charts(scenario, results or sample_results())


def dots(series: Series) -> str:
    """ "8:8000 20:20000"."""
    return " ".join(f"{dot.x:g}:{dot.y:g}" for dot in series.dots)


def draw(charts: list[MadeChart]) -> list[DrawnChart]:
    with Session() as session:
        drawn, note = draw_charts(session, charts)
    assert note == ""
    assert [chart.title for chart in drawn] == [chart.title for chart in charts]
    for one, chart in zip(drawn, charts, strict=True):
        assert one.png.startswith(b"\x89PNG")
        assert chart.source in one.svg
    return drawn


needs_gnuplot = pytest.mark.skipif(not shutil.which("gnuplot"), reason="needs gnuplot")


def test_numeric_values_make_lines_and_published_ones_are_drawn_next_to_them() -> None:
    [chart] = make(by_clients())
    assert chart.places == []
    assert chart.x_title == "connections"
    assert [series.title for series in chart.series] == ["Unix", "TCP", "TCP (published)"]
    assert [series.published for series in chart.series] == [False, False, True]
    expected = ["8:8000 20:20000", "8:4000 20:10000", "8:99000 20:146081 50:150000"]
    assert [dots(series) for series in chart.series] == expected


@pytest.mark.parametrize("files", ["", " -o out", " -oout", " --out out", " --out=out --write=a.md", " --write a.md"])
def test_the_source_is_the_command_without_the_files_that_it_wrote(files: str) -> None:
    results = sample_results()
    results.command = f"forktail lab run{files} my/sample.toml --set keys=9 --no-client"
    assert source_text(results) == "forktail lab run my/sample.toml --set keys=9 --no-client; box; 2023-11-14"


def test_other_values_make_bars_in_the_order_in_which_they_were_run() -> None:
    chart = Chart(x="listen", log_x=True, where={"clients": ["8"]})
    chart.series = [column("SET", "run.SET.rps", tcp=146081, rdma=7)]
    [made] = make(chart)
    assert made.places == ["unix", "tcp", "rdma"]
    assert not made.log_x
    assert [dots(series) for series in made.series] == ["0:8000 1:4000", "1:146081 2:7"]


def test_a_chart_per_name_has_that_names_figures_and_published_ones() -> None:
    chart = by_clients()
    chart.each = ["SET", "LRANGE_100", "SPOP"]
    chart.series = [column("Unix", "run.{row}.rps", where=UNIX)]
    chart.series[0].published = {"8/SET": 5, "20/LRANGE_100": 6, "20": 7}
    charts = make(chart)  # no data for SPOP
    assert [chart.title for chart in charts] == [
        "Requests by connections: SET",
        "Requests by connections: LRANGE_100",
    ]
    assert dots(charts[0].series[1]) == "8:5"
    assert [dots(series) for series in charts[1].series] == ["8:800 20:2000", "20:6"]
    chart.title = "{row} by connections"
    chart.series[0].title = "{row}"
    assert make(chart)[1].title == "LRANGE_100 by connections"
    assert make(chart)[1].series[1].title == "LRANGE_100 (published)"


def test_times_are_drawn_in_their_unit_and_0_is_not_on_a_logarithmic_axis() -> None:
    results = sample_results()
    results.points[0].numbers["run.SET.p99_9"] = 0  # 8, unix
    last = results.points[3]  # 20, tcp
    last.repeats, last.runs = 3, {"run.SET.p99_9": [0, 12.34e6, 15e6]}
    chart = by_clients()
    chart.log_y = True
    for series in chart.series:
        series.value, series.format = "run.SET.p99_9", Format.MS
    [made] = make(chart, results)
    assert made.y_title == "requests/s, ms"
    assert dots(made.series[0]) == "20:24.68"
    dot = made.series[1].dots[-1]
    assert (dot.least, dot.most) == (dot.y, 15.0)


def test_a_chart_with_several_points_for_one_dot_is_refused() -> None:
    chart = by_clients()
    chart.series[0].where = {}
    with pytest.raises(Failure) as refused:
        make(chart)
    assert 'series "Unix" at "8": several points match. They differ in "listen"' in str(refused.value)


@needs_gnuplot
def test_gnuplot_draws_every_series_with_its_title_and_the_same_data_is_the_same_file() -> None:
    chart = by_clients()
    chart.title = "SET & GET <b>'quoted'</b> \\n _x_"
    chart.log_x = True
    made = make(chart)
    chart.x, chart.where, chart.series = "listen", {"clients": ["8"]}, [column("SET", "run.SET.rps")]
    made += make(chart)
    made[1].series[0].dots[0].least = 7000
    made[1].series[0].dots[0].most = 9000
    first, bars = (drawn.svg for drawn in draw(made))
    assert [first, bars] == [drawn.svg for drawn in draw(made)]
    assert "</svg>" in first
    for title in (">Unix<", ">TCP<", ">TCP (published)<", ">connections<", ">requests/s<", ">20<", ">150,000<"):
        assert first.count(title) == 1
    assert "stroke-dasharray" in first
    for text in ("<b>", "GNUPLOT", "gnuplot_plot_1</title>", "id='gp", "'#gp"):
        assert text not in first
    assert first.count("SET &amp; GET &lt;b") == 2  # drawn, and described for screen readers
    assert first.count("\\n _x_") == 2
    # Two charts in a page: no id in one is the same as in the other.
    assert first.count("id='chart1-gpPt6'") == 1
    assert "chart1-" not in bars
    for place in (">unix<", ">tcp<", ">SET<"):
        assert bars.count(place) == 1


@needs_gnuplot
def test_a_heat_map_has_a_field_with_a_number_for_each_value_and_series() -> None:
    chart = Chart("Heat", "clients", heat=True)
    chart.series = [column("Unix", "run.SET.rps", where=UNIX), column("TCP", "run.SET.rps", where=TCP)]
    [made] = make(chart)
    assert made.places == ["8", "20"]
    [drawn] = draw([made])
    for text in (">8,000<", ">20,000<", ">4,000<", ">10,000<", ">Unix<", ">TCP<", ">8<", ">20<"):
        assert drawn.svg.count(text) == 1
    assert "<image" in drawn.svg


@needs_gnuplot
def test_gnuplot_draws_charts_of_one_dot_of_zeros_of_bytes_and_of_nothing_but_published_figures() -> None:
    published = [Series("a"), Series("a (published)", True, [Dot(5, 7)])]
    places = ["x", "y", "z", "a", "b", "c"]
    charts = [
        MadeChart("one", series=[Series("a", dots=[Dot(5, 0)])]),
        MadeChart("logs", log_x=True, log_y=True, series=[Series("a", dots=[Dot(10, 1000)])]),
        MadeChart("bytes", format=Format.BYTES, series=[Series("a", dots=[Dot(1, 84e6), Dot(2, -3e6)])]),
        MadeChart("theirs", series=published),
        MadeChart("bars", places=places, series=published),
    ]
    drawn = [chart.svg for chart in draw(charts)]
    assert all("</svg>" in svg for svg in drawn)
    for svg, text in zip(drawn[1:], [">1,000<", ">100 MB<", ">a (published)<", ">a (published)<"], strict=True):
        assert svg.count(text) == 1


def test_without_gnuplot_or_if_it_fails_there_are_no_charts_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Session() as session:
        assert draw_charts(session, []) == ([], "")
        drawn, note = draw_charts(session, make(by_clients()))
    assert drawn == []
    assert note.startswith("no charts: cannot start gnuplot") and note.endswith("; install gnuplot-nox")
    (tmp_path / "gnuplot").write_text("#!/bin/sh\necho why >&2\nexit 1\n")
    (tmp_path / "gnuplot").chmod(0o755)
    with Session() as session:
        drawn, note = draw_charts(session, make(by_clients()))
    assert drawn == []
    assert note == "no charts: gnuplot ended with status 1; its last messages:\n    why"
