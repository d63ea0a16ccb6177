# SPDX-License-Identifier: MIT
"""A demo is ended in different ways at any time: no process, no temporary data and no incomplete run directory is
left.
"""

import os
import time
from signal import SIGINT, SIGKILL, SIGTERM

import pytest

from harness import eventually
from lab_runs import Lab


@pytest.fixture
def lab():
    with Lab() as one:
        yield one


def check_nothing_left(lab):
    lab.check_nothing_left()
    assert not lab.run.exists()


# What it has printed, how many seconds later, and how many processes there are at that time: the lab, its keeper,
# redis-server ...
MOMENTS = [
    pytest.param(("filling it", 0, 3), id="fill"),
    pytest.param(("filling it", 0.3, 3), id="filling"),
    pytest.param(("starting the recorder", 0, 3), id="recorder"),
    pytest.param(("load:", 0, 4), id="load"),
    pytest.param(("BGSAVE started", 0, 6), id="snapshot"),
]


def end_at(lab, moment, number):
    """Ends a new demo at this moment, by a signal."""
    printed, later, processes = moment
    lab.start_demo()
    assert lab.prints(printed), lab.err
    time.sleep(later)
    alive = lab.alive()
    lab.program.signal(number)
    lab.ends(-number, 20)
    assert len(alive) >= processes, alive


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_and_sigterm_at_any_moment_leave_nothing_behind(lab, moment, number):
    end_at(lab, moment, number)
    assert "forktail lab: stopped by " in lab.err
    check_nothing_left(lab)


@pytest.mark.parametrize("delay_ms", [0, 3, 10, 30, 100])
def test_sigint_right_after_the_start_leaves_nothing_behind(lab, delay_ms):
    lab.start_demo()  # returns when the test's own fork has become forktail
    time.sleep(delay_ms / 1000)
    lab.program.signal(SIGINT)
    lab.ends(-SIGINT, 20)
    check_nothing_left(lab)


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_of_the_lab_leaves_nothing_behind(lab, moment):
    end_at(lab, moment, SIGKILL)
    assert eventually(lambda: not lab.alive(), 30)  # its keeper still runs
    check_nothing_left(lab)


@pytest.mark.parametrize("name", ["redis-server", "forktail-record", "forktail-load"])
def test_the_death_of_any_part_ends_the_demo_with_a_sentence(lab, name):
    lab.start_demo(seconds=20)
    assert lab.prints("BGSAVE started"), lab.err
    os.kill(lab.find(name), SIGKILL)
    lab.ends(3, 20)
    assert f"forktail lab: {name} was killed by signal 9 (Killed)" in lab.err
    check_nothing_left(lab)
