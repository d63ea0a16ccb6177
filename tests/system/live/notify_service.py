# SPDX-License-Identifier: MIT
"""forktail record --config as a service of type notify, on a real redis-server; the manager's end of its messages."""

import socket

from forktail.programs import program
from harness import Program, eventually, forktail
from processes import Closing


class Manager:
    """The end of NOTIFY_SOCKET that a service manager has."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        path.chmod(0o666)  # the guard has changed to the ring's user when it connects

    def heard(self, begin=""):
        """How many messages with this beginning have arrived since the last call. A socket holds ten."""
        count = 0
        while True:
            try:
                count += self._socket.recv(1024).decode().startswith(begin)
            except BlockingIOError:
                return count

    def hears(self, begin, timeout):
        """Waits for a message with this beginning."""
        return eventually(lambda: self.heard(begin), timeout)

    def close(self):
        self._socket.close()


class Service(Closing):
    """The service, which is killed at the end of its `with` block.

    directory: of its configuration; other users can enter it. ring: if it is elsewhere. within: a command that runs the
    recorder.
    """

    def __init__(self, directory, redis, within=(), ring=None):
        self.ring = ring or directory / "ring"
        self._config, self._notify = directory / "record.toml", directory / "notify"
        self._redis, self._within = redis, within
        self.write_config()
        self.manager = Manager(self._notify)
        self.start()

    def write_config(self, more=""):
        self._config.write_text(f"""
[record]
unix = "{self._redis.socket}"
directory = "{self.ring}"
keep = "1m,100MB"
user = "nobody"
light = true
[snapshots]
before = "2s"
after = "500ms"
[control]
socket = "{self.ring}/control"
[[trigger]]
name = "deploy"
{more}""")
        self._config.chmod(0o644)

    def start(self):
        words = [*self._within, program("forktail"), "record", "--config", self._config]
        self.recorder = Program(*words, env={"NOTIFY_SOCKET": str(self._notify), "WATCHDOG_USEC": "3000000"})

    def end(self):
        """Ends it as the manager does. Its exit status."""
        self.recorder.signal(15)
        return self.recorder.wait(20).status

    def await_ready(self):
        assert self.manager.hears("READY=1", 30) == 1, self.recorder.err

    def trigger(self, name):
        """Whether forktail trigger takes a snapshot."""
        return forktail("trigger", self.ring, name).status == 0

    @property
    def snapshots(self):
        """The number of its snapshots with an explanation."""
        return len(list(self.ring.glob("snapshots/*/explain.txt")))

    def close(self):
        self.recorder.close()
        self.manager.close()
