# SPDX-License-Identifier: MIT
"""The commands that a Redis server received, in order."""

import re
import threading
from typing import NamedTuple

from forktail.servers.listen import connect_to

_END = "end of what is monitored"
# +1339518083.107412 [0 unix:/tmp/redis.sock] "SET" "a \"b\" \x00"
_LINE = re.compile(r'\S+ \[0 ([^\]]*)\] (".*)')
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Seen(NamedTuple):
    """A command. client: "unix:/path" or "127.0.0.1:1234"."""

    client: str
    words: list[str]


def _unescape(word):
    return word.encode("latin-1").decode("unicode_escape") if "\\" in word else word


class Monitor:
    """MONITOR on a separate connection, read by a thread so that the server never has to buffer much of it."""

    def __init__(self, redis):
        self._redis, self._text = redis, bytearray()
        self._connection = connect_to(redis.instance.endpoint)
        self._connection.settimeout(None)
        self._connection.sendall(b"MONITOR\r\n")
        assert self._connection.makefile("rb", buffering=0).readline() == b"+OK\r\n"
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        start = 0  # the mark is searched in the new text and the end of the old one
        while self._text.find(_END.encode(), start) < 0:
            start = max(0, len(self._text) - 100)
            more = self._connection.recv(1 << 16)
            if not more:
                return
            self._text += more

    def commands(self, *verbs):
        """All commands so far whose first word is one of `verbs`. Ends the monitoring."""
        self._redis.ask("ECHO", _END)
        self._reader.join()
        self._connection.close()
        lines = map(_LINE.fullmatch, self._text.decode("latin-1").split("\r\n"))
        seen = (Seen(line[1], [_unescape(word) for word in _WORD.findall(line[2])]) for line in lines if line)
        return [one for one in seen if one.words[0] in verbs]
