# SPDX-License-Identifier: MIT
"""Recordings that `forktail` supervises: while a command runs, with a line on a terminal, and for an incident."""

import os
import pty
import re
import select
import signal
import subprocess
import time

from forktail.programs import program
from harness import Recording, forktail, needs, needs_root, run_program

pytestmark = needs_root


def on_terminal(words, seconds=30):
    """Runs words on a terminal of 60 columns, and returns the exit status and all that was printed."""
    leader, follower = pty.openpty()
    with subprocess.Popen(["stty", "cols", "60"], stdin=follower) as narrow:
        narrow.wait()
    child = subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower, start_new_session=True)
    os.close(follower)
    printed, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if not select.select([leader], [], [], 0.2)[0]:
            if child.poll() is not None:
                break
            continue
        try:
            printed += os.read(leader, 65536)
        except OSError:
            break
    os.close(leader)
    return child.wait(10), printed.decode()


def test_a_server_is_recorded_while_a_command_runs_whose_output_and_status_are_its_own(redis, tmp_path):
    path = tmp_path / "server.forktail"
    ran = forktail(
        "record", "--unix", redis.socket, "-o", path, "--", "sh", "-c", f"redis-cli -s {redis.socket} ping; exit 7"
    )
    assert (ran.status, ran.out) == (7, "PONG\n"), ran.err
    assert re.search(r"recorded [0-9.]+ s \(signal\)", ran.err)
    assert "event-loop iteration" in ran.err  # the explanation
    assert not Recording(path).damage.no_trailer


@needs("redis-server")
def test_the_servers_of_the_command_are_recorded_if_no_target_is_named(tmp_path):
    recorded = "until [ -s server.forktail ]; do sleep 0.1; done; sleep 2"
    line = f"redis-server --port 0 --unixsocket r.sock --save '' & {recorded}; redis-cli -s r.sock ping; kill $!; wait"
    ran = forktail("record", "--", "sh", "-c", line, cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert "recording redis-server (" in ran.err
    assert (tmp_path / "server.forktail").exists()  # the default


def test_a_command_without_a_server_is_no_target(tmp_path):
    ran = forktail("record", "--", "true", cwd=tmp_path)
    assert (ran.status, ran.out) == (3, "")
    assert "none of the command's processes listened on a socket" in ran.err
    assert not list(tmp_path.iterdir())


def test_a_recorder_that_refuses_starts_no_command(tmp_path):
    ran = forktail("record", "--pid", "4194303", "-o", "x", "--", "touch", "ran", cwd=tmp_path)
    assert ran.status == 3 and "no process 4194303" in ran.err
    assert not list(tmp_path.iterdir())


def test_a_server_of_the_command_ends_with_a_recorder_that_refuses(tmp_path):
    server = ["redis-server", "--port", "0", "--unixsocket", tmp_path / "s", "--save", ""]
    (tmp_path / "out").mkdir()  # no recording can have this name
    ran = forktail("record", "-o", tmp_path / "out", "--", *server, cwd=tmp_path)
    assert ran.status == 3 and "cannot create" in ran.err
    assert not run_program("pgrep", "-f", tmp_path / "s").out


def test_an_earlier_recording_is_renamed(redis, tmp_path):
    path, old = tmp_path / "server.forktail", tmp_path / "server.forktail.old"
    sizes = []
    for _ in range(3):
        ran = forktail("record", "--unix", redis.socket, "-o", path, "--duration", "200ms")
        assert ran.status == 0, ran.err
        assert (f"the earlier recording is now {old}\n" in ran.err) == bool(sizes)
        if sizes:
            assert old.stat().st_size == sizes[-1]
        sizes.append(path.stat().st_size)
    old.write_text("precious")
    refused = forktail("record", "--unix", redis.socket, "-o", path, "--duration", "200ms")
    assert refused.status == 3 and "cannot be renamed to *.old" in refused.err
    assert (old.read_text(), path.stat().st_size) == ("precious", sizes[-1])


def test_start_at_is_when_the_recording_begins(redis, tmp_path):
    path = tmp_path / "server.forktail"
    at = time.time() + 2
    ran = forktail("record", "--unix", redis.socket, "-o", path, "--start-at", f"{at:.3f}", "--duration", "100ms")
    assert ran.status == 0, ran.err
    assert time.time() >= at
    late = forktail("record", "--unix", redis.socket, "-o", path, "--start-at", "5", "--duration", "100ms")
    assert late.status == 0 and "--start-at was" in late.err


def test_on_a_terminal_a_line_shows_what_happens_and_the_answer_is_the_last_word(redis, tmp_path):
    path = tmp_path / "server.forktail"
    words = [program("forktail"), "record", "--unix", redis.socket, "-o", path, "--duration", "4s"]
    status, printed = on_terminal([*map(str, words)])
    assert status == 0, printed
    lines = re.findall(r"\r([^\r\n]*)\x1b\[K", printed)
    assert any(re.match(r"\d+ s: ", line) for line in lines), printed
    assert max(len(line) for line in lines) < 60
    assert re.search(r"recorded [0-9.]+ s \(duration\)[^\r\n]*\r\n", printed)
    assert f"forktail explain {path} has the details" in " ".join(printed.split())


def test_doctor_of_a_server_explains_and_leaves_nothing(redis, tmp_path):
    words = ["--unix", redis.socket, "--duration", "500ms"]
    ran = forktail("doctor", *words, env={"TMPDIR": str(tmp_path)})
    assert ran.status == 0, ran.err
    assert "event-loop iteration" in ran.out
    assert not list(tmp_path.iterdir())
    refused = forktail("doctor", *words, "-o", tmp_path / "x")
    assert refused.status == 2 and "leaves no recording behind" in refused.err


def test_doctor_that_is_interrupted_explains_what_it_has(redis, background, tmp_path):
    words = [program("forktail"), "doctor", "--unix", redis.socket, "--duration", "1h"]
    doctor = background(*words, env={"TMPDIR": str(tmp_path)})
    end = time.monotonic() + 30
    while "recording " not in doctor.err and time.monotonic() < end:
        time.sleep(0.1)
    redis.ask("EVAL", "for i = 1, 1e6 do end", "0")  # something to explain
    doctor.signal(signal.SIGINT)
    ended = doctor.wait()
    assert ended.status == 0, ended.err
    assert "event-loop iteration" in ended.out
    assert not list(tmp_path.iterdir())
