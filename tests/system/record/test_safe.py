# SPDX-License-Identifier: MIT
"""The recorder with hostile targets, and its own privileges while it records."""

import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from forktail.programs import program
from harness import eventually, ft, helper, load, needs_root, run_program
from processes import is_gone
from recorder_processes import children, helpers, status

pytestmark = needs_root

DAC_READ_SEARCH, SETGID, SETUID, SETPCAP, SYS_CHROOT, SYS_PTRACE = 2, 6, 7, 8, 18, 19
SYS_ADMIN, PERFMON, BPF, CHECKPOINT_RESTORE = 21, 38, 39, 40
RECORDER = [DAC_READ_SEARCH, SYS_PTRACE, BPF]
STARTER = [*RECORDER, SETGID, SETUID, SETPCAP, SYS_CHROOT, SYS_ADMIN, PERFMON, CHECKPOINT_RESTORE]  # of its helpers
NOBODY = ["65534"] * 2  # real and effective


def check_confined(pid, *capabilities):
    """Checks every thread, because each has its own privileges. Returns their number."""
    tasks = os.listdir(f"/proc/{pid}/task")
    expected = sum(1 << capability for capability in capabilities)
    for task in tasks:
        s = status(task)
        sets = {name: int(s[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")}
        assert sets == {"CapPrm": expected, "CapEff": expected, "CapBnd": expected, "CapInh": 0, "CapAmb": 0}, s["Name"]
        assert (s["NoNewPrivs"], s["Seccomp"]) == ("1", "2")
        assert s["Seccomp_filters"] != "0"
    return len(tasks)


def uids(pid):
    return status(pid)["Uid"].split()[:2]


def test_the_recorder_has_the_privileges_of_the_documentation_while_it_records_and_its_helpers_fewer(redis, record):
    # docs/how-it-works/security.md
    recorder = record("--pid", redis.pid)
    # The threads that empty the ring buffer, write the file, and watch the first.
    assert check_confined(recorder.pid, *RECORDER) == 3
    (starter,) = children(recorder.pid, "forktail-spawn")
    check_confined(starter, *STARTER)
    (files,) = helpers(recorder, "forktail-files")
    check_confined(files, DAC_READ_SEARCH, SYS_PTRACE, CHECKPOINT_RESTORE)
    (unwinding,) = helpers(recorder, "forktail-unwind")
    check_confined(unwinding)
    assert status(unwinding)["Groups"] == ""
    (statistics,) = helpers(recorder, "forktail-stats")
    check_confined(statistics, SYS_ADMIN)
    (events,) = helpers(recorder, "forktail-events")
    check_confined(events, PERFMON)
    assert [uids(pid) for pid in (files, unwinding, events)] == [NOBODY] * 3
    recorder.stop()
    for pid in (unwinding, statistics, events, files, starter):
        assert eventually(lambda: not Path(f"/proc/{pid}").exists())  # noqa: B023


def test_while_it_waits_for_load_generators_it_keeps_no_more_privileges(redis, record):
    recorder = record("--pid", redis.pid)
    check_confined(recorder.pid, *RECORDER)
    assert load("-s", redis.socket, "-n", 20000, "-t", "set").status == 0
    assert recorder.stop().role("load generator")


def test_without_samples_the_recorder_has_fewer_privileges_and_reads_no_programs(redis, record):
    recorder = record("--pid", redis.pid, "--no-samples")
    check_confined(recorder.pid, SYS_PTRACE, BPF)
    assert helpers(recorder, "forktail-unwind") == []
    recorder.stop()


def test_what_clients_sent_is_read_without_rights_and_only_processes_that_do_nothing_else_attach_programs_again(
    redis, record
):
    recorder = record("--pid", redis.pid, "--requests", "--keep", "10s")
    (requests,) = helpers(recorder, "forktail-reqs")
    attaching = helpers(recorder, "forktail-switch")
    assert len(attaching) == 3  # the programs of requests, of soft interrupts, and the one that sees who reads
    # The recorder says that it records when they were started. They give up their rights before they read anything.
    assert eventually(lambda: status(requests)["Seccomp"] == "2")
    check_confined(requests)
    for pid in attaching:
        check_confined(pid, BPF, PERFMON)
    assert [uids(pid) for pid in (requests, *attaching)] == [NOBODY] * 4
    ended = recorder.interrupt()
    assert ended.status == 0
    assert "is not on the recorder's list" not in ended.err


def test_the_kernels_statistics_are_on_for_part_of_the_time_by_the_process_that_may_enable_them(
    redis, record, background
):
    recorder = record("--pid", redis.pid)
    background("redis-benchmark", "-s", redis.socket, "-n", 10_000_000, "-t", "set", "-q")
    time.sleep(2.6)
    programs = {one["name"]: one for one in recorder.stop().cost["programs"]}
    assert programs["sched_switch"]["runs"] > 1000


@pytest.fixture
def spin(background):
    """spin(library): a process that runs nothing but the function with the long name, in this library."""
    return lambda library: background("dash", "-c", ":", env={"LD_PRELOAD": str(library)})


def frames(r):
    """[function, module] of each frame of the stack that most samples have."""
    ((stack, _),) = Counter(r.cpu_samples.stack.tolist()).most_common(1)
    return r.stacks[stack]["frames"]


@pytest.mark.quiet
def test_a_functions_name_of_any_length_does_no_harm_and_is_cut(spin, record):
    recorder = record("--pid", spin(helper("long_name")).pid)
    time.sleep(0.7)
    r = recorder.stop()
    assert len(r.cpu_samples) > 20
    assert "n" * 256 in [function for function, _ in frames(r)]


def test_a_program_that_was_replaced_on_disk_is_still_named_and_its_replacement_is_not_touched(spin, record, tmp_path):
    library = tmp_path / "library.so"
    shutil.copyfile(helper("long_name"), library)
    target = spin(library)
    assert eventually(lambda: str(library) in Path(f"/proc/{target.pid}/maps").read_text())
    time.sleep(0.1)
    library.unlink()
    os.mkfifo(library, 0o600)  # a reader that opens it waits without limit
    recorder = record("--pid", target.pid)
    time.sleep(0.7)
    named = frames(recorder.stop())
    assert any(function.endswith("nnnnnnnn") and module == "library.so" for function, module in named), named


@pytest.mark.quiet
def test_a_helper_that_dies_or_hangs_loses_names_and_nothing_else(spin, record):
    recorder = record("--pid", spin(helper("long_name")).pid)
    (first,) = helpers(recorder, "forktail-unwind")
    time.sleep(0.4)
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: "It is started again" in recorder.err)
    assert eventually(lambda: len(now := helpers(recorder, "forktail-unwind")) == 1 and now != [first])
    (second,) = helpers(recorder, "forktail-unwind")
    replaced_ns = time.monotonic_ns()
    time.sleep(0.5)
    stopped_ns = time.monotonic_ns()
    os.kill(second, signal.SIGSTOP)
    time.sleep(0.5)
    r = recorder.stop()
    s = r.cpu_samples
    named, unnamed = s.stack != 0, int((s.stack == 0).sum())
    assert (named & (s.t_ns > replaced_ns) & (s.t_ns < stopped_ns)).sum() > 10
    assert unnamed > 10
    assert r.drops["count"][r.drops.source == ft.DROP_UNWIND].sum() >= unnamed
    assert not r.damage.no_trailer


def test_a_killed_recorder_leaves_no_helper_behind(redis, record):
    recorder = record("--pid", redis.pid)
    names = ("forktail-unwind", "forktail-stats", "forktail-events", "forktail-files", "forktail-switch")
    # Each takes its name only when it gets a CPU.
    assert eventually(lambda: all(helpers(recorder, name) for name in names))
    pids = [pid for name in names for pid in helpers(recorder, name)]
    recorder.close()
    assert eventually(lambda: all(map(is_gone, pids)))


def record_to(path, redis, **environment):
    return run_program(
        program("forktail-record"), "--pid", redis.pid, "-o", path, "--duration", "100ms", env=environment
    )


def test_an_output_that_is_a_link_another_file_or_being_written_is_refused_in_a_sentence(redis, record, tmp_path):
    def check_refused(path, why):
        ended = record_to(path, redis)
        assert ended.status == 3
        assert f"{path}: {why}" in ended.err
        assert ended.err.count("\n") == 1

    notes, link = tmp_path / "notes", tmp_path / "link"
    notes.write_text("precious")
    link.symlink_to(notes)
    check_refused(link, "it is a symbolic link")
    check_refused(notes, "it contains something other than a recording")
    assert notes.read_text() == "precious"
    check_refused("/dev/null", "it is not a regular file")
    recorder = record("--pid", redis.pid)
    check_refused(recorder.path, "another recording is being written to it")
    assert not recorder.stop().damage.no_trailer
    assert recorder.path.stat().st_mode & 0o7777 == 0o600


def test_run_by_sudo_a_recording_and_its_new_directory_belong_to_the_caller_alone(redis, tmp_path):
    made = tmp_path / "made"
    file = made / "server.forktail"
    ended = record_to(file, redis, SUDO_UID="65534", SUDO_GID="65533")
    assert ended.status == 0, ended.err
    owned = [(s.st_mode & 0o7777, s.st_uid, s.st_gid) for s in (made.stat(), file.stat())]
    assert owned == [(0o700, 65534, 65533), (0o600, 65534, 65533)]
