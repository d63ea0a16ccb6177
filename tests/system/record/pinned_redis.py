# SPDX-License-Identifier: MIT
"""A redis-server that has a CPU to itself: no other task takes it from it."""

import os

from forktail.servers import Server


class PinnedRedis(Server):
    """Runs on CPU `cpu`, 0 or 1, until its `with` block ends. This test and all that it starts are on the other one."""

    def __init__(self, cpu):
        self._before = os.sched_getaffinity(0)
        super().__init__("redis", cpus=cpu)
        os.sched_setscheduler(self.pid, os.SCHED_FIFO, os.sched_param(10))
        os.sched_setaffinity(0, {1 - cpu})

    def eval(self, script):
        """The words of a client that runs a script."""
        return "redis-cli", "-s", self.socket, "EVAL", script, 0

    def close(self):
        super().close()
        os.sched_setaffinity(0, self._before)


def busy_script(ms, work="n = n + 1"):
    """A Lua script that repeats `work` for a time that the clock alone limits."""
    return (
        "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end "
        f"local till, n, c = now() + {ms}, 0, 0 while now() < till do {work} end return n"
    )
