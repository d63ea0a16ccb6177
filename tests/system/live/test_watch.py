# SPDX-License-Identifier: MIT
"""`forktail watch` in a real terminal: tmux, whose screen can be read. A real server, a recorder with a ring, and a
known stall. The test sends keys and compares the screen with what happened.
"""

import itertools
import json
import re
import shlex
import shutil
import time

import pytest

from forktail.programs import program
from harness import eventually, forktail, needs, needs_root, run_program
from processes import Closing

COLOURS, NO_COLOURS = "TERM=tmux-256color", "TERM=tmux-256color NO_COLOR=1"
DEBUG = ("--enable-debug-command", "yes")


def in_a_terminal(test):
    """Marks a test that records and reads a terminal's screen."""
    for mark in (needs_root, needs("tmux"), pytest.mark.quiet):
        test = mark(test)
    return test


def holds(text, *parts):
    """The screen has all these texts, if need be with a line break between two words."""
    flat = "".join(f"{word} " for word in text.split())
    return all(part in text or part in flat for part in parts)


def clock(screen):
    """The time in the title: "12:34:56"; "" without one."""
    found = re.search("(.{8}) UTC", screen.partition("\n")[0])
    return found[1] if found else ""


class Screen(Closing):
    """A terminal of 80 columns and 24 rows in which a command runs. socket: a path for tmux."""

    def __init__(self, command, socket):
        self._socket = socket
        self._tmux("new-session", "-d", "-s", "w", "-x", 80, "-y", 24, command)

    def _tmux(self, *words):
        all_words = ["tmux", "-u", "-f", "/dev/null", "-S", self._socket, *words]
        return run_program(*all_words, env={"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}, timeout=10).out

    def press(self, *keys):
        for key in keys:
            self._tmux("send-keys", "-t", "w", key)

    def resize(self, columns, rows):
        self._tmux("resize-window", "-t", "w", "-x", columns, "-y", rows)

    @property
    def text(self):
        return self._tmux("capture-pane", "-p", "-t", "w")

    @property
    def is_coloured(self):
        """It has a text in colour. tmux resets colours with 39 and 49."""
        return bool(re.search("\033\\[3(?!9m)", self._tmux("capture-pane", "-e", "-p", "-t", "w")))

    def becomes(self, wanted, timeout=10):
        """Waits until wanted(text) is true, and returns the screen's text."""
        text = ""

        def look():
            nonlocal text
            text = self.text
            return wanted(text) or time.sleep(0.05)

        assert eventually(look, timeout), text
        return text

    def shows(self, *parts, timeout=15):
        """Waits until all texts are on the screen, and returns its text."""
        return self.becomes(lambda text: holds(text, *parts), timeout)

    def close(self):
        self._tmux("kill-server")


@pytest.fixture
def watching(tmp_path, closing):
    """watching(ring): a Screen with `forktail watch`. environment: of the command. Its pager writes to `explained`, its
    errors go to `err` and its exit status to `ended`."""
    sockets = map("tmux{}".format, itertools.count())

    def start(ring, environment=COLOURS, *options):
        words = shlex.join(map(str, [program("forktail"), "watch", ring, *options, "--snapshots", tmp_path]))
        pager = f"PAGER='cat >{tmp_path}/explained'"
        command = f"env LC_ALL=C.UTF-8 {environment} {pager} {words} 2>{tmp_path}/err; echo $? >{tmp_path}/ended"
        return closing(Screen(command, tmp_path / next(sockets)))

    return start


@pytest.fixture
def keep(record, tmp_path):
    """keep(*redis): a recorder with a ring, whose path is .path."""

    def start(*servers, options=()):
        pids = [word for one in servers for word in ("--pid", one.pid)]
        return record("--keep", "5m", *pids, *options, path=tmp_path / "ring")

    return start


def becomes(path, wanted=bool, timeout=10):
    """Waits until a file's text is as wanted, and returns it."""
    text = eventually(lambda: path.exists() and wanted(path.read_text()) and path.read_text(), timeout)
    assert text, path
    return text


@in_a_terminal
def test_a_stall_is_on_the_screen_with_its_evidence_keys_move_through_time_and_sizes_change(
    serve, keep, watching, tmp_path
):
    redis = serve("redis", *DEBUG)
    recorder = keep(redis)
    screen = watching(recorder.path)
    screen.shows("redis-server", "iterations", "recorder", "q quit")
    redis.ask("DEBUG", "SLEEP", "0.25")
    redis.ask("BGSAVE")

    # The stall is the minute's longest iteration, and its parts are printed.
    text = screen.shows("longest iteration of the minute: ", "25", "sleep 25", "live")
    assert max(map(len, text.splitlines())) <= 80

    # Its second: frozen, the bars' cause and the strip's pointer.
    screen.press("w")
    text = screen.shows("FROZEN", "! sleep", "longest 25")
    assert screen.is_coloured  # stalls are
    at = clock(text)
    assert len(at) == 8
    assert at in next(line for line in text.splitlines() if "longest iteration per second" in line)
    time.sleep(2.5)
    text = screen.text
    assert clock(text) == at
    assert holds(text, "longest 25")

    # Two seconds earlier (it may have begun in the second before) it is absent. Forward again it is there.
    screen.press("Left", "Left")
    screen.becomes(lambda text: clock(text) < at and not holds(text, "! sleep"))
    screen.press("Right", "Right")
    screen.becomes(lambda text: clock(text) == at and holds(text, "! sleep"))
    screen.press("Home")
    screen.becomes(lambda text: clock(text) < at)
    screen.press("w", "End")
    screen.shows("live")
    screen.press("Space")
    screen.shows("FROZEN")
    screen.press("p")
    screen.shows("live")

    screen.press("?")
    screen.shows("freeze or resume")
    screen.press("?")
    screen.shows("q quit", "longest iteration of the minute:")

    screen.resize(60, 15)
    text = screen.shows("longest iteration of the minute:", "e explain  ? help")
    assert len(text.splitlines()) <= 15
    screen.resize(200, 50)
    screen.shows("s snapshot  ? help")
    text = screen.becomes(lambda text: len(text.splitlines()) > 40)
    assert holds(text, "longest iteration of the minute:")

    # Explain, for the stall's second, in the pager. Also a snapshot.
    screen.press("w")
    screen.shows("! sleep")
    screen.press("e")
    assert "sleep" in becomes(tmp_path / "explained", timeout=20)
    screen.press("s")
    screen.shows(f"snapshot {tmp_path}")
    assert len(list(tmp_path.glob("forktail-2*/run.json"))) == 1

    # The recorder ends, another one continues in the ring.
    assert recorder.interrupt(30).status == 0
    screen.press("End")
    screen.shows("no recorder: no data for", "the recorder ended")
    keep(redis)
    screen.shows("a recorder started", "recorder CPU", timeout=25)

    screen.press("q")
    assert becomes(tmp_path / "ended") == "0\n"
    assert (tmp_path / "err").read_text() == ""


@in_a_terminal
def test_a_terminal_without_colour_or_unicode_and_no_terminal(serve, keep, watching, tmp_path):
    redis = serve("redis", *DEBUG)
    ring = keep(redis).path
    redis.ask("DEBUG", "SLEEP", "0.1")
    screen = watching(ring, "TERM=vt100", "--ascii")
    screen.shows("longest iteration of the minute: ", "sleep 10")
    screen.press("w")
    assert screen.shows("! sleep").isascii()
    assert not screen.is_coloured
    screen.press("q")
    becomes(tmp_path / "ended", "0\n".__eq__)

    # NO_COLOR on a terminal that has them.
    screen = watching(ring, NO_COLOURS)
    screen.shows("sleep 10")
    assert not screen.is_coloured
    for number in (42, 43):
        assert forktail("mark", ring, f"deploy {number}").status == 0
        screen.shows(f": mark: deploy {number}")
    screen.close()

    # A relative of xterm of which this host has no description.
    screen = watching(ring, "TERM=xterm-nowhere")
    screen.shows("sleep 10")
    screen.close()

    dumb = {"TERM": "dumb"}
    once = forktail("watch", ring, "--once", env=dumb)
    assert once.status == 0, once.err
    assert holds(once.out, "iterations", "mark: deploy 43")
    assert "\033" not in once.out

    def figures():
        once = forktail("watch", ring, "--once", "--json", env=dumb)
        assert once.status == 0, once.err
        return json.loads(once.out)

    def is_whole(server):
        parts = [part for thread in server["threads"] if thread["serves"] for part in thread["parts"]]
        return sum(part["ns"] for part in parts) == server["serving_threads"] * 1_000_000_000

    now = figures()
    assert [server["pid"] for server in now["servers"]] == [redis.pid]
    assert now["servers"][0]["worst_of_minute"]["parts"][0]["cause"] == "sleep"
    assert now["recorder"]["recording"] is True
    # Each serving thread's second adds up to a second, but for the one in which the recorder started.
    assert eventually(lambda: is_whole(figures()["servers"][0]))

    refused = forktail("watch", ring, env=dumb)
    assert refused.status == 3
    assert "watch needs a terminal. Use --once" in refused.err
    watching(ring, "TERM=dumb")
    becomes(tmp_path / "err", lambda text: "cannot move its cursor" in text)


@in_a_terminal
def test_two_servers_one_with_terminal_control_sequences_in_its_name(serve, keep, watching, tmp_path):
    hostile, seen = tmp_path / "\033[31mred\nis", "\\x1b[31mred\\x0ais"
    hostile.symlink_to(shutil.which("redis-server"))
    usual = serve("redis", *DEBUG)
    odd = serve("redis", *DEBUG, under=["sh", "-c", 'shift; exec "$0" "$@"', str(hostile)])
    ring = keep(usual, odd).path

    # Each has its own longest iteration.
    screen = watching(ring, NO_COLOURS)
    screen.shows(" of 2, tab]")
    usual.ask("DEBUG", "SLEEP", "0.15")
    odd.ask("DEBUG", "SLEEP", "0.35")
    titles = set()
    for other in ("2", "1"):
        title = screen.shows(" of 2, tab]").splitlines()[0]
        is_odd = seen in title
        assert (f"{seen}:/" if is_odd else "redis-server:/") in title
        screen.shows("sleep 35" if is_odd else "sleep 15", timeout=10)
        assert not screen.is_coloured
        titles.add(title.partition("]")[0])
        assert len(title) <= 80
        screen.press("Tab")
        screen.shows(f"[{other} of 2")
    assert len(titles) == 2

    once = forktail("watch", ring, "--once")
    assert once.status == 0, once.err
    assert "\033" not in once.out
    figures = json.loads(forktail("watch", ring, "--once", "--json").out)
    assert len(figures["servers"]) == 2
    found = [(server["name"], server["pid"]) for server in figures["servers"]]
    assert found.count((f"{seen}:{odd.socket}", odd.pid)) == 1


@pytest.mark.parametrize(
    "words, status, says",
    [
        (["none"], 3, ["cannot find", "forktail record --keep 10m -o"]),
        ([".", "--json"], 2, ["--json needs --once"]),
        ([], 2, []),
        ([".", "--interval", "0"], 2, []),
        ([".", "--once"], 3, ["nothing is recorded in"]),
    ],
)
def test_no_ring_an_empty_one_and_invalid_options(tmp_path, words, status, says):
    refused = forktail("watch", *words, cwd=tmp_path)
    assert refused.status == status
    assert holds(refused.err, *says), refused.err


def test_a_file_that_is_no_recording_is_one_sentence(tmp_path):
    (tmp_path / "text").write_text("this is no recording, whatever it is called, and it is long enough to be one")
    refused = forktail("watch", tmp_path / "text", "--once")
    assert (refused.status, len(refused.err.splitlines())) == (3, 1), refused.err


@in_a_terminal
def test_requests_are_in_the_header_and_the_key_c_lists_the_slowest_clients(serve, keep, background, watching):
    redis = serve("redis")
    ring = keep(redis, options=["--requests=1/1"]).path
    background("redis-benchmark", "-s", redis.socket, "-t", "get", "-n", 100_000_000, "-c", 2, "-q")
    screen = watching(ring)
    screen.shows("requests ", "/s  p99 ", " in the server", "c clients")
    screen.press("c")
    text = screen.shows("slowest clients of the minute", "redis-benchmark", "100 %")
    assert not holds(text, "longest iteration of the minute")
    assert max(map(len, text.splitlines())) <= 80
    screen.press("c")
    screen.shows("longest iteration of the minute")
