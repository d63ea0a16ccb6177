# SPDX-License-Identifier: MIT
"""forktail try: what is tried, and what a comparison of slices says."""

import re
from pathlib import Path

import pytest

from forktail.failure import Failure
from forktail.trial.main import Slice, compare, parse_setting
from forktail.trial.settings import SETTINGS


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("config set hz 100", ("hz", "100")),
        ("CONFIG SET HZ 100", ("hz", "100")),
        ("config set save ''", ("save", "")),
        ('config set client-output-buffer-limit "normal 0 0 0"', ("client-output-buffer-limit", "normal 0 0 0")),
    ],
)
def test_a_setting_is_a_command_of_redis(text: str, setting: tuple[str, str]) -> None:
    assert parse_setting(text) == setting


@pytest.mark.parametrize(
    "text", ["", "hz 100", "config get hz", "config set hz", "config set hz 1 save ''", "config set hz '1"]
)
def test_anything_else_is_not(text: str) -> None:
    with pytest.raises(Failure, match="^expected 'config set NAME VALUE', not"):
        parse_setting(text)


@pytest.mark.parametrize("name", ["dir", "requirepass", "maxmemory", "appendonly", "port", "cluster-node-timeout"])
def test_what_cannot_be_undone_is_not_tried(name: str) -> None:
    with pytest.raises(Failure, match=f"^{name} is not tried"):
        parse_setting(f"config set {name} 1")


def test_values_that_weaken_durability_are_known() -> None:
    appendfsync = SETTINGS["appendfsync"]
    assert appendfsync.warns_of("no", "everysec") and appendfsync.warns_of("everysec", "always")
    assert not appendfsync.warns_of("always", "no") and not appendfsync.warns_of("everysec", "no")
    assert SETTINGS["no-appendfsync-on-rewrite"].warns_of("YES", "no")
    assert SETTINGS["save"].warns_of("", "60 1000") and not SETTINGS["hz"].warns_of("1", "10")


def test_the_guide_lists_every_setting() -> None:
    guide = (Path(__file__).parents[3] / "docs/guides/try.md").read_text()
    listed = guide.partition("are tried:\n")[2].partition("\nOf these")[0]
    assert re.findall("`(.+?)`", listed) == list(SETTINGS)


def slices(old: list[float], new: list[float], cause: str = "fork") -> list[Slice]:
    made = []
    for a, b in zip(old, new, strict=True):
        for is_new, ms in ((False, a), (True, b)):
            latency = {"p50": 1e5, "p99": ms * 1e6, "p99.9": ms * 1e6, "max": ms * 2e6}
            made.append(Slice(is_new, 0, 1, latency, {cause: ms * 1e7}, 1000))
    return made


def verdicts(made: list[Slice]) -> dict[str, str]:
    return {row["figure"]: row["verdict"] for row in compare(made)}


def test_only_what_all_pairs_show_is_a_change() -> None:
    lower = verdicts(slices([10, 12, 11, 10, 13], [5, 6, 5, 5, 6]))
    assert lower["p99.9"].startswith("lower: 0.5") and lower["fork"].startswith("lower: 0.5")
    assert lower["p50"].startswith("no difference shown (1.00 to 1.00")
    assert verdicts(slices([10, 12, 11, 10], [11, 11, 12, 9]))["max"].startswith("no difference shown (0.90 to 1.10")
    assert verdicts(slices([10, 12, 11, 10, 13], [5, 6, 5, 5, 14]))["p99"].startswith("inconclusive (0.45 to 1.08")
    assert verdicts(slices([5, 6], [10, 12]))["p99"].startswith("higher: 2.00 times")


def test_slices_without_requests_are_left_out_with_their_partner() -> None:
    made = slices([10, 10, 10], [5, 5, 20])
    made[5].requests = 0
    assert verdicts(made)["p99"].startswith("lower: 0.50")
    for one in made:
        one.requests = 0
    assert compare(made) == []
