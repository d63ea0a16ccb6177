# SPDX-License-Identifier: MIT
"""Programs, temporary directories and changes of the host end with their session, however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import TREE
from forktail.failure import Failure
from forktail.host import keeper, machine
from forktail.host.keeper import Leftover
from forktail.host.machine import DiskRoom, choose_size_mb
from forktail.host.memory import limit_memory, remove_group
from forktail.host.network import make_link
from forktail.host.session import Child, Command, Session, Stopped, parse_cpus
from forktail.host.settings import restore_host, set_host
from forktail.host.steering import LOOPBACK_INTERFACE, spread_softirqs
from forktail.host.swap import make_swap, remove_swap

GIB = 1 << 30


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as opened:
        yield opened


def shell(script: str, **more: object) -> Command:
    return Command("the shell", ["sh", "-c", script], **more)  # type: ignore[arg-type]


def finish(session: Session, command: Command) -> Child:
    child = session.start(command)
    session.wait_for_end(child, 0, 10)
    return child


def eventually(condition: Callable[[], object], seconds: float = 20) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def is_gone(pid: int) -> bool:
    """A zombie is gone, too: it only waits for its parent."""
    return machine.first_line(f"/proc/{pid}/stat").rpartition(")")[2][1:2] in ("", "Z", "X")


def text_in(path: Path) -> str:
    assert eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


@contextmanager
def apart(body: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Python code in a separate process, with the package. It is killed at the end."""
    start = f"import sys; sys.path.insert(0, {str(TREE / 'python')!r})\n"
    with subprocess.Popen([sys.executable, "-c", start + body, *arguments]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_lines_and_output(session: Session, tmp_path: Path) -> None:
    lines: list[str] = []
    out = tmp_path / "out"
    out.write_text("before\n")
    child = finish(session, shell(r"printf 'one\rtwo\n\nthree' >&2; echo out", output=str(out), on_line=lines.append))
    assert (lines, out.read_text()) == (["one", "two", "three"], "before\nout\n")
    child.check()
    finish(session, shell("echo more; echo error >&2", output=str(out), err_to_output=True))
    assert out.read_text() == "before\nout\nmore\nerror\n"


def test_long_lines_are_split(session: Session) -> None:
    lines: list[str] = []
    finish(session, shell("head -c 200000 /dev/zero | tr '\\0' x >&2", on_line=lines.append))
    assert sum(map(len, lines)) == 200000 and max(map(len, lines)) <= 2 << 16 and len(lines) > 1


@pytest.mark.parametrize(
    ("script", "how"),
    [
        (
            "for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3",
            "ended with status 3; its last messages:" + "".join(f"\n    line {i}" for i in range(3, 9)),
        ),
        ("kill -9 $$", "was killed by signal 9 (Killed)"),
        ("echo logged; exit 1", "ended with status 1; its last messages:\n    logged"),
    ],
)
def test_how_it_ended(session: Session, tmp_path: Path, script: str, how: str) -> None:
    child = finish(session, shell(script, output=str(tmp_path / "log")))
    with pytest.raises(Failure) as failure:
        child.check()
    assert str(failure.value) == f"the shell {how}"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, " (/nonexistent/program): No such file or directory"),
        ({"cpus": "1-"}, " on CPUs 1-: expected a list such as 0-1,3"),
        ({"cpus": "1000"}, " on CPUs 1000: Invalid argument"),
        ({"cgroup": "/nonexistent"}, " in the cgroup /nonexistent: No such file or directory"),
        ({"output": "/nonexistent/file"}, " (/nonexistent/program): No such file or directory"),
    ],
)
def test_it_does_not_start(session: Session, more: dict[str, str], why: str) -> None:
    with pytest.raises(Failure) as failure:
        session.start(Command("nothing", ["/nonexistent/program"], **more))  # type: ignore[arg-type]
    assert str(failure.value) == f"cannot start nothing{why}"
    assert session.children == []


def test_place_and_environment(session: Session, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = 'grep Cpus_allowed_list /proc/self/status; echo "$ONE"; ps -o pgid= $$; echo $$; readlink /proc/self/fd/0'
    child = finish(session, shell(script, output=str(out), cpus="0", environment={"ONE": "1"}))
    cpus, one, group, pid, stdin = out.read_text().splitlines()
    assert (cpus.split()[1], one, int(group), int(pid), stdin) == ("0", "1", child.pid, child.pid, "/dev/null")


@pytest.mark.parametrize("needed", [False, True])
def test_step_fails_only_when_a_needed_child_ends(session: Session, needed: bool) -> None:
    child = session.start(shell("exit 0"))
    child.needed = needed
    if needed:
        with pytest.raises(Failure, match="^the shell ended with status 0$"):
            session.wait(10)
    else:
        session.wait_for_end(child, 0, 10)


def test_a_wait_ends_at_its_limit(session: Session) -> None:
    child = session.start(shell("exec sleep 1000"))
    with pytest.raises(Failure, match="^the shell did not end within 1 s$"):
        session.wait_for_end(child, 0, 1)
    assert not is_gone(child.pid)


def test_waiting_takes_no_cpu(session: Session) -> None:
    child = session.start(shell("exec sleep 1000"))
    session.step(10)
    cpu, wall = time.process_time(), time.monotonic()
    session.wait(1)
    assert time.process_time() - cpu < 0.005  # 0.5 % of a CPU
    assert 1 <= time.monotonic() - wall < 3
    assert not child.ended


def test_step_returns_when_a_descriptor_is_readable(session: Session) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"x")
    start = time.monotonic()
    session.step(10_000, ours)
    assert time.monotonic() - start < 5
    os.close(ours)
    os.close(theirs)
    with open(os.devnull) as null:
        session.step(10_000, null.fileno())
    assert time.monotonic() - start < 5


def test_closing_ends_children_their_children_and_directories(tmp_path: Path) -> None:
    with Session() as session:
        temp = session.make_temp_directory()
        Path(temp, "data").write_text("x")
        child = session.start(shell(f"sleep 1000 & echo $! >{tmp_path}/pid; wait"))
        grandchild = int(text_in(tmp_path / "pid"))
        assert not is_gone(child.pid) and not is_gone(grandchild)
    assert is_gone(child.pid) and is_gone(grandchild) and not Path(temp).exists()
    session.close()  # once more does nothing


def test_a_childs_death_kills_its_children(session: Session, tmp_path: Path) -> None:
    child = session.start(shell(f"sleep 1000 & echo $! >{tmp_path}/pid; exec sleep 1000"))
    grandchild = int(text_in(tmp_path / "pid"))
    session.wait_for_end(child, signal.SIGKILL, 10)
    assert is_gone(grandchild)


def test_a_released_directory_stays(tmp_path: Path) -> None:
    for name in ("kept", "removed"):
        (tmp_path / name).mkdir()
    with Session() as session:
        for name in ("kept", "removed"):
            session.keeper.keep(Leftover.DIRECTORY, str(tmp_path / name))
        session.keeper.release(Leftover.DIRECTORY, str(tmp_path / "kept"))
    assert os.listdir(tmp_path) == ["kept"]


def test_a_setting_gets_its_first_content_back(tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("original")
    with Session() as session:
        for content in ("original", "changed"):
            session.keeper.keep(Leftover.SETTING, str(setting), content)
            setting.write_text("changed ")
    assert setting.read_text() == "original"


def test_a_size_whose_kernel_uses_a_ratio_comes_back_by_the_ratio(tmp_path: Path) -> None:
    size, ratio = tmp_path / "dirty_bytes", tmp_path / "dirty_ratio"
    size.write_text("0\n")
    ratio.write_text("10\n")
    with Session() as session:
        set_host(session, str(size), "16000000")
        ratio.write_text("")  # the kernel: 0
        assert size.read_text() == "16000000"
        ratio.write_text("0\n")
        set_host(session, str(ratio), "7")  # a later point: the file's value is the session's own
        restore_host(session)  # between points
        assert ratio.read_text().startswith("10")
        set_host(session, str(ratio), "7")
    assert (size.read_text(), ratio.read_text()) == ("16000000", "10")


def test_what_cannot_be_removed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup/file").touch()
    session = Session()
    session.keeper.keep(Leftover.CGROUP, str(tmp_path / "cgroup"))
    with pytest.raises(Failure, match="^cannot remove all processes, temporary files, cgroups and swap of the run$"):
        session.close()


KILLED = """
from forktail.host.session import Command, Session
session = Session()
temp = session.make_temp_directory()
child = session.start(Command("the shell", ["sh", "-c", f"sleep 1000 & echo $! >{sys.argv[1]}/pid; wait"]))
open(sys.argv[1] + "/names", "w").write(f"{child.pid} {session.keeper.pid} {temp}\\n")
session.wait(1000)
"""


@pytest.mark.parametrize("keeper_too", [False, True])
def test_kill_9_leaves_no_process(tmp_path: Path, keeper_too: bool) -> None:
    with apart(KILLED, str(tmp_path)) as process:
        words = text_in(tmp_path / "names").split()
        child, kept, temp = int(words[0]), int(words[1]), Path(words[2])
        grandchild = int(text_in(tmp_path / "pid"))
        assert temp.exists() and not is_gone(child)
        assert eventually(lambda: machine.first_line(f"/proc/{kept}/comm") == "forktail-keeper")
        if keeper_too:
            os.kill(kept, signal.SIGKILL)
        process.kill()
    assert eventually(lambda: is_gone(child))
    assert eventually(lambda: is_gone(kept), 30)
    if keeper_too:  # no process is left that knows of these
        os.kill(grandchild, signal.SIGKILL)
        temp.rmdir()
    else:
        assert is_gone(grandchild) and not temp.exists()


STOPPED = """
from forktail.host.session import Command, Session, Stopped
session = Session(catch_stops=True)
child = session.start(Command("sleep", ["sleep", "1000"]))
open(sys.argv[1] + "/pid", "w").write(f"{child.pid}\\n")
try:
    session.wait_for_end(child, 0, 1000)
except Stopped as stopped:
    assert str(stopped) == "stopped by Terminated" and session.stop_signal == 15
    session.close()
    sys.exit(42)
"""


def test_a_stop_signal_ends_every_wait(tmp_path: Path) -> None:
    with apart(STOPPED, str(tmp_path)) as process:
        child = int(text_in(tmp_path / "pid"))
        start = time.monotonic()
        process.terminate()
        assert process.wait(20) == 42
        assert time.monotonic() - start < 5
    assert is_gone(child)


def test_stops_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    session = Session(catch_stops=True)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Stopped, match="^stopped by Interrupt$"):
            session.step(10_000)
    finally:
        session.close()
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", [0]), ("0-1,3", [0, 1, 3]), ("2,0", [2, 0]), ("", None), ("1-", None), ("3-1", None), ("a",
    None),
                       ("-1", None), ("1,", None), ("1024", None), ("+1", None)],
)  # fmt: skip
def test_cpu_lists(text: str, cpus: list[int] | None) -> None:
    if cpus is None:
        with pytest.raises(ValueError):
            parse_cpus(text)
    else:
        assert parse_cpus(text) == cpus


@pytest.mark.parametrize(
    ("kind", "size", "directory", "why"),
    [
        ("floppy", 1 << 20, "", "unknown kind of swap floppy: use zram or file"),
        ("file", 0, "", "swap of 0 bytes is too little"),
        ("file", 1 << 43, "", "cannot create swap of 8796093022208 bytes in {directory}/forktail-swap-"),
        ("file", 1 << 20, "/dev/shm",
         "cannot swap to a file in /dev/shm: it is in memory. Set TMPDIR to a directory on a disk."),
    ],
)  # fmt: skip
def test_impossible_swap(session: Session, tmp_path: Path, kind: str, size: int, directory: str, why: str) -> None:
    directory = directory or str(tmp_path)
    before = os.listdir(directory)
    with pytest.raises(Failure) as failure:
        make_swap(session, kind, size, directory)
    assert str(failure.value).startswith(why.format(directory=directory))
    assert os.listdir(directory) == before


def test_steering_needs_an_interface(session: Session) -> None:
    with pytest.raises(Failure, match="^cannot spread the soft interrupts of nonesuch0: it has no receive queues$"):
        spread_softirqs(session, Path("/sys/class/net/nonesuch0"), "on")


def test_steering_is_restored() -> None:
    file = "/sys/class/net/lo/queues/rx-0/rps_cpus"
    if not os.access(file, os.W_OK) or not machine.first_line(file):
        pytest.skip("no receive steering of lo here")
    before = machine.first_line(file)
    with Session() as session:
        spread_softirqs(session, LOOPBACK_INTERFACE, "0")
        assert int(machine.first_line(file).replace(",", ""), 16) == 1
        spread_softirqs(session, LOOPBACK_INTERFACE, "on")
        assert int(machine.first_line(file).replace(",", ""), 16) != 0
        spread_softirqs(session, LOOPBACK_INTERFACE, "off")
        assert int(machine.first_line(file).replace(",", ""), 16) == 0
    assert machine.first_line(file) == before


LIMITED = """
from forktail.host.memory import limit_memory
from forktail.host.session import Command, Session
session = Session()
path = limit_memory(session, "unit", 64 << 20)
session.start(Command("sleep", ["sleep", "1000"], cgroup=path))
open(sys.argv[1] + "/path", "w").write(path + "\\n")
session.wait(1000)
"""


def test_memory_limits_end_with_the_session_or_before(session: Session, tmp_path: Path) -> None:
    try:
        path = limit_memory(session, "unit", 64 << 20)
    except Failure as why:
        if os.geteuid() == 0 and "this host has no cgroup" not in str(why):
            raise
        pytest.skip(str(why))
    child = session.start(Command("sleep", ["sleep", "1000"], cgroup=path))
    other = session.start(Command("sleep", ["sleep", "1000"]))
    Path(path, "cgroup.procs").write_text(str(other.pid))
    assert set(Path(path, "cgroup.procs").read_text().split()) == {str(child.pid), str(other.pid)}
    session.end_children()
    remove_group(session, path)
    assert not Path(path).exists()
    with apart(LIMITED, str(tmp_path)) as process:
        path = text_in(tmp_path / "path")
        assert Path(path).is_dir()
        process.kill()
    assert eventually(lambda: not Path(path).exists(), 30)


@pytest.mark.parametrize("kind", ["file", "zram"])
def test_swap_is_used_and_removed(tmp_path: Path, kind: str) -> None:
    def swaps() -> list[str]:
        return [line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]]

    before = swaps()
    with Session() as session:
        try:
            device = make_swap(session, kind, 1 << 20, str(tmp_path))
        except Failure as why:
            if os.geteuid() == 0 and not re.search("module is not loaded|it is in memory", str(why)):
                raise
            pytest.skip(str(why))
        assert swaps() == [*before, device]
        remove_swap(session, device)
        assert swaps() == before and not Path(device).exists()
        device = make_swap(session, kind, 1 << 20, str(tmp_path))
    assert swaps() == before and not Path(device).exists()


def test_undoing_twice_is_no_failure(tmp_path: Path) -> None:
    keeper.remove_cgroup(str(tmp_path / "cgroup"))
    keeper.remove_swap_device(str(tmp_path / "swap"))
    with pytest.raises(FileNotFoundError):
        keeper.write_setting(str(tmp_path / "setting"), "1")


def test_a_network_namespace_that_cannot_be_made(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ip", "tc", "nsenter", "unshare"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho unshare failed: Operation not permitted >&2\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(Failure, match=r"network ended with status 1; .*\n    unshare failed: Operation not permitted"):
        make_link(session, "100mbit", 1 << 20)


@pytest.mark.parametrize(
    ("wanted", "available", "room", "size", "why"),
    [
        (1024, 3 * GIB, DiskRoom(4 * GIB), 1024, ""),
        (1024, 3 * GIB - 1, DiskRoom(100 * GIB), 1023,
         "only 3.22 GB of memory are available, but 3 times the size of the data set is needed"),
        (1024, 0, DiskRoom(100 * GIB), 0,
         "only 0 B of memory are available, but 3 times the size of the data set is needed"),
        (1024, 100 * GIB, DiskRoom(GIB), 256,
         "only 1.07 GB of temporary disk space are free, but 4 times the size of the data set is needed"),
        (1024, 7 * GIB, DiskRoom(100 * GIB, True), 1024, ""),
        (1024, 3 * GIB, DiskRoom(100 * GIB, True), 438,
         "only 3.22 GB of memory are available, but 7 times the size of the data set is needed"),
        (10, 3 * 63 << 20, DiskRoom(4 * GIB), 10, ""),
    ],
)  # fmt: skip
def test_size_of_a_data_set(wanted: int, available: int, room: DiskRoom, size: int, why: str) -> None:
    assert choose_size_mb(wanted, available, room) == (size, why)


def test_too_little_for_an_experiment_is_nothing() -> None:
    assert [choose_size_mb(1024, 3 * mb << 20, DiskRoom(4 * GIB))[0] for mb in (63, 64)] == [0, 64]


def test_this_machine() -> None:
    assert machine.host_name() and machine.kernel_release() and machine.cpu_name().endswith(" CPUs")
    assert machine.available_memory_bytes() > 1 << 20
    assert machine.room_in("/").free_bytes > 0
    assert machine.room_in("/nonexistent").free_bytes == 0
    assert machine.find_program("sh").endswith("/sh") and machine.find_program("nonesuch-program") == ""
