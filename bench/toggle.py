# SPDX-License-Identifier: MIT
"""bench/overhead --toggle: what recording costs the server, measured within one endless load.

forktail-record runs with a preloaded library (give_links.c) that hands over its BPF links. Its programs and perf events
are then switched on and off every few hundred milliseconds, which takes 10 to 20 ms; starting a recorder takes a
second. So a slice with them is compared with slices without them from the same half second, on the same connections.
The recorder itself is stopped (SIGSTOP) while its programs are off.

A slice's cost is the server's CPU time per request. The ratio of a slice in one state to another state is that to the
cost of the other state at this time: the mean of the nearest slice before and the nearest after, weighted by their
distance. Medians ignore single disturbed slices. Ratios that share slices are not independent, so the standard error of
their median comes from resampling blocks of successive ratios.
"""
import bisect
import contextlib
import ctypes
import fcntl
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

import bench
import overhead_page
import quiet
import recorders
import setups

CONTROL = "control"  # on: nothing is attached
PROFILES = (CONTROL, "default", "light")
SETUPS = ("unix", "tcp")
WARM_UP_S = 1
SETTLE_S = 0.03  # after a switch, before the measurement
# By default the recorder decides by the rate of soft interrupts whether to time or to sample them, and its helper attaches their
# programs, whose links are not handed over. So it gets the option for what it would choose under these loads.
SOFTIRQS = {True: "--softirqs=exact", False: "--softirqs=sampled"}  # over a Unix socket; over TCP
EVENTS_LATER_S = 0.01  # a sample before the server's first switch would show an iteration as long as the slice before
ENDLESS = "2000000000"
BLOCK, RESAMPLES = 4, 1000
PERF_ENABLE, PERF_DISABLE = 0x2400, 0x2401  # linux/perf_event.h

Slice = namedtuple("Slice", "state at cost rate")  # seconds, CPU ns per request, requests per second
Result = namedtuple("Result", "ratio error slices")


def ratios(slices, state, base):
    """{time: ratio} of each slice in `state` that has slices in `base` on both sides."""
    others = [s for s in slices if s.state == base]
    times = [s.at for s in others]
    found = {}
    for one in (s for s in slices if s.state == state):
        place = bisect.bisect(times, one.at)
        if 0 < place < len(others):
            before, after = others[place - 1], others[place]
            part = (one.at - before.at) / (after.at - before.at)
            found[one.at] = one.cost / (before.cost + part * (after.cost - before.cost))
    return found


def standard_error(values, chance):
    """Of the median of a series."""
    starts, medians = range(len(values) - BLOCK + 1), []
    for _ in range(RESAMPLES):
        blocks = chance.choices(starts, k=-(-len(values) // BLOCK))
        medians.append(statistics.median(value for start in blocks for value in values[start:start + BLOCK]))
    return statistics.stdev(medians)


def compare(slices, state, base, chance=random):
    """The result, or None with too few slices. Both directions count: a disturbed slice spoils the ratios of its neighbours too,
    and with one direction, more disturbed slices would be in one half of the ratio."""
    there, back = ratios(slices, state, base), ratios(slices, base, state)
    both = {**there, **{at: 1 / ratio for at, ratio in back.items()}}
    found = [both[at] for at in sorted(both)]
    if len(found) < 2 * BLOCK:
        return None
    return Result(statistics.median(found), standard_error(found, chance), len(there))


class Nothing:
    """The control's recorder."""

    def on(self):
        pass

    off = kill = on


class Recorder:
    """A recorder whose programs are attached only between on() and off()."""

    def __init__(self, profile, server, directory, library):
        self.libbpf, self.libc = ctypes.CDLL("libbpf.so.1", use_errno=True), ctypes.CDLL(None, use_errno=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            self.recording = profile.start(server, directory, pass_fds=[theirs.fileno()], env={
                **os.environ, "LD_PRELOAD": library, "FORKTAIL_GIVE_LINKS": str(theirs.fileno())})
            self.pid = self.recording.process.pid
            self.links, self.programs, self.events = [], [], []
            try:
                self.take(ours)
                self.end_statistics()
                self.off()
            except BaseException:
                self.kill()
                raise

    def take(self, links):
        """Takes the links, and copies of the perf events, of programs that the recorder still has: it made some only as a trial."""
        links.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.links += socket.recv_fds(links, 1, 1)[1]
        kept = {program_of(f"/proc/{self.pid}/fdinfo/{fd}") for fd in quiet.names(f"/proc/{self.pid}/fdinfo")}
        numbers = [number for link in self.links if (number := program_of(f"/proc/self/fdinfo/{link}")) in kept]
        self.programs = [self.checked(self.libbpf.bpf_prog_get_fd_by_id(number)) for number in numbers]
        if not self.programs:
            raise recorders.Absent("it gave no links: is it linked statically?")
        process = os.pidfd_open(self.pid)
        for fd in quiet.names(f"/proc/{self.pid}/fd"):
            if "perf_event" in os.readlink(f"/proc/{self.pid}/fd/{fd}"):
                self.events.append(self.checked(self.libc.pidfd_getfd(process, int(fd), 0)))
        os.close(process)

    def checked(self, fd):
        if fd < 0:
            raise RuntimeError(f"cannot switch {self.recording.path}: {os.strerror(ctypes.get_errno() or -fd)}")
        return fd

    def end_statistics(self):
        """The kernel's run-time statistics make all programs slower. The recorder has them on for 1 % of the time after the first
        minute, and continues without the helper that switches them."""
        for pid in quiet.tree([self.pid]):
            if quiet.read(f"/proc/{pid}/comm") == "forktail-stats\n":
                os.kill(pid, signal.SIGKILL)

    def on(self):
        os.kill(self.pid, signal.SIGCONT)
        self.links = [self.checked(self.libbpf.bpf_raw_tracepoint_open(None, program)) for program in self.programs]
        time.sleep(EVENTS_LATER_S)
        for event in self.events:
            fcntl.ioctl(event, PERF_ENABLE, 0)

    def off(self):
        for event in self.events:
            fcntl.ioctl(event, PERF_DISABLE, 0)
        self.close_all(self.links)
        os.kill(self.pid, signal.SIGSTOP)

    @staticmethod
    def close_all(fds):
        while fds:
            os.close(fds.pop())

    def kill(self):
        self.recording.kill()
        for fds in (self.links, self.programs, self.events):
            self.close_all(fds)


def program_of(path):
    """The number of a descriptor's BPF program, or None."""
    found = re.search(r"^prog_id:\s*(\d+)", quiet.read(path), re.M)
    return found and int(found.group(1))


def prefer(pid):
    """Other work, except the kernel's, then leaves it the CPU."""
    os.setpriority(os.PRIO_PROCESS, pid, -20)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as f:
        f.write("-20")


class Load:
    """An endless client, and what it costs the server."""

    def __init__(self, bed, setup):
        how = {"p16": ["-P", str(setups.PIPELINE)]}.get(setup.how, [])
        connections = setups.MANY_CONNECTIONS if setup.how == "c5000" else setups.CONNECTIONS
        self.client = bench.start(bed.client(setup.where, "redis-benchmark", "-n", ENDLESS, *how, connections=connections),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True)
        for pid in (bed.pid, self.client.pid):
            prefer(pid)
        self.server, self.requests_a_read = bed.pid, setups.PIPELINE if how else 1

    def requests(self):
        """So far: each of the server's reads finds one, or a pipeline's."""
        return quiet.field(f"/proc/{self.server}/io", "syscr") * self.requests_a_read

    def measure(self, state, seconds):
        """A slice, or None if the server read nothing."""
        time.sleep(SETTLE_S)
        cpu_s, requests, since = quiet.cpu_s(self.server), self.requests(), time.monotonic()
        time.sleep(seconds)
        cpu_s, requests, until = quiet.cpu_s(self.server) - cpu_s, self.requests() - requests, time.monotonic()
        if self.client.poll() is not None:
            raise RuntimeError(f"redis-benchmark ended with {self.client.returncode}")
        if not requests:
            return None
        return Slice(state, (since + until) / 2, cpu_s * 1e9 / requests, requests / (until - since))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.kill()
        self.client.wait()


def measure(load, states, options):
    """Slices in rounds of all states, each round in random order."""
    load.measure(None, WARM_UP_S)
    slices, end = [], time.monotonic() + options.seconds
    while time.monotonic() < end:
        for state in random.sample(list(states), len(states)):
            states[state].on()
            slices.append(load.measure(state, options.slice / 1000))
            states[state].off()
    return [s for s in slices if s]


def start(bed, setup, profile, options, directory):
    """{state: recorder} of a profile, with the other build's recorder if there is one."""
    states = {"off": Nothing()}
    if profile == CONTROL:
        return {**states, "on": Nothing()}
    library = os.path.join(options.build, "bench", "give_links.so")
    try:
        for state, build in (("on", options.build), ("old", options.against)):
            if build:
                softirqs = [SOFTIRQS[setup.where == "unix"]] if state == "on" and profile in recorders.WITH_SOFTIRQS else []
                recorder = recorders.Profile(f"{profile}-{state}", os.path.join(build, "bin", "forktail-record"),
                                             recorders.OPTIONS[profile] + softirqs + options.recorder_option)
                states[state] = Recorder(recorder, bed.pid, directory, os.path.abspath(library))
    except BaseException:
        end(states)
        raise
    return states


def end(states):
    for recorder in states.values():
        recorder.kill()


def cell(result):
    return f"{result.ratio:.4f} ± {result.error:.4f}" if result else "-"


def row(setup, profile, slices, others):
    off = [s for s in slices if s.state == "off"]
    if not off:
        raise RuntimeError("the server answered nothing")
    off_ns, rate = statistics.median(s.cost for s in off), statistics.median(s.rate for s in off)
    on, old, both = (compare(slices, *pair) for pair in (("on", "off"), ("old", "off"), ("on", "old")))
    return [setup.name, profile, f"{off_ns:,.0f}", f"{rate:,.0f}", cell(on), f"{(on.ratio - 1) * off_ns:+.0f}" if on else "-",
            *([cell(old), cell(both)] if any(s.state == "old" for s in slices) else ["-", "-"]),
            str(on.slices if on else 0), f"{others:.0f}"]


def with_other_build(rows):
    head = ["load", "profile", "off, CPU ns a request", "off, requests/s", "on : off", "ns a request", "old : off", "on : old", "slices on",
            "others, % of a CPU"]
    return overhead_page.table(head, rows)


def by_profile(rows):
    """A row per profile, a column per load: on : off, and ns a request more."""
    cells = {(load, profile): f"{ratio}, {more} ns" if ratio != "-" else "-" for load, profile, _, _, ratio, more, *_ in rows}
    loads, profiles = (list(dict.fromkeys(row[i] for row in rows)) for i in (0, 1))
    span = lambda values: f"{min(values):,}-{max(values):,}"
    of = {load: [[int(row[i].replace(",", "")) for row in rows if row[0] == load] for i in (2, 3)] for load in loads}
    lines = [["off: CPU ns a request", *(span(of[load][0]) for load in loads)], ["off: requests/s", *(span(of[load][1]) for load in loads)]]
    lines += [[profile, *(cells.get((load, profile), "-") for load in loads)] for profile in profiles]
    others, slices = ([int(row[i]) for row in rows] for i in (9, 8))
    return (overhead_page.table(["on : off", *loads], lines) +
            f"\n\nOther work took {span(others)} % of a CPU; each ratio is of {span(slices)} slices with the recorder.")


def run(options, bed):
    """Measures each profile under each load and prints a table."""
    begun, load_average = time.strftime("%Y-%m-%d %H:%M"), os.getloadavg()
    os.sched_setaffinity(0, {int(bench.CLIENT_CPU)})
    rows = []
    for setup in (setups.Setup(name) for name in options.only or SETUPS):
        for profile in options.profiles or PROFILES:
            with tempfile.TemporaryDirectory(dir=bed.scratch) as directory, Load(bed, setup) as load:
                states = start(bed, setup, profile, options, directory)
                try:
                    pids = [r.pid for r in states.values() if isinstance(r, Recorder)]
                    before, client_s = quiet.Look(bed.pid, pids), quiet.cpu_s(load.client.pid)
                    slices = measure(load, states, options)
                    stretch = quiet.Stretch(before, quiet.Look(bed.pid, pids), quiet.cpu_s(load.client.pid) - client_s)
                finally:
                    end(states)
            rows.append(row(setup, profile, slices, stretch.others))
            print(" ".join(rows[-1]), file=sys.stderr)
    text = (f"`{options.command}`, {begun}, {overhead_page.machine()}.\nSlices of {options.slice} ms, {options.seconds:.0f} s for each "
            f"row. Load average at the start: {' '.join(f'{a:.2f}' for a in load_average)}.\n\n")
    text += with_other_build(rows) if options.against else by_profile(rows)
    print(text)
    if options.write:
        overhead_page.put("toggled", text)
