# SPDX-License-Identifier: MIT
"""Laws that every table of measurements obeys, and the published figures as data."""

from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.lab.format import Format
from forktail.lab.plausible import Limits, Row, check_file, check_rows, parse_speed
from forktail.lab.published import figures_at, published_tables
from forktail.lab.scenario import read_scenario

LIMITS = Limits(link=125e6, memory=20e9)


@pytest.mark.parametrize(
    ("row", "impossible", "said"),
    [
        (Row(rate=182_611, mean_us=866, clients=160), None, ""),
        (
            Row(rate=200_000, mean_us=1000, clients=160),
            True,
            "200,000 requests/s of 1,000 us are 200 in flight, more than 160",
        ),
        (Row(rate=1000, mean_us=1000, clients=50), False, "are 1 in flight, of 50 clients: so the clients waited"),
        (Row(rate=60_496.07, bytes=9e6), True, "are 544 GB/s, but memory moves 20 GB/s"),
        (Row(rate=200_000, bytes=1000), True, "are 200 MB/s, but the link moves 125 MB/s"),
        (Row(rate=103_732, bytes=1150), False, "the link (125 MB/s) was nearly full"),
        (Row(rate=1000, bytes=1150), None, ""),
        (Row(mean_us=801, p95_us=0, p99_us=0, max_us=900), False, "p95 and p99 are 0 beside a mean of 801 us"),
        (Row(min_us=75_723, max_us=2165), True, "the minimum (75,723 us) is above the maximum (2,165 us)"),
        (Row(mean_us=800, max_us=700), True, "the maximum (700 us) is below the mean (800 us)"),
        (Row(min_us=10, p50_us=20, p99_us=30, max_us=40, mean_us=21), None, ""),
        (Row(failures=408, clients=600, requests=3.6e6), False, "0.68 failures per connection"),
        (Row(failures=20, connections=10, requests=10), True, "20 failures of 10 requests"),
        (Row(failures=5000, connections=10, requests=10_000), None, ""),
    ],
)
def test_what_cannot_be_or_shows_something_else_is_said(row: Row, impossible: bool | None, said: str) -> None:
    findings = check_rows([("one", row)], LIMITS)
    assert [finding.impossible for finding in findings] == ([] if impossible is None else [impossible])
    assert all(said in finding.text for finding in findings)


def test_a_rate_that_stands_twice_to_the_last_digit_is_a_note() -> None:
    rows = [("LRANGE_600", Row(rate=9037.06)), ("SET", Row(rate=100_000)), ("GET", Row(rate=100_000))]
    assert check_rows(rows, Limits()) == []  # round figures are often equal
    [finding] = check_rows([*rows, ("MSET", Row(rate=9037.06))], Limits())
    assert not finding.impossible
    same = "MSET: 9037.06 requests/s is also the rate of LRANGE_600"
    assert finding.text == f"{same}: a copied cell, or run times that were rounded"


def test_a_file_is_checked_by_the_names_of_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, limits = tmp_path / "t.csv", tmp_path / "l.toml"
    file.write_text('\ufefftest,size,rate,bytes\nLRANGE_600,15000,"60,496.07",9000000\nGET,10,,\n')
    limits.write_text('memory = "20GB"\n')
    assert check_file(str(file), str(limits)) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("impossible  LRANGE_600 15000: 60,496 requests/s of 9,000,000 bytes are 544 GB/s")
    assert out[1] == "2 rows, 1 impossible, 0 notes."
    assert check_file(str(file), "") == 0


@pytest.mark.parametrize(
    ("text", "limits", "said"),
    [
        ("a,b\n1,2\n", "", "t.csv: no column that can be checked. Name columns rate, clients,"),
        ("rate\nmany\n", "", 't.csv:2: rate must be a number from 0, not "many"'),
        ("rate\ninf\n", "", 't.csv:2: rate must be a number from 0, not "inf"'),
        ("", "", "no column that can be checked"),
        ("rate\n1\n", 'link = "fast"\n', 'l.toml:1: `link` must be a speed such as 1Gbit or 20GB, not "fast"'),
        ("rate\n1\n", "disk = 1\n", "l.toml:1: a file of limits has no `disk`"),
    ],
)
def test_a_file_that_cannot_be_checked_is_refused(tmp_path: Path, text: str, limits: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "l.toml").write_text(limits)
    with pytest.raises(Failure) as refused:
        check_file(str(tmp_path / "t.csv"), str(tmp_path / "l.toml") if limits else "")
    assert said in str(refused.value)


def test_speeds_are_in_bits_and_bytes() -> None:
    assert (parse_speed("1Gbit"), parse_speed("100Mbit"), parse_speed("20GB")) == (125e6, 12.5e6, 20e9)
    assert (parse_speed("1"), parse_speed("xGB")) == (None, None)


def test_published_figures_stand_in_the_unit_of_our_column() -> None:
    assert figures_at("A3: {key}: tcp requests/s", "", Format.COUNT)["SET"] == 146_081.38
    assert figures_at("D1: {row}: {key}", "SET", Format.COUNT)["15000"] == 51_652.89
    assert figures_at("B1 load: {key}: INSERT mean", "", Format.US) == {"RDB": 801.21, "RDB+AOF": 858.34}
    assert figures_at("B1 load: {key}: INSERT mean", "", Format.MS)["RDB"] == 0.80121
    assert figures_at("B1 load: {key}: run time", "", Format.DECIMALS2)["RDB"] == 807.436
    assert figures_at("A2: {key}: used_memory", "", Format.BYTES)["after"] == 901.78 * 2**20
    assert figures_at("A3: {key}: nothing", "", Format.COUNT) == {}


def test_each_published_cell_is_there_once_and_every_report_has_its_figures() -> None:
    tables = published_tables()
    for cells in tables.values():
        assert len({(cell.row, cell.column) for cell in cells}) == len(cells)
    counts = {report: sum(len(cells) for name, cells in tables.items() if name[0] == report) for report in "ABCDE"}
    assert counts == {"A": 126, "B": 77, "C": 192, "D": 178, "E": 1390}


def test_figures_of_two_tables_in_one_column_are_those_of_the_report() -> None:
    """The scenario names them itself, because `cell` takes one table. Only rows with the link were published."""
    scenario = read_scenario(Path(__file__).parents[3] / "python/forktail/lab/scenarios/b3-attach-replica.toml")
    places = {"100 Mbit/s/attached": "B3 run: attached", "100 Mbit/s/none": "B2 run: off"}
    names = {
        "seconds": "run time",
        "UPDATE.mean": "UPDATE mean",
        "UPDATE.p95": "UPDATE p95",
        "UPDATE.p99": "UPDATE p99",
    }
    names |= {"UPDATE.max": "UPDATE max", "READ.mean": "READ mean", "READ.p99": "READ p99", "READ.max": "READ max"}
    columns = [column for column in scenario.tables[0].columns if column.published and not column.against]
    assert len(columns) == len(names)
    for column in columns:
        for key, figure in column.published.items():
            place = f"{places[key]}: {names[column.value.removeprefix('run.')]}"
            assert list(figures_at(place, "", column.format).values()) == [figure]


def test_a_column_names_cells_of_a_report(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[3] / "python/forktail/lab/scenarios/a3-suite.toml"
    rows = read_scenario(shipped).tables[0].columns[0].published
    assert (rows["SET"], rows["MSET"]) == (184_928.34, 9037.06)
    wrong = tmp_path / "a3-suite.toml"
    wrong.write_text(shipped.read_text().replace("A3: {key}: unix requests/s", "A9: {key}: unix requests/s"))
    with pytest.raises(Failure, match='no published report has a cell "A9: {key}: unix requests/s"'):
        read_scenario(wrong)
