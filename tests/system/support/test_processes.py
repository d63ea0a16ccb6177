# SPDX-License-Identifier: MIT
"""The harness on which every test with programs depends: what it returns of a program, and that none is left."""

import sys
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

import processes
from cgroups import MemoryCgroup
from processes import Ended, Program, eventually, is_gone, run, run_measured

HUNDRED_MIB = ["dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1"]


def test_output_status_and_errors_are_returned_separately():
    ended = run("sh", "-c", "cat; echo err >&2; exit 7", input="in")
    assert (ended.status, ended.out, ended.err) == (7, "in", "err\n")
    assert ended.peak_bytes > 0


def test_environment_and_directory_reach_the_program(monkeypatch):
    monkeypatch.setenv("FT_Y", "18")
    ended = run("sh", "-c", "echo $FT_X $FT_Y; pwd", env={"FT_X": "17", "FT_Y": None}, cwd="/")
    assert ended.out == "17\n/\n"


def test_a_program_that_outlasts_its_time_limit_is_killed_and_fails_the_test_with_its_output():
    with Program("sh", "-c", "echo ready; exec sleep 100") as program:
        assert eventually(lambda: program.out)
        with pytest.raises(AssertionError, match=r"still ran after 0.05 s\nready"):
            program.wait(0.05)
        assert is_gone(program.pid)


def test_a_missing_program_is_named():
    with pytest.raises(FileNotFoundError, match="/nonexistent/program"):
        run("/nonexistent/program")


def test_a_programs_peak_memory_is_measured():
    ended = run_measured(*HUNDRED_MIB)
    assert ended.status == 0
    assert 100 << 20 <= ended.peak_bytes < 130 << 20


def test_a_programs_memory_is_limited():
    with MemoryCgroup(64 << 20) as cgroup:
        if not cgroup.usable:
            pytest.skip("cannot make a memory cgroup here")
        assert run(*cgroup.within(*HUNDRED_MIB)).status == -SIGKILL
        assert run(*cgroup.within("sh", "-c", "echo ready; exit 7")).status == 7


def test_a_background_program_is_signalled_and_its_status_is_stored():
    with Program("sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done") as program:
        assert eventually(lambda: program.out == "ready\n")
        assert program.running
        program.signal(SIGTERM)
        assert program.wait(10) == program.wait(10) == Ended(5, "ready\n", "", program.wait().peak_bytes)
        program.signal(SIGTERM)  # it has ended: nothing happens


def test_no_program_outlasts_a_killed_test():
    folder = Path(processes.__file__).parent
    code = f"import sys, time; sys.path.insert(0, {str(folder)!r}); from processes import Program\n"
    code += "print(Program('sleep', 100).pid, flush=True); time.sleep(100)"
    with Program(sys.executable, "-c", code) as test:
        assert eventually(lambda: test.out.endswith("\n")), test.err
        started = int(test.out)
        assert not is_gone(started)
        test.signal(SIGKILL)
        test.wait()
        assert eventually(lambda: is_gone(started))
