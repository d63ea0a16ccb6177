# SPDX-License-Identifier: MIT
"""For tests of the observer: a load that is idle after its first GET, and its recording, which is read meanwhile."""

import time

from harness import Load, Recording, eventually

ROUND = "redis.total_commands_processed"  # every round sends commands


class Observation(Load):
    """An idle load with its observer, which asks the server once per second. words: the server, and more options."""

    def __init__(self, directory, *words, **options):
        idle = ["-t", "get", "-c", 1, "--think", "1000s", "-l"]
        super().__init__(directory, *idle, *words, observer=True, **options)

    def so_far(self):
        """The recording, which is written once per second."""
        return Recording(self.log_path)

    def until(self, done):
        """Waits thirty seconds until done() is true, which is not called too often: it may read the recording."""
        assert eventually(lambda: done() or time.sleep(0.1), 30), self.err

    def notes(self, kind):
        return [note for note in self.so_far().notes if note["kind"] == kind]

    def count(self, kind):
        return len(self.notes(kind))

    def await_note(self, kind, least=1):
        """Waits until there are at least so many notes of this kind. Returns them."""
        self.until(lambda: self.count(kind) >= least)
        return self.notes(kind)

    def samples(self, name):
        """Samples of the series of this name."""
        now = self.so_far()
        return now.samples[[now.series[one]["name"] == name for one in now.samples.series.tolist()]]

    def values(self, name):
        return self.samples(name).value.tolist()

    def rounds(self, count, series=ROUND):
        """Waits for so many rounds that end after this call. The series changes every second, as uptime does."""
        start_ns = time.monotonic_ns()
        self.until(lambda: (self.samples(series).t_ns > start_ns).sum() >= count)

    def end(self, status=0):
        """Ends the load, as Ctrl-C does. Returns the complete recording."""
        ended = self.interrupt()
        assert ended.status == status, ended.err
        assert self.log.whole
        return self.log
