# SPDX-License-Identifier: MIT
"""How the lab prints figures: formulas, formats, texts, and the file that stores them."""

import copy
import math
import os
from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.files import UNFINISHED, holds_nothing, read_file, replace_file
from forktail.lab.format import Format, format_figure, format_published, with_unit
from forktail.lab.formula import check_formula, figure_name, names_in, with_row, with_values
from forktail.lab.results import Point, Results, read_results, write_results
from forktail.lab.tables import evaluate
from forktail.text import format_bytes, format_count, format_percent, visible_lines
from lab_sample import sample_results

FIGURES = {"run.p99_9": 40.0, "run.bucket_25ms": 8.0, "run.a": 1.0, "run.a1": 2.0}
VARIABLES = {"clients": "8", "listen": "tcp", "size": "8kB"}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("run.p99_9 / run.bucket_25ms", 5),
        ("run.a1 * 10 + run.a", 21),
        ("max(run.a, run.a1) ^ 2", 4),
        ("run.a > 0 ? 1.5e3 : 2", 1500),
        ("run.a > 1 ? 1 : run.a1 >= 2 && 1 != 2 ? 7 : 8", 7),
        ("1e3*run.a", 1000),
        ("2^ceil(log2(run.p99_9)) + floor(run.p99_9 / 3)", 77),
        ("sqrt (run.p99_9 * 10)", 20),
        ("-run.a1^2 + 2^3^2 - 2^-1 - 7 - 3", 497.5),
        ("run.p99_9 / 10 / 2 * -3", -6),
        ("min(3, 2) + sum(1, 2, 3) + avg(1, 2) + rint(2.5) + sign(-4) + abs(-1)", 12.5),
        ("(1 < 2) + (2 <= 1) + (1 == 1) + (0 || 1)", 3),
        ("1 / (1 / 0)", 0),
        ("2^log2(0)", 0),
        ("run.p99_9 / clients", 5),  # a variable of the point
        ("run.p99_9 / listen", None),  # is no number
        ("size", None),
        ("run.p99", None),
        ("run.p99_9 / (run.a - 1)", None),  # a result that is no number is no value either
        ("sqrt(0 - run.a)", None),
        ("10^1000", None),
    ],
)
def test_a_formula_calculates_with_figures_and_variables(formula: str, value: float | None) -> None:
    assert evaluate(formula, Point(VARIABLES, FIGURES), None) == ([] if value is None else [value])


def test_base_is_the_other_point_and_without_it_there_is_no_value() -> None:
    point, base = Point(numbers={"run.rps": 100}), Point(numbers={"run.rps": 40})
    assert evaluate("run.rps / base.run.rps", point, base) == [2.5]
    assert evaluate("run.rps / base.run.rps", point, None) == []
    assert evaluate("run.rps / base.run.rps", point, Point()) == []


def test_a_formula_has_a_value_of_each_repeat_from_figures_of_the_same_repeat() -> None:
    point = Point(numbers={"run.rps": 100, "run.p99": 7}, runs={"run.rps": [95, 100, 110]}, repeats=3)
    base = Point(numbers={"run.rps": 40}, runs={"run.rps": [38, 50, None]}, repeats=3)
    assert evaluate("run.rps / 10", point, base) == [9.5, 10, 11]
    assert evaluate("run.rps / base.run.rps", point, base) == [2.5, 2]
    assert evaluate("run.p99", point, base) == [7, 7, 7]


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("run.rps / ", "it ends too early"),
        ("(run.rps", "it ends too early"),
        ("1 ? 2", "it ends too early"),
        ("", "it is empty"),
        ("run.rps run.p99", 'unexpected "run.p99"'),
        ("run.rps 2", 'unexpected "2"'),
        ("run.rps)", 'unexpected ")"'),
        ("run.rps $ 2", 'unexpected "$"'),
        ("* 2", 'unexpected "*"'),
        ("2 = 2", 'unexpected "="'),
        ("1, 2", 'unexpected ","'),
        ("max()", 'unexpected ")"'),
        ("(1 ? 2)", 'unexpected ")"'),
        ("1 : 2", 'unexpected ":"'),
        ("nothing(run.rps)", 'unknown function "nothing"'),
        ("sqrt(1, 2)", 'the function "sqrt" has one argument'),
    ],
)
def test_an_invalid_formula_is_reported_in_one_sentence_with_the_text_as_typed(formula: str, why: str) -> None:
    with pytest.raises(Failure) as refused:
        check_formula(formula)
    assert str(refused.value) == f'"{formula}" is not a formula: {why}'


def test_names() -> None:
    check_formula("run.{row}.rps / base.run.{row}.rps * 100")
    names = ["run.{row}.rps", "base.run.{row}.rps", "a"]
    assert names_in("run.{row}.rps / base.run.{row}.rps + min(a, 2e6, a)") == names
    assert names_in("run.worst") == ["run.worst"]
    assert names_in("1 + 2 * _pi") == []
    assert with_values("run.cause.{cause}.time / {x}", {"cause": "file-write"}) == "run.cause.file_write.time / {x}"
    assert with_row("run.{row}.rps / {row}", "READ-MODIFY-WRITE") == "run.READ_MODIFY_WRITE.rps / READ_MODIFY_WRITE"
    assert figure_name("p99.9") == "p99_9"
    assert figure_name("a bä") == "a_b__"


@pytest.mark.parametrize(
    ("figure", "form", "text"),
    [
        (1234567.4, Format.COUNT, "1,234,567"),
        (-1234, Format.COUNT, "-1,234"),
        (-0.2, Format.COUNT, "0"),
        (999, Format.COUNT, "999"),
        (1234.56, Format.DECIMALS1, "1,234.6"),
        (0.996, Format.DECIMALS2, "1.00"),
        (61.44, Format.PERCENT, "61.4"),
        (187.3, Format.PERCENT, "187"),
        (12345678, Format.MS, "12.3"),
        (812, Format.MS, "0.001"),
        (9996000, Format.MS, "10.0"),
        (373975000, Format.US, "373,975"),
        (1.5e9, Format.SECONDS, "1.50"),
        (84e6, Format.BYTES, "84.0 MB"),
        (-2048, Format.BYTES, "-2.05 kB"),
        (0.012345, Format.NUMBER, "0.01235"),
        (1204311, Format.NUMBER, "1,204,311"),
        (2.5, Format.NUMBER, "2.5"),
        (0, Format.NUMBER, "0"),
    ],
)
def test_figures_are_printed_in_the_unit_of_their_column(figure: float, form: Format, text: str) -> None:
    assert format_figure(figure, form) == text


def test_published_figures_keep_their_digits_and_a_unit_is_named_once() -> None:
    assert format_published(184928, Format.COUNT) == "184,928"
    assert format_published(901.78, Format.MS) == "901.78"
    assert format_published(74, Format.DECIMALS1) == "74"
    assert format_published(901780000, Format.BYTES) == "902 MB"
    assert with_unit("average", Format.MS) == "average, ms"
    assert with_unit("average (ms)", Format.MS) == "average (ms)"
    assert with_unit("items", Format.MS) == "items, ms"
    assert with_unit("CPU %", Format.PERCENT) == "CPU %"
    assert with_unit("requests/s", Format.COUNT) == "requests/s"


def test_numbers_and_untrusted_texts() -> None:
    assert [format_bytes(size) for size in (999, 1000, 9996, 999499, 999500, 10**16)] == [
        "999 B",
        "1.00 kB",
        "10.0 kB",
        "999 kB",
        "1.00 MB",
        "10000 TB",
    ]
    assert format_count(1234567) == "1,234,567"
    shares = {0: "0 %", 1e-6: "< 0.01 %", 0.0012: "0.12 %", 0.614: "61.4 %", 0.9999: "> 99.9 %", 1: "100 %"}
    assert {share: format_percent(share) for share in shares} == shares
    text = b"a\tb\x1b[2J\xff\n\xc2\x85\xe2\x80\xae\xf3\xa0\x80\x81 \xc3\xa4".decode(errors="surrogateescape")
    assert visible_lines(text) == "a\\x09b\\x1b[2J\\xff\n\\x85\\u202e\\U000e0001 ä"


# Files


def test_results_are_read_back_from_their_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    written = sample_results()
    written.points[0].repeats = 3
    written.points[0].runs = {"run.SET.rps": [7000, None, 9000]}
    written.points[2].numbers["run.exact"] = 0.1 + 0.2
    expected = copy.deepcopy(written)
    written.points[1].numbers |= {"run.broken": math.nan, "run.endless": math.inf}
    written.points[3].texts["run.worst"] = 'not UTF-8: \udcff, "quoted"\nand a line'
    expected.points[3].texts["run.worst"] = 'not UTF-8: \N{REPLACEMENT CHARACTER}, "quoted"\nand a line'
    write_results(path, written)
    assert read_results(path) == expected
    # The write leaves no temporary file, and a second write replaces the first.
    assert os.listdir(tmp_path) == ["results.json"]
    write_results(path, Results())
    assert read_results(path) == Results()


def test_unreadable_results_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(path, sample_results())
    whole = path.read_text()

    def refused(text: str) -> str:
        path.write_text(text)
        with pytest.raises(Failure) as failure:
            read_results(path)
        return str(failure.value).removeprefix(f"{path} is damaged")

    for length in range(0, len(whole) - 2, 37):
        assert refused(whole[:length]) == ", or no results of a scenario: it holds no JSON object"
    for text in ("[" * 100000, whole.replace("12.5", "1e999"), whole.replace("12.5", "NaN"), '{"a": "\\ud800"}'):
        assert "no JSON object" in refused(text)
    for old, new, why in (
        ('"version": 2', '"version": 1', ", or of another version of forktail: its version is not 2"),
        ('"host"', '"guest"', ": key 'host' not found"),
        ('"seconds": 12.5', '"seconds": "12"', ": type must be number, but is string"),
        ('"run.SET.rps": 8000.0', '"run.SET.rps": true', ": type must be number, but is boolean"),
        ('"clients": "8"', '"clients": null', ": type must be string, but is null"),
    ):
        assert refused(whole.replace(old, new)) == why
    with pytest.raises(Failure, match="^cannot read .*/none.json: No such file or directory$"):
        read_results(tmp_path / "none.json")
    with pytest.raises(Failure, match="^cannot write .*/none/results.json: No such file or directory$"):
        write_results(tmp_path / "none" / "results.json", Results())


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    mask = os.umask(0o027)
    try:
        replace_file(file, "one")
        assert file.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(mask)
    inode = file.stat().st_ino
    replace_file(file, "two \udcff")
    assert file.read_bytes() == b"two \xff" and read_file(file) == "two \udcff" and file.stat().st_ino != inode
    link.symlink_to(file)
    replace_file(link, "three")  # through our own link
    assert link.is_symlink() and file.read_text() == "three"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(pipe, "four")
    assert os.read(reader, 10) == b"four"
    os.close(reader)
    with pytest.raises(Failure, match="is a directory, not a file"):
        replace_file(tmp_path, "")
    assert read_file(tmp_path / "none") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to own files as another user")
def test_another_users_link_is_not_followed(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    link.symlink_to(file)
    os.lchown(link, 12345, 12345)
    with pytest.raises(Failure, match="it is a symbolic link of another user, or in another user's directory"):
        replace_file(link, "after")
    assert file.read_text() == "before"


def test_what_a_killed_run_left_behind_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "points").mkdir()
    (tmp_path / f"scenario.txt{UNFINISHED}x").write_text("")
    assert holds_nothing(tmp_path)
    (tmp_path / "points" / "file").write_text("")
    assert not holds_nothing(tmp_path)
    assert not holds_nothing(tmp_path / "none")
