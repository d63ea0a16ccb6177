# SPDX-License-Identifier: MIT
"""The memory of sets and values, from the scenarios that measure it: INFO memory equals the known sizes in Redis and
its allocator, to the byte per key.
"""

import csv

import pytest

from harness import forktail

# Redis frees the smaller table of its keys step by step, and the scenarios wait for that for a fixed time.
pytestmark = pytest.mark.quiet


@pytest.mark.parametrize("name", ["a2-set-memory", "d2-value-memory"])
def test_memory_by_info_and_the_sum_of_known_sizes_differ_by_less_than_a_byte_per_key(name, tmp_path):
    out = tmp_path / "run"
    ended = forktail("lab", "run", name, "--scale", "tiny", "--out", out, timeout=120)
    assert ended.status == 0, ended.out + ended.err
    with (out / "table-1.csv").open() as file:
        rows = list(csv.DictReader(file, strict=True))
    assert rows
    assert len(rows) == len(list((out / "points").iterdir()))
    assert [row for row in rows if None in row or None in row.values()] == []
    assert [row for row in rows if abs(float(row["difference"])) >= 1] == []
