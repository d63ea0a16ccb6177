# SPDX-License-Identifier: MIT
"""Targets, found by port, socket, name or container: in namespaces, process ids are those of the caller's namespace.
The end of one of several targets is reported.
"""

import os
import shutil
import time
from collections import defaultdict
from pathlib import Path

import pytest

from cgroups import Freezer
from forktail.programs import program
from harness import Recording, eventually, forktail, ft, kill, needs_root, run_program
from recorder_processes import children

pytestmark = needs_root

TASK_OUTSIDE = 0x80000000  # FT_TASK_OUTSIDE
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child"]
IN_NAMESPACE = [*UNSHARE, "--mount-proc"]


@pytest.fixture(scope="module")
def pid_namespaces():
    if (ended := run_program(*IN_NAMESPACE, "true")).status != 0:
        pytest.skip(f"cannot make a pid namespace here: {ended.err}")


def check_snapshot(r, server):
    """The snapshot child, and its fork."""
    child = r.role("snapshot child")
    assert child.parent_tgid == server
    forks = r.spans[(r.spans.owner == ft.FORK) & (r.spans.off_cpu == 0) & (r.spans.tid == server)]
    assert child.tid in forks.arg[:, 0]


@pytest.fixture
def program_called(tmp_path):
    """program_called(comm, name): a copy of a program whose processes have this comm."""
    return lambda comm, name: shutil.copy(Path(shutil.which(name)).resolve(), tmp_path / comm)


@pytest.mark.quiet
def test_in_a_pid_namespace_tasks_outside_it_are_not_taken_for_its_own(
    pid_namespaces, background, program_called, tmp_path
):
    busy = "while :; do :; done"
    outside, server, hog = (program_called(comm, "sh") for comm in ("outside-hog", "inside", "inside-hog"))

    def dd(name, megabytes):
        return f"dd if=/dev/zero of={tmp_path / name} bs=1M count={megabytes} conv=fsync 2>/dev/null"

    script = f"while :; do {dd('file-outside', 4)}; for i in $(seq 300000); do :; done; done"
    background("taskset", "-c", 0, outside, "-c", script)
    # The server is the third process there, or a later one.
    recorder = f"{program('forktail-record')} --pid $server --duration 4s -o {tmp_path / 'r'}"
    writer = f"while :; do {dd('file-inside', 16)}; done"
    script = f"{server} -c '{busy}' & server=$!; {hog} -c '{busy}' & {writer} & {recorder}; exit $?"
    ended = run_program(*IN_NAMESPACE, "taskset", "-c", 0, "sh", "-c", script)
    assert ended.status == 0, ended.err

    r = Recording(tmp_path / "r")
    are_outside = defaultdict(set)  # by name: what is recorded of the tasks of that name
    for table in (r.slices, r.io):
        for tid, comm in set(zip(table.tid.tolist(), table.comm.tolist(), strict=True)):
            are_outside[comm.decode(errors="replace")].add(bool(tid & TASK_OUTSIDE))
    assert are_outside["inside-hog"] == {False}
    assert are_outside["outside-hog"] == {True}
    kernel = {comm: seen for comm, seen in are_outside.items() if comm.startswith(("kworker", "ksoftirqd"))}
    assert all(seen == {True} for seen in kernel.values()), kernel
    writers = r.writes.tgid[r.writes.comm == b"dd"].tolist()
    assert {bool(tgid & TASK_OUTSIDE) for tgid in writers} == {False, True}


def test_in_its_own_pid_namespace_the_recorder_knows_processes_by_their_ids_there(pid_namespaces, tmp_path):
    # Everything is inside: the server, its client, the recorder.
    script = f"""
        redis-server --port 0 --unixsocket s --dir . --save '' --enable-debug-command yes --rdb-key-save-delay 1000 \
            >/dev/null & server=$!
        until redis-cli -s s ping >/dev/null 2>&1; do sleep 0.05; done
        redis-cli -s s debug populate 200 key 100 >/dev/null
        {program("forktail-record")} --pid $server -o r 2>err & recorder=$!
        until grep -q '^recording' err; do kill -0 $recorder || exit 9; sleep 0.05; done
        redis-cli -s s bgsave >/dev/null; redis-cli -s s debug sleep 0.1 >/dev/null
        sleep 0.5; redis-cli -s s ping >/dev/null; kill -INT $recorder; wait $recorder || exit 8
        echo $server; kill $server; wait $server"""
    ended = run_program(*IN_NAMESPACE, "sh", "-c", script, cwd=tmp_path)
    assert ended.status == 0, ended.out + ended.err + (tmp_path / "err").read_text()
    server = int(ended.out)
    assert server < 100  # an id of that namespace

    r = Recording(tmp_path / "r")
    main = r.role("redis-server")
    assert (main.tid, main.tgid) == (server, server)
    assert r.role("bio_aof_fsync") is not None
    assert r.owned_ns(server, ft.SLEEP) >= 99_000_000
    assert r.count(server, ft.PAGE_ZERO) + r.count(server, ft.COW_COPY) > 0
    check_snapshot(r, server)
    assert r.accounted_ns(server) >= 0.999 * (int(main.end_ns) - int(main.start_ns))


def test_a_server_in_another_pid_namespace_is_traced_from_outside_by_its_id_outside(
    pid_namespaces, background, record, tmp_path
):
    def ask(*words):
        return run_program("redis-cli", "-s", "s", *words, cwd=tmp_path)

    words = ["--port", 0, "--unixsocket", "s", "--dir", ".", "--save", "", "--rdb-key-save-delay", 100_000]
    namespaced = background(*UNSHARE, "redis-server", *words, cwd=tmp_path)
    assert eventually(lambda: ask("ping").out == "PONG\n")
    (server,) = children(namespaced.pid)
    assert ask("mset", "a", "1", "b", "2").status == 0
    recorder = record("--pid", server)
    assert ask("bgsave").status == 0
    time.sleep(0.3)
    ask("ping")
    check_snapshot(recorder.stop(), server)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (["--mount-proc"], "no process {pid} in this pid namespace"),
        ([], "/proc belongs to another pid namespace"),  # it is still the outer namespace's
    ],
    ids=["own-proc", "outer-proc"],
)
def test_a_process_id_without_meaning_here_is_refused_with_a_sentence(pid_namespaces, tmp_path, how, why):
    words = [program("forktail-record"), "--pid", os.getpid(), "-o", tmp_path / "r"]
    ended = run_program(*UNSHARE, *how, *words)
    assert ended.status == 3
    assert why.format(pid=os.getpid()) in ended.err
    assert not (tmp_path / "r").exists()


@pytest.fixture
def group():
    """A container's cgroup."""
    with Freezer(1) as group:
        yield group


def test_a_container_is_found_by_its_cgroup_its_id_and_the_beginning_of_its_id(group, serve, record):
    redis = serve("redis")
    group.add(redis.pid)
    for target in (
        ("--cgroup", group.path),
        ("--cgroup", group.name),
        ("--container", group.path.name),
        ("--container", "ffffffffffff"),
    ):
        (found,) = record(*target).stop().manifest["targets"]
        assert {name: found[name] for name in ("pid", "cgroup", "cgroup_of")} == {
            "pid": redis.pid,
            "cgroup": group.name,
            "cgroup_of": "container ffffffffffff",
        }, target


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (["--container", "nobody-has-this-name"], "no process is in a container nobody-has-this-name"),
        (["--cgroup", "/no/such"], "no process is in the cgroup /no/such"),
    ],
    ids=["container", "cgroup"],
)
def test_a_container_that_does_not_exist_is_exit_status_3(tmp_path, target, why):
    ended = run_program(program("forktail-record"), *target, "-o", tmp_path / "r")
    assert ended.status == 3
    assert why in ended.err


def test_several_servers_are_recorded_at_once_found_by_port_and_socket(serve, tmp_path):
    one, two = serve("redis", tcp=True), serve("redis")

    def recorded(name, *targets):
        path = tmp_path / name
        ended = run_program(program("forktail-record"), *targets, "-o", path, "--duration", "300ms")
        return ended.status, {target["pid"] for target in Recording(path).manifest.get("targets", [])}

    assert recorded("run/r", "--port", one.port, "--unix", two.socket) == (0, {one.pid, two.pid})
    assert recorded("made/for/it", "--pid", one.pid) == (3, set())  # only the last directory is made


def test_all_processes_of_a_name_are_recorded(background, record, program_called):
    name = f"named-{os.getpid()}"  # no other test's
    words = program_called(name, "sleep"), 600
    pids = {background(*words).pid, background(*words).pid}
    r = record("--name", name, "--duration", "300ms").finished()
    assert {target["pid"] for target in r.manifest["targets"]} == pids


def test_which_of_several_targets_ended_and_when_is_printed_and_recorded(redis, serve, record):
    ends = serve("redis")
    recorder = record("--pid", redis.pid, "--pid", ends.pid)
    kill(ends)
    redis.ask("PING")
    r = recorder.stop()
    assert f"redis-server ({ends.pid}) exited after " in recorder.err
    assert f"({redis.pid}) exited" not in recorder.err
    (ended,) = r.summary["ended"]
    assert ended["pid"] == ends.pid
    threads = {tid: thread for (tid, _), thread in r.threads.items()}
    assert threads[ends.pid].flags & ft.THREAD_ENDED
    assert threads[ends.pid].end_ns <= ended["t_ns"]
    assert not threads[redis.pid].flags & ft.THREAD_ENDED
    assert [note["pid"] for note in r.notes if note["kind"] == "target-ended"] == [ends.pid]
    explained = forktail("explain", r.path, "--all")
    assert f"redis-server ({ends.pid}) exited at +" in explained.out, explained.err


def test_the_end_of_a_target_is_reported_in_printable_text_whatever_its_name(background, record, program_called):
    name, printed = b"\x1b]52;c;Q\a\n\xff".decode(errors="surrogateescape"), r"\x1b]52;c;Q\x07\x0a\xff"
    ends, stays = background(program_called(name, "sleep"), 600), background("sleep", 600)
    recorder = record("--pid", ends.pid, "--pid", stays.pid)
    assert recorder.err.startswith(f"recording {printed} (")
    ends.close()
    time.sleep(0.3)
    r = recorder.stop()
    assert f"{printed} ({ends.pid}) exited after" in recorder.err
    assert "\x1b" not in recorder.err
    assert "\ufffd" not in recorder.err  # what is not UTF-8 is read as this
    assert isinstance(r.manifest["targets"][0]["comm"], str)
