# SPDX-License-Identifier: MIT
"""The lab's messages when it cannot run, or is used wrongly."""

import shutil

import pytest

from forktail.programs import program
from harness import forktail, needs_root, run_program
from lab_runs import Lab


@pytest.fixture
def lab():
    with Lab() as one:
        yield one


def check_refused(lab, sentence):
    """It ends with status 3 and this sentence, and leaves nothing."""
    lab.ends(3, 30)
    assert sentence in lab.err
    assert lab.out == ""
    assert lab.alive() == {}
    assert not lab.run.exists()


WRONG = [
    "", "nonsense", "demo --nonsense", "demo --seconds 0", "demo --seconds soon", "demo --rate -1", "demo --size-mb 0",
    "demo extra",
]  # fmt: skip


@pytest.mark.parametrize("words", WRONG)
def test_wrong_usage_is_refused_with_status_2(words):
    ended = forktail("lab", *words.split())
    assert (ended.status, ended.out) == (2, "")
    assert ended.err


def test_the_help_names_every_option():
    ended = forktail("lab", "demo", "--help")
    assert ended.status == 0
    options = ["--out", "--seconds", "--rate", "--size-mb", "--no-client"]
    assert [option for option in options if option not in ended.out] == []


@needs_root
def test_without_root_the_lab_prints_a_message():
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    ended = run_program(*user, program("forktail"), "lab", "demo")
    why = "forktail lab: lab demo records with BPF programs, which needs root: use sudo\n"
    assert (ended.status, ended.err) == (3, why)


def test_an_existing_run_directory_is_not_touched(lab, tmp_path):
    (tmp_path / "mine").write_text("precious")
    lab.start_demo(out=tmp_path)
    check_refused(lab, f"cannot create the run directory {tmp_path}: File exists")
    assert (tmp_path / "mine").read_text() == "precious"
    assert lab.left() == []


def test_missing_room_for_temporary_data_is_reported_with_the_place(lab):
    lab.start_demo(env={"TMPDIR": "/nonexistent"})
    check_refused(lab, "cannot create a temporary directory /nonexistent/forktail-lab.")


def test_a_path_too_long_for_a_socket_is_reported(lab, tmp_path):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    lab.start_demo(env={"TMPDIR": str(deep)})
    check_refused(lab, "Set TMPDIR to a shorter path")
    assert list(deep.iterdir()) == []


def test_without_redis_server_the_lab_names_the_missing_program(lab):
    lab.start_demo(env={"PATH": "/nonexistent"})
    check_refused(lab, "redis-server is not installed. Install it")
    assert lab.left() == []


@pytest.fixture
def bin_directory(tmp_path):
    """A copy of forktail finds the other programs in its directory. Each test breaks one of them."""
    shutil.copy(program("forktail"), tmp_path)
    (tmp_path / "forktail-load").symlink_to(program("forktail-load"))
    return tmp_path


def start_with_recorder(lab, bin_directory, script, **options):
    recorder = bin_directory / "forktail-record"
    recorder.write_text(script)
    recorder.chmod(0o700)
    lab.start_demo(by=bin_directory / "forktail", **options)


def test_a_missing_part_is_named(lab, bin_directory):
    lab.start_demo(by=bin_directory / "forktail")
    check_refused(lab, f"cannot find forktail-record in {bin_directory}")


def test_the_message_of_a_part_that_fails_at_once_is_repeated(lab, bin_directory):
    start_with_recorder(lab, bin_directory, "#!/bin/sh\necho 'the kernel said no' >&2\nexit 3\n")
    check_refused(
        lab, "forktail lab: forktail-record ended with status 3; its last messages:\n    the kernel said no\n"
    )
    assert lab.left() == []


def test_the_message_of_a_part_that_fails_at_its_end_is_repeated(lab, bin_directory):
    script = "#!/bin/sh\ntrap 'echo \"disk full\" >&2; exit 3' INT\necho 'recording something' >&2\n"
    start_with_recorder(lab, bin_directory, script + "while :; do sleep 0.1; done\n", seconds=1)
    check_refused(lab, "forktail-record ended with status 3; its last messages:\n")
    assert "\n    disk full\n" in lab.err
    assert lab.left() == []
