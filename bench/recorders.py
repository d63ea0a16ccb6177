# SPDX-License-Identifier: MIT
"""The recorders that bench/overhead measures: forktail-record with the options of a profile, and other programs that
record something similar.

Each starts on a server, reports when it records, and is ended with SIGINT, as a user ends it. Another program consists
of parts, one process each. A part that does not start is skipped and its own error is printed; without any part the
program is absent. A part records once its perf events and BPF links are open and their number no longer grows. Its
output shows whether it did record.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import quiet
from bench import blocks

BENCH = os.path.dirname(os.path.abspath(__file__))
START_S, STOP_S, SETTLE_S = 20, 30, 0.3
MANIFEST, DROP, COST, SUMMARY = 1, 9, 10, 16  # recording/include/recording/recording.h


class Absent(Exception):
    """The recorder cannot run here; the message says why."""


def json_blocks(path, kind):
    return [json.loads(payload.rstrip(b"\0")) for _, payload in blocks(path, kind)]


def dropped(path):
    """The sum of the drop records (struct ft_drop), each of which counts from zero."""
    total = 0
    for size, payload in blocks(path, DROP):
        total += sum(int.from_bytes(payload[at + 16:at + 24], "little") for at in range(0, len(payload), size))
    return total


def last_words(text):
    """The most useful line of an error, for a table: the last one that reports a failure, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"fail|error|can't|cannot|unrecognized|unknown", line, re.I)]
    return (telling[:1] or lines[-1:] or ["it ended without a message"])[0].replace("|", "/")


class Profile:
    """forktail-record with the options of a profile."""

    def __init__(self, name, program, options):
        self.name, self.program, self.options = name, program, options
        self.ours = True

    def start(self, server, directory, **how):
        return Recording(self, server, os.path.join(directory, f"{self.name}.forktail"), **how)


class Recording:
    def __init__(self, profile, server, path, **how):
        self.path = path
        self.process = subprocess.Popen([profile.program, "--pid", str(server), "-o", path, *profile.options],
                                        stderr=subprocess.PIPE, text=True, **how)
        message = self.process.stderr.readline()
        if not message.startswith("recording "):
            message += self.process.communicate()[1]
            raise Absent(last_words(message))
        self.pids = [self.process.pid]

    def bytes(self):
        return os.path.getsize(self.path)

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        """Ends it. Returns what it reports about itself."""
        self.process.send_signal(signal.SIGINT)
        try:
            message = self.process.communicate(timeout=STOP_S)[1]
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"forktail-record did not end within {STOP_S} s")
        if self.process.returncode or not json_blocks(self.path, SUMMARY):
            raise RuntimeError(f"forktail-record failed ({self.process.returncode}): {last_words(message)}")
        # A short recording may have no such block.
        programs = [p for cost in json_blocks(self.path, COST)[-1:] for p in cost["programs"]]
        seconds = (json_blocks(self.path, SUMMARY)[-1]["end_ns"] - json_blocks(self.path, MANIFEST)[0]["start_ns"]) / 1e9
        return {"drops": str(dropped(self.path)), "programs": programs, "seconds": seconds}


class Part:
    """One process of another program. `argv` uses {pid} for the server, {dir} for its output directory and {bt} for our
    bpftrace script. `proof` is a pattern in its output if it recorded something."""

    def __init__(self, argv, proof, asked):
        self.argv, self.proof, self.asked = argv.split(), proof, asked


class Peer:
    def __init__(self, name, package, parts, lacks):
        self.name, self.package, self.parts, self.lacks = name, package, parts, lacks
        self.absent = {}  # part -> why it cannot run here
        self.ours = False

    def start(self, server, directory):
        running = Peering(self, server, directory)
        self.absent.update(running.absent)  # a part that failed to start once is not tried again
        if not running.running:
            raise Absent("; ".join(f"{part.argv[0]}: {why}" for part, why in self.absent.items()))
        return running


class Peering:
    """Another program while it records."""

    def __init__(self, peer, server, directory):
        self.peer, self.directory = peer, directory
        self.absent, self.running = {}, []  # part -> why; (part, process, its output)
        try:
            for part in peer.parts:
                if part not in peer.absent:
                    self.launch(part, server)
            for entry in list(self.running):
                self.await_ready(entry)
        except BaseException:
            self.kill()
            raise
        self.pids = [process.pid for _, process, _ in self.running]

    def launch(self, part, server):
        if not shutil.which(part.argv[0]):
            self.absent[part] = f"not installed (Debian: {self.peer.package})"
            return
        argv = [word.format(pid=server, dir=self.directory, bt=os.path.join(BENCH, "overhead.bt")) for word in part.argv]
        output = open(os.path.join(self.directory, f"{part.argv[0]}.out"), "w+")
        process = subprocess.Popen(argv, stdout=output, stderr=output, cwd=self.directory)
        self.running.append((part, process, output))

    def await_ready(self, entry):
        part, process, output = entry
        end, since, count = time.monotonic() + START_S, time.monotonic(), 0
        while process.poll() is None and time.monotonic() < end:
            now = hooks(process.pid)
            if now != count:
                since, count = time.monotonic(), now
            if count and time.monotonic() > since + SETTLE_S:
                return
            time.sleep(0.02)
        message = text_of(output) if process.poll() is not None else f"it attached nothing within {START_S} s"
        self.running.remove(entry)
        self.absent[part] = last_words(message)
        process.kill()
        process.wait()
        output.close()

    def bytes(self):
        return sum(os.path.getsize(os.path.join(self.directory, name)) for name in os.listdir(self.directory))

    def kill(self):
        for _, process, output in self.running:
            process.kill()
            process.wait()
            output.close()

    def stop(self):
        for _, process, _ in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        drops = []
        for part, process, output in self.running:
            end_process(process)
            message = text_of(output)
            output.close()
            if not re.search(part.proof, message):
                raise RuntimeError(f"{' '.join(part.argv)} recorded nothing: {last_words(message)}")
            drops += re.findall(r"lost (\d+ (?:events|chunks))|Lost (\d+ events)", message, re.I)
        return {"drops": ", ".join("".join(d) for d in drops) or "none reported", "bytes": self.bytes()}


def text_of(output):
    output.flush()
    output.seek(0)
    return output.read()


def end_process(process):
    """Waits for a process that was asked to end."""
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def hooks(pid):
    """How many perf events, BPF programs and links it has open."""
    count = 0
    for each in quiet.tree([pid]):
        for fd in quiet.names(f"/proc/{each}/fd"):
            try:
                link = os.readlink(f"/proc/{each}/fd/{fd}")
            except OSError:
                continue
            count += bool(re.match(r"anon_inode:\[?(perf_event|bpf_link|bpf-link|bpf-prog)", link))
    return count


OPTIONS = {
    "default": [],
    "light": ["--light"],
    "softirqs-exact": ["--softirqs=exact"],
    "no-softirqs": ["--softirqs=none"],
    "exact": ["--exact"],
    "no-samples": ["--no-samples"],
    "requests": ["--requests=1/1"],
    "requests-16": ["--requests=1/16"],
}
WITH_SOFTIRQS = ("default", "exact", "requests", "requests-16")  # timed or sampled, as the recorder decides
PERF_PROOF = r"Captured and wrote .* \([1-9]\d* samples"
PEERS = [
    Peer("perf-record", "linux-perf",
         [Part("perf record -F 999 -g -p {pid} -o {dir}/perf.data", PERF_PROOF, "stacks of the server, 999 a second")],
         "what the server waited for, faults, soft interrupts by vector, fsync: it has what ran only"),
    Peer("perf-sched", "linux-perf",
         [Part("perf sched record -o {dir}/perf.data", PERF_PROOF, "every switch and wake-up of the host")],
         "why it slept, faults, soft interrupts, fsync, what code ran"),
    Peer("bpftrace", "bpftrace",
         [Part("bpftrace {bt} {pid}", r"@run_queue_ns",
               "bench/overhead.bt: histograms of run-queue latency, soft interrupts by vector and fsync, a count of page faults")],
         "when: histograms of the whole time. Children and other threads, what took a fault's time, who held the CPU, what code ran"),
    Peer("libbpf-tools", "libbpf-tools",
         [Part("runqlat -p {pid}", r"usecs", "a histogram of run-queue latency"),
          Part("softirqs -d", r"softirq = ", "histograms of soft interrupts by vector, of the whole host"),
          Part("offcputime -p {pid}", r"redis-server", "time off the CPU by stack"),
          Part("fsdist -t ext4 -p {pid}", r"Tracing", "histograms of read, write, open and fsync of a file system")],
         "when, as above. Page faults, who held the CPU, what code ran"),
]
