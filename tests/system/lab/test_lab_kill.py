# SPDX-License-Identifier: MIT
"""A scenario is ended in the middle of a point, by a part of it or by the lab itself: nothing of it is left on the
machine, the lab reports the reason, and earlier recordings can be read.
"""

import os
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import pytest

from harness import eventually, forktail
from lab_runs import Lab, skip_without_memory_limits

pytestmark = pytest.mark.quiet

# A limited server that has to swap, behind a proxy. The first point ends soon, the second does not.
SCENARIO = f"""title = "A test"
about = "What a test needs."
scale = {{ small = 1 }}
[[sweep]]
name = "point"
values = [1, 2]
also.seconds = [1, 600]
[swap]
kind = "{"zram" if Path("/sys/class/zram-control").exists() else "file"}"
size = "128MiB"
[[server]]
name = "store"
kind = "redis"
memory = "24MiB"
[[server]]
name = "proxy"
kind = "nutcracker"
of = "store"
[[step]]
name = "fill"
to = "store"
load = "--fill 30000 -d 1000"
[[step]]
name = "run"
to = "proxy"
record = true
load = "--rate 500 --duration {{seconds}}s -r 30000 -d 1000 -c 4 --ratio 1:1"
[[table]]
title = "Rates"
by = "point"
[[table.column]]
title = "requests/s"
value = "run.rps"
"""


def compressed_devices():
    return sorted(Path("/sys/block").glob("zram*"))


@pytest.fixture
def lab():
    """A lab in the middle of the second point."""
    with Lab(SCENARIO) as one:
        one.devices = compressed_devices()
        one.start_scenario()
        if not one.prints("--duration 600s"):
            skip_without_memory_limits(one.err)
            pytest.fail(one.err)
        assert one.prints("  ETA 5", after="--duration 600s"), one.err  # of 600 s: requests are answered
        assert one.changed()
        assert one.left()
        yield one


def check_after(lab):
    """Nothing is left, the finished point can be explained, and for the other there is an explanation, or a sentence
    that gives the reason."""
    lab.check_nothing_left()
    assert compressed_devices() == lab.devices
    finished, killed = (lab.run / f"points/point={number}" for number in (1, 2))
    explained = forktail("explain", finished / "run")
    assert explained.status == 0, explained.err
    assert explained.out
    assert (finished / "point.json").exists()
    assert not (killed / "point.json").exists()
    assert not (lab.run / "results.json").exists()
    explained = forktail("explain", killed / "run")
    if explained.status == 0:
        assert explained.out
    else:
        assert explained.status > 0 and explained.err.startswith("forktail: "), explained


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("redis-server", "store (redis-server)"),
        ("nutcracker -", "proxy (nutcracker)"),
        ("forktail-record", "forktail-record"),
        ("--duration 600s", "forktail-load"),
    ],
)
def test_the_death_of_any_part_ends_the_scenario_and_names_the_part(lab, command, name):
    os.kill(lab.find(command), SIGKILL)
    lab.ends(3, 60)
    assert f"forktail lab: {lab.scenario}:" in lab.err
    assert f": {name} was killed by signal 9 (Killed)" in lab.err
    check_after(lab)


@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGKILL])
def test_signals_in_the_middle_of_a_point_leave_nothing_behind(lab, number):
    lab.program.signal(number)
    lab.ends(-number, 60)
    if number == SIGKILL:
        assert eventually(lambda: not lab.alive(), 60)  # its keeper still runs
    else:
        assert "stopped by " in lab.err
    check_after(lab)
