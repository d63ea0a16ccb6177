# SPDX-License-Identifier: MIT
"""forktail.open: the tables of a recorded run agree with the explanation, from Parquet and from CSV, in arrays."""

import subprocess
from pathlib import Path

import pytest

import forktail
import forktail.recording
from conftest import TREE

np = pytest.importorskip("numpy")

RUN = TREE / "tests/compat/1.0-arm64/run"
ARROW = TREE / "build-python/bin/python"


@pytest.fixture(scope="module")
def run():
    with forktail.open(RUN, slow="p90") as opened:
        yield opened


def test_the_answer_and_the_causes_are_those_of_explain(run):
    causes = {row["cause"]: row["total_ns"] for row in run.causes}
    assert causes == {cause["cause"]: cause["time_ns"] for cause in run.explanation["causes"]}
    assert run.answer and run.explain().replace("\n", " ").startswith(run.answer.split()[0])
    assert [row["requests"] for row in run.episodes] == [e["requests"] for e in run.explanation["episodes"]]


def test_requests_are_arrays_and_their_parts_amount_to_their_latency(run):
    requests, parts = run.requests.to_numpy(), run.parts.to_numpy("request", "total_ns")
    assert len(run.requests) == run.explanation["requests"]["count"] == len(requests["request"])
    kinds = {"request": "i", "latency_ns": "i", "slow": "b", "due_time": "M", "op": "O"}
    assert {name: requests[name].dtype.kind for name in kinds} == kinds
    good = np.isin(requests["status"], ["ok", "miss"])
    assert requests["latency_ns"][good].max() == run.latency_ns["max"]
    assert requests["slow"].sum() == run.explanation["slow"]["count"]
    sums = np.zeros(len(run.requests), dtype="int64")
    np.add.at(sums, parts["request"], parts["total_ns"])
    assert (sums[requests["slow"]] == requests["latency_ns"][requests["slow"]]).all()
    assert requests["written_ns"].mask.all()  # no kernel log: not known
    assert len({id(text) for text in requests["op"]}) == len(set(requests["op"]))


@pytest.mark.parametrize(
    ("use", "sentence", "status"),
    [
        (
            lambda run: forktail.open("/no/run"),
            "cannot read /no/run: No such file or directory",
            3,
        ),
        (
            lambda run: run.table("nothing"),
            "a run has no table nothing. It has causes, ",
            2,
        ),
        (
            lambda run: run.causes["nothing"],
            "the table causes has no column nothing. It has run_id, ",
            2,
        ),
        (lambda run: forktail.open(RUN, slow="late").answer, "late", 2),
        (lambda run: forktail.open(TREE / "python").answer, "", 3),
    ],
)
def test_refusals(run, use, sentence, status):
    with pytest.raises(forktail.Failure) as failure:
        use(run)
    assert sentence in str(failure.value) and failure.value.status == status
    assert "\n" not in str(failure.value)


def test_a_part_of_the_run_and_a_threshold():
    with (
        forktail.open(RUN, slow="1us", until="+0.2s") as part,
        forktail.open(RUN) as whole,
    ):
        assert part.explanation["slow"]["threshold_ns"] == 1000
        assert 0 < part.explanation["requests"]["count"] < whole.explanation["requests"]["count"]


def test_close_removes_the_tables():
    run = forktail.open(RUN)
    directory = Path(run._tables)
    assert len(run.causes) and directory.exists()
    run.close()
    assert not directory.parent.exists()


BOTH = """
import sys
sys.path.insert(0, sys.argv[1])
import forktail, forktail.recording, numpy as np
parquet, text = forktail.open(sys.argv[2]), forktail.open(sys.argv[2])
names = sorted(file.stem for file in parquet._tables.iterdir())
forktail.recording.find_spec = lambda name: None
assert text.causes._arrow is False and parquet.causes._arrow is True and len(names) == 22
for name in names:
    a, b = parquet.table(name), text.table(name)
    assert a.columns == b.columns and len(a) == len(b), name
    empty = lambda row: {key: None if value == "" else value for key, value in row.items()}  # CSV does not distinguish
    assert list(map(empty, a)) == list(b), name
    one, other = a.to_numpy(), b.to_numpy()
    for column in a.columns:
        x, y = one[column], other[column]
        assert x.dtype == y.dtype and len(x) == len(a), (name, column, x.dtype, y.dtype)
        assert (np.ma.getmaskarray(x) == np.ma.getmaskarray(y)).all(), (name, column)
        if x.dtype != object:
            x, y = np.ma.filled(x, 0), np.ma.filled(y, 0)
            assert np.array_equal(x, y, equal_nan=x.dtype.kind in "fM"), (name, column)
    for table in (a, b):
        frames = [table.to_pandas(), table.to_polars(), table.to_arrow()]
        assert [len(frame) for frame in frames] == [len(a)] * 3, name
        nulls = {int(frames[0].isna().sum().sum()), sum(frames[1].null_count().row(0))}
        assert nulls == {sum(column.null_count for column in frames[2].columns)}, name
"""


def test_parquet_and_csv_give_the_same_arrays_and_frames():
    needed = "import numpy, pandas, polars, pyarrow"
    if not ARROW.exists() or subprocess.run([ARROW, "-c", needed], capture_output=True).returncode:
        pytest.skip("needs Arrow, pandas and Polars in build-python (script/python)")
    done = subprocess.run([ARROW, "-I", "-c", BOTH, TREE / "python", RUN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
