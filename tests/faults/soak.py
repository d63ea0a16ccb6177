# SPDX-License-Identifier: MIT
"""A flight recorder for a long time: servers that come and go, a snapshot a minute, requests of clients.

Prints what the recorder, its helpers and the guard held of memory and descriptors in each third of the time. Fails if the last
third is larger than the first by more than a tenth and 4 MB (or 4 descriptors), or if something stays attached.
"""
import argparse
import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from faults import BIN, SKIPPED, Recorder, check, descendants, wait_for

SERVERS = 4
LIVES_S = 20  # a server, on average
PERIOD_S = 5


def figures(recorder):
    """{process: (bytes, descriptors)}. Processes of one name are added: there may be several for a moment."""
    found = collections.defaultdict(lambda: [0, 0])
    for pid in descendants(recorder.process.pid):
        try:
            name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
            found[name][0] += pages * os.sysconf("SC_PAGE_SIZE")
            found[name][1] += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return found


class Server:
    def __init__(self, directory, number):
        self.socket = directory / f"redis-{number}.sock"
        self.words = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", directory]
        self.begin()

    def begin(self):
        self.process = subprocess.Popen([str(w) for w in self.words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_for("redis-server", self.socket.exists)
        self.load = subprocess.Popen([BIN / "forktail-load", "-s", self.socket, "-c", "10", "--rate", "500", "--duration", "1h", "-q",
                                      "--no-observer", "--on-error", "continue"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)

    def end(self):
        for process in (self.load, self.process):
            process.kill()
            process.wait()
        self.socket.unlink(missing_ok=True)


def record(directory, minutes):
    """[(seconds, figures)], and the number of snapshots."""
    ring, samples = directory / "ring", []
    config = directory / "record.toml"
    config.write_text('[control]\nsocket = "control"\n[snapshots]\nkeep = 5\nbefore = "5s"\nafter = "1s"\ncooldown = "1s"\n'
                      '[[trigger]]\nname = "minute"\n'.replace('"control"', f'"{ring}/control"'))
    servers = [Server(directory, number) for number in range(SERVERS)]
    recorder = Recorder(directory, "--name", "redis-server", "--keep", "2m,256MB", "--requests", "--config", config, "-o", ring)
    begun = time.monotonic()
    turn = 0
    try:
        while (now := time.monotonic() - begun) < minutes * 60:
            samples.append((now, figures(recorder)))
            check(recorder.process.poll() is None, recorder.err)
            if turn % (LIVES_S // SERVERS // PERIOD_S or 1) == 0:
                servers[turn % SERVERS].end()
                servers[turn % SERVERS].begin()
            if turn % (60 // PERIOD_S) == 60 // PERIOD_S - 1:
                subprocess.run([BIN / "forktail", "trigger", ring, "minute"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            turn += 1
            time.sleep(max(0, turn * PERIOD_S - (time.monotonic() - begun)))
        recorder.stop()
    finally:
        recorder.process.kill()
        for server in servers:
            server.end()
    return samples, recorder.err.count("snapshot " + str(ring))


def thirds(samples, minutes, name, which):
    """The largest of each third; the first seconds, in which everything starts, count."""
    return [max((s[name][which] for t, s in samples if name in s and third <= 3 * t / (minutes * 60) < third + 1), default=0)
            for third in range(3)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    if os.geteuid() != 0:
        print("skipped: it records, which needs root")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="forktail-soak-") as directory:
        samples, snapshots = record(pathlib.Path(directory), minutes)
    grown = []
    print("process           MB in each third         descriptors")
    for name in sorted({name for _, s in samples for name in s}):
        megabytes = [b / 1e6 for b in thirds(samples, minutes, name, 0)]
        descriptors = thirds(samples, minutes, name, 1)
        print(f"{name:<16} " + "".join(f"{b:8.1f}" for b in megabytes) + "   " + "".join(f"{d:5d}" for d in descriptors))
        if name.startswith("forktail-") and (megabytes[2] > 1.1 * megabytes[0] + 4 or descriptors[2] > descriptors[0] + 4):
            grown.append(name)
    print(f"{minutes:g} minutes, {snapshots} snapshots; nothing is attached afterwards")
    for name in grown:
        print(f"{name} has grown")
    return 1 if grown else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
