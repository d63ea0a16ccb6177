# SPDX-License-Identifier: MIT
"""`forktail lab pairs` with real servers: what a side may be, that it is used in that side's runs only, that a killed
comparison can be continued, and that `forktail diff` reads the result.
"""

import json
import re
import shutil
from pathlib import Path
from signal import SIGKILL

import pytest

from harness import eventually, forktail
from lab_runs import REDIS, Lab

# One server and one recorded load, the only kind of scenario that pairs accepts.
SCENARIO = f"""title = "A test"
about = "What a test needs."
scale = {{ small = 1 }}
[constants]
bytes = 10
seconds = 1
{REDIS}[[step]]
name = "run"
to = "redis"
record = true
load = "--rate 1000 --duration {{seconds}}s -c 4 -r 1000 -d {{bytes}} --ratio 1:1"
"""


class Pairs(Lab):
    def start_pairs(self, *words):
        self.start("pairs", self.scenario, "-o", self.run, "--scale", 1, *words)

    def run_pairs(self, *words, status=0):
        self.start_pairs(*words)
        self.ends(status)

    def point(self, side, pair):
        """The directory of a run."""
        return self.run / side / pair / "points/point"

    def about(self, side, pair):
        """What its run.json has."""
        return json.loads((self.point(side, pair) / "run/run.json").read_text())


@pytest.fixture
def pairs():
    with Pairs(SCENARIO) as one:
        yield one


def test_pairs_of_a_configuration_file_continue_after_a_kill_in_the_drawn_order(pairs):
    config = pairs.directory / "new.conf"
    config.write_text('# a comment\nappendonly yes\n  appendfsync always\n\nsave "3600 1"\r\n')
    words = ["--new", config, "--pairs", 2, "--seed", 4]
    pairs.start_pairs(*words)
    assert pairs.prints("pair 2 of 2") and pairs.prints("starting the recorder", after="pair 2 of 2"), pairs.err
    pairs.program.signal(SIGKILL)
    pairs.program.wait(20)
    assert eventually(lambda: not pairs.alive(), 60)
    finished = [pairs.point(side, "pair-01") / "point.json" for side in ("base", "new")]
    times = [point.stat().st_mtime_ns for point in finished]
    order = (pairs.run / "order.txt").read_text()

    pairs.run_pairs(*words, status=3)  # is there already
    assert "--resume to continue in it" in pairs.err
    pairs.run_pairs("--resume", "--new", config, "--pairs", 2, "--seed", 5, status=3)
    assert "another seed" in pairs.err

    # A run whose lab was killed before it wrote run.json; with one more file, from another source.
    half = pairs.run / ("base" if "pair-02 base" in order else "new") / "pair-02"
    shutil.rmtree(half)
    (half / "points").mkdir(parents=True)
    (half / "scenario.txt.part-a1b2c3").write_text("scale")
    (half / "mine").write_text("kept")
    pairs.run_pairs(*words, "--resume", status=3)
    assert "was started with another scenario" in pairs.err
    assert (half / "mine").read_text() == "kept"
    (half / "mine").unlink()
    pairs.run_pairs(*words, "--resume")
    assert pairs.out == f"forktail diff {pairs.run}/base {pairs.run}/new\n"
    assert [point.stat().st_mtime_ns for point in finished] == times
    pairs.check_nothing_left()

    # The runs were made in the order of order.txt.
    assert (pairs.run / "order.txt").read_text() == order
    drawn = [line.split() for line in order.splitlines()]
    began = [pairs.about(side, pair)["started_unix"] for pair, *sides in drawn for side in sides]
    assert len(drawn) == 2
    assert began == sorted(set(began))

    for pair in ("pair-01", "pair-02"):
        base, new = (pairs.about(side, pair)["redis_config"] for side in ("base", "new"))
        assert base["appendonly"] == "no"
        assert (new["appendonly"], new["appendfsync"], new["save"]) == ("yes", "always", "3600 1")
    diff = forktail("diff", pairs.run, "--json")
    assert diff.status == 4, diff.err  # two pairs cannot decide, and the output says so
    compared = json.loads(diff.out)
    assert (compared["verdict"], compared["pairs"]) == ("inconclusive", 2)
    assert "appendfsync" in str(compared["differs"])


def test_a_servers_program_and_a_scenarios_settings_can_be_sides(pairs):
    other = str(shutil.copy(Path(shutil.which("redis-server")).resolve(), pairs.directory / "redis-other"))
    pairs.run_pairs("--base", other, "--new", "bytes=300 maxmemory=123mb", "--pairs", 1)
    pairs.check_nothing_left()
    abouts = [pairs.about(side, "pair-01") for side in ("base", "new")]
    base, new = map(json.dumps, abouts)
    assert other in base and other not in new
    assert "-d 10 " in base and "-d 300 " in new
    assert [about["redis_config"]["maxmemory"] for about in abouts] == ["0", str(123 << 20)]
    # Both loads of a pair have the same keys and times.
    seeds = [re.search(r'--seed ([^ "]+)', about)[1] for about in (base, new)]
    assert seeds[0] == seeds[1]
    diff = forktail("diff", pairs.run)
    assert diff.status == 0, diff.err + diff.out
    assert diff.out.startswith("advisory")
    assert "maxmemory" in diff.out


@pytest.mark.parametrize(
    ("more", "words", "sentence"),
    [
        (
            "",
            ["--new", "/nowhere/redis-server"],
            "/nowhere/redis-server is not a program, a file or a setting NAME=VALUE",
        ),
        ("", ["--new", "maxmemory 'no end"], "a quote is not closed"),
        (
            '[[sweep]]\nname = "n"\nvalues = [1, 2]\n',
            [],
            "pairs need one point and one recorded load, but it has 2 and 1",
        ),
        (
            '[[server]]\nname = "second"\nkind = "redis"\n',
            ["--new", "hz=50"],
            "hz needs a scenario with one server, and s has 2",
        ),
    ],
    ids=["no-program", "quote", "two-points", "two-servers"],
)
def test_pairs_that_cannot_be_made_are_refused_before_any_run(pairs, more, words, sentence):
    pairs.scenario.write_text(SCENARIO + more)
    pairs.run_pairs(*words, status=2)
    assert sentence in pairs.err
    assert pairs.err.count("\n") == 1
    assert not pairs.run.exists()
    pairs.check_nothing_left()
