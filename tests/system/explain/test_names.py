# SPDX-License-Identifier: MIT
"""A real server whose names are meant to control the user's terminal. Its program's file, its name and its command
line set a clipboard, clear the screen, begin a line, reverse text and are no UTF-8. It is recorded normally, and none
of that reaches a terminal, a script or a browser.
"""

import json
import os
import shutil

from forktail.servers import find_server
from forktail.text import visible_lines
from harness import explain, forktail, needs_root

pytestmark = needs_root

NAME = b"\x1b]52;c;QQ==\a\n\xff\xc2\x9b\xe2\x80\xaeredis"
COMM = r"\x1b]52;c;QQ==\x07\x0a\xff\xc2"  # the kernel keeps 15 bytes of it as the thread's name


def assert_harmless(text):
    """Everything but newlines is printable. Bytes that are no UTF-8 were read as U+FFFD."""
    assert visible_lines(text) == text
    assert "\ufffd" not in text


def test_a_server_whose_name_has_terminal_control_sequences_is_recorded_and_its_name_is_printable(
    serve, record, tmp_path
):
    path, _ = find_server("redis")
    shutil.copy(os.fsencode(path), os.path.join(os.fsencode(tmp_path), NAME))
    # A plan has only UTF-8: with a shell that becomes the program.
    become = ["sh", "-c", f"exec '{tmp_path}'/*redis \"$@\""]
    redis = serve("redis", "--enable-debug-command", "yes", under=become)
    recorder = record("--pid", redis.pid)
    assert recorder.err.startswith(f"recording {COMM} (")
    redis.ask("DEBUG", "POPULATE", "200000")
    for _ in range(10):  # has own code, so its program's file is in stacks
        redis.ask("EVAL", "return #redis.call('KEYS', '*')", "0")
    redis.ask("DEBUG", "SLEEP", "0.05")
    recording = recorder.stop()
    assert_harmless(recorder.err)

    (target,) = recording.manifest["targets"]
    assert target["pid"] == redis.pid
    assert len(target["listens"]) == 1

    text = forktail("explain", recorder.path, "--all")
    assert text.status == 0, text.err
    assert_harmless(text.out)
    assert COMM in text.out

    printed = forktail("explain", recorder.path, "--json").out
    assert_harmless(printed)
    names = {one["tid"]: one["comm"] for one in explain(recorder.path)["account"]["threads"]}
    assert names[redis.pid] == COMM

    page = tmp_path / "page.html"
    assert forktail("report", recorder.path, "-o", page).status == 0
    html = page.read_bytes()
    for harmful in (b"\x1b", b"\xff", b"\xe2\x80\xae"):
        assert harmful not in html
    inner = html[html.index(b">", html.index(b'id="run"')) + 1 :]
    inner = inner[: inner.index(b"</script")].decode()
    assert_harmless(inner)
    assert "52;c;QQ==" in json.dumps(json.loads(inner))
