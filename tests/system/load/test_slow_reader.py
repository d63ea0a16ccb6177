# SPDX-License-Identifier: MIT
"""A server that answers while it is still reading: the load's next bytes follow those that the kernel has not accepted
yet, byte by byte, with one server and with several.
"""

import re
import time
from collections import Counter

import pytest

from fake import all_slots
from harness import ft

VALUE_BYTES = 1_000_000
COMMAND_TABLE = b"*1\r\n*6\r\n$3\r\nset\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n"


class BrokenCommand(Exception):
    """The bytes are no command, or a word does not have the announced length."""


def commands(peer):
    """The commands that arrive, as lists of words, until the other side closes. Takes a while for each 64 KB."""
    data = bytearray()

    def take(count):
        while len(data) < count:
            more = peer.hear()
            if not more:
                raise EOFError
            data.extend(more)
            time.sleep(0.002)
        taken = bytes(data[:count])
        del data[:count]
        return taken

    def number(mark):
        line = take(4)
        while not line.endswith(b"\r\n"):
            line += take(1)
        if not re.fullmatch(mark + rb"\d{1,9}\r\n", line):
            raise BrokenCommand(line)
        return int(line[1:])

    def word():
        text = take(number(rb"\$") + 2)
        if not text.endswith(b"\r\n"):
            raise BrokenCommand(text)
        return text[:-2]

    try:
        while True:
            yield [word() for _ in range(number(rb"\*"))]
    except EOFError:
        pass


class SlowReader:
    """A replica's primary, or a whole cluster. seen: "SET", "WAIT" or "odd" for each such command."""

    def __init__(self, fake_server):
        self.seen = []
        self._server = fake_server(self._talk, unix=False)
        self.where = self._server.where

    def _talk(self, peer):
        try:
            for words in commands(peer):
                if not peer.say(self._answer(words)):
                    return
        except BrokenCommand:
            self.seen.append("odd")

    def _answer(self, words):
        if words[0] == b"SET":
            self.seen.append("SET" if len(words) == 3 and len(words[2]) == VALUE_BYTES else "odd")
        if words[0] == b"WAIT":
            self.seen.append("WAIT")
        answers = {
            b"WAIT": b":1\r\n",
            b"COMMAND": COMMAND_TABLE,
            b"CLUSTER": all_slots(self._server.port),
            b"PING": b"+PONG\r\n",
            b"INFO": b"$0\r\n\r\n",
        }
        return answers.get(words[0], b"+OK\r\n")


@pytest.mark.parametrize("more", [[], ["--cluster"]], ids=["one", "cluster"])
def test_a_following_write_comes_after_the_data_that_the_server_has_not_read_yet(fake_server, start_load, more):
    reader = SlowReader(fake_server)
    words = ["-t", "set", "-c", 2, "-P", 4, "-d", VALUE_BYTES, "-n", 16, "--wait", "1,30s"]
    run = start_load(*reader.where, *words, *more).done()
    assert Counter(reader.seen) == {"SET": 16, "WAIT": 16}
    assert run.log.with_status(ft.STATUS_OK) == 16
