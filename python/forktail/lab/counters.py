# SPDX-License-Identifier: MIT
"""The cost of a step: the kernel's counters of the host and of each server before and after it, and the servers' own
counters (INFO, memcached's stats). Differences become figures; docs/reference/lab-and-scenarios.md lists them.

Rates are computed here, where both times are known, because tables cannot divide by time.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from forktail.host.machine import fields
from forktail.lab.formula import figure_name
from forktail.lab.results import Point
from forktail.servers.redis import RedisInfo
from forktail.servers.topology import Instance, Topology

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGESIZE") // 1024


@dataclass
class ProcessCounters:
    user_s: float  # in clock ticks
    system_s: float
    cpu_s: float  # both, to the nanosecond
    minor_faults: int
    major_faults: int
    read_bytes: int  # that reached a block device, including swap
    write_bytes: int
    switches: int  # voluntary and involuntary
    rss_bytes: int
    swap_bytes: int


@dataclass
class CpuCounters:
    busy_s: float
    softirq_s: float
    steal_s: float
    idle_s: float
    softirqs: dict[str, int] = field(default_factory=dict)  # soft interrupts by vector: NET_RX


@dataclass
class HostCounters:
    t_ns: int
    cpus: list[CpuCounters]
    read_kb: int  # by block devices, including zram
    written_kb: int
    swapped_in_kb: int
    swapped_out_kb: int
    memory_bytes: int
    available_bytes: int


@dataclass
class Counters:
    host: HostCounters
    processes: dict[str, ProcessCounters] = field(default_factory=dict)  # by instance
    info: dict[str, RedisInfo] = field(default_factory=dict)  # by instance: INFO's or stats' fields


def _cpu_time_s(directory: str) -> float:
    """CPU time of all running threads; 0 if the kernel does not count it."""
    ns = 0
    for stat in Path(directory, "task").glob("*/schedstat"):
        with suppress(OSError, IndexError):  # it ends
            ns += int(stat.read_text().split()[0])
    return ns / 1e9


def _read_process(pid: int) -> ProcessCounters | None:
    directory = f"/proc/{pid}"
    try:
        stat = Path(directory, "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name before the last ")" may contain any character. proc(5): fields 10 minflt, 12 majflt, 14 utime, 15 stime.
    values = stat[stat.rfind(")") + 1 :].split()
    minor, major, user, system = (int(values[i - 3]) for i in (10, 12, 14, 15))
    io, status = fields(directory + "/io"), fields(directory + "/status")
    return ProcessCounters(
        user_s=user / _TICKS,
        system_s=system / _TICKS,
        cpu_s=_cpu_time_s(directory),
        minor_faults=minor,
        major_faults=major,
        read_bytes=io.get("read_bytes", 0),
        write_bytes=io.get("write_bytes", 0),
        switches=status.get("voluntary_ctxt_switches", 0) + status.get("nonvoluntary_ctxt_switches", 0),
        rss_bytes=status.get("VmRSS", 0),
        swap_bytes=status.get("VmSwap", 0),
    )


def _read_cpus() -> list[CpuCounters]:
    cpus = []
    for line in Path("/proc/stat").read_text().splitlines():
        if re.match(r"cpu\d", line):
            # proc(5): user nice system idle iowait irq softirq steal.
            t = [int(ticks) / _TICKS for ticks in line.split()[1:9]]
            cpus.append(CpuCounters(t[0] + t[1] + t[2] + t[5] + t[6], t[6], t[7], t[3] + t[4]))
    for line in Path("/proc/softirqs").read_text().splitlines():
        name, *counts = line.split()
        if name.endswith(":"):
            for cpu, count in zip(cpus, counts, strict=False):
                cpu.softirqs[name.rstrip(":")] = int(count)
    return cpus


def _read_host() -> HostCounters:
    t_ns = time.monotonic_ns()
    vm, memory = fields("/proc/vmstat"), fields("/proc/meminfo")
    return HostCounters(
        t_ns=t_ns,
        cpus=_read_cpus(),
        read_kb=vm.get("pgpgin", 0),
        written_kb=vm.get("pgpgout", 0),
        swapped_in_kb=vm.get("pswpin", 0) * _PAGE_KB,
        swapped_out_kb=vm.get("pswpout", 0) * _PAGE_KB,
        memory_bytes=memory.get("MemTotal", 0),
        available_bytes=memory.get("MemAvailable", 0),
    )


def read_counters(topology: Topology) -> Counters:
    """The counters now. A server without an answer has no info; an ended one has no counters."""
    processes: dict[str, ProcessCounters] = {}
    info: dict[str, RedisInfo] = {}
    for instance in topology.instances:
        if not instance.child or instance.child.ended:
            continue
        if instance.redis:
            info[instance.name] = instance.redis.read_info()
        if instance.kind.counters:
            info[instance.name] = instance.kind.counters(instance)
        process = _read_process(instance.child.pid)
        if process:
            processes[instance.name] = process
    return Counters(_read_host(), processes, info)


class _Figures:
    """Sets the figures of an instance, and adds them to those of its server if that has several instances."""

    def __init__(self, point: Point, step: str, instance: Instance) -> None:
        self._numbers = point.numbers
        self._own = f"{step}.{instance.name}."
        self._all = "" if instance.server == instance.name else f"{step}.{instance.server}."

    def set(self, figure: str, value: float) -> None:
        self._numbers[self._own + figure] = value
        if self._all:
            self._numbers[self._all + figure] = self._numbers.get(self._all + figure, 0) + value

    def process(self, now: ProcessCounters) -> None:
        self.set("rss", now.rss_bytes)
        self.set("swap", now.swap_bytes)

    def info(self, info: RedisInfo, earlier: RedisInfo | None = None) -> None:
        """The fields that are numbers and, with `earlier` ones, their differences as d_NAME."""
        for name, text in info.items():
            now = _number(text)
            if now is not None:
                self.set(figure_name(name), now)
        for name, text in info.items() if earlier else ():
            now, then = _number(text), _number((earlier or {}).get(name, ""))
            if now is not None and then is not None:
                self.set("d_" + figure_name(name), now - then)


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text and not text.endswith(" ") else None
    except ValueError:
        return None


def add_moment(name: str, topology: Topology, now: Counters, point: Point) -> None:
    """Figures of one moment: NAME.redis.used_memory, .rss ... A server of several instances also has the sum."""
    for instance in topology.instances:
        figures = _Figures(point, name, instance)
        if instance.name in now.processes:
            figures.process(now.processes[instance.name])
        if instance.name in now.info:
            figures.info(now.info[instance.name])


def _add_host(step: str, a: HostCounters, b: HostCounters, seconds: float, point: Point) -> None:
    numbers, host = point.numbers, step + ".host."
    numbers[host + "read_kb_s"] = (b.read_kb - a.read_kb) / seconds
    numbers[host + "write_kb_s"] = (b.written_kb - a.written_kb) / seconds
    numbers[host + "swap_in_kb_s"] = (b.swapped_in_kb - a.swapped_in_kb) / seconds
    numbers[host + "swap_out_kb_s"] = (b.swapped_out_kb - a.swapped_out_kb) / seconds
    if b.memory_bytes:
        numbers[host + "memory_percent"] = 100 - 100 * b.available_bytes / b.memory_bytes
    softirq_s = busy_s = all_s = 0.0
    for cpu, (then, now) in enumerate(zip(a.cpus, b.cpus, strict=False)):
        busy, softirq, steal = now.busy_s - then.busy_s, now.softirq_s - then.softirq_s, now.steal_s - then.steal_s
        whole = busy + steal + now.idle_s - then.idle_s
        if whole > 0:
            numbers[f"{host}cpu{cpu}_percent"] = 100 * busy / whole
            numbers[f"{host}softirq{cpu}_percent"] = 100 * softirq / whole
            numbers[f"{host}steal{cpu}_percent"] = 100 * steal / whole
        grown = {vector: (count - then.softirqs.get(vector, 0)) / seconds for vector, count in now.softirqs.items()}
        numbers |= {f"{host}{vector}{cpu}_s": rate for vector, rate in grown.items()}
        numbers[f"{host}net_softirqs{cpu}_s"] = sum(grown.get(vector, 0) for vector in ("NET_RX", "NET_TX"))
        softirq_s, busy_s, all_s = softirq_s + softirq, busy_s + busy, all_s + whole
    if all_s > 0:
        numbers[host + "cpu_percent"] = 100 * busy_s / all_s
        numbers[host + "softirq_percent"] = 100 * softirq_s / all_s


def _memory_of(topology: Topology, instance: Instance, host: HostCounters) -> int:
    """The memory limit of an instance, else the host's memory, in bytes."""
    limits = (plan.memory_bytes for plan in topology.plans if plan.memory_bytes and plan.name == instance.server)
    return next(limits, host.memory_bytes)


def add_difference(
    name: str, topology: Topology, before: Counters, after: Counters, requests: float, point: Point
) -> None:
    """Figures of the time between: NAME.redis.cpu_percent, .host.softirq0_percent, .redis.d_keyspace_hits ...

    `requests` is the number of requests in it.
    """
    seconds = (after.host.t_ns - before.host.t_ns) / 1e9
    _add_host(name, before.host, after.host, seconds, point)
    for instance in topology.instances:
        a, b = before.processes.get(instance.name), after.processes.get(instance.name)
        if a is None or b is None:
            continue
        figures = _Figures(point, name, instance)
        user, system = b.user_s - a.user_s, b.system_s - a.system_s
        cpu = b.cpu_s - a.cpu_s if b.cpu_s > a.cpu_s else user + system
        # Clock ticks only give the ratio of user and system time.
        share = system / (user + system) if user + system > 0 else 0
        minor, major = b.minor_faults - a.minor_faults, b.major_faults - a.major_faults
        figures.set("cpu_s", cpu)
        figures.set("cpu_percent", 100 * cpu / seconds)
        if requests > 0:
            figures.set("cpu_us_per_request", cpu * 1e6 / requests)
            figures.set("user_us_per_request", cpu * (1 - share) * 1e6 / requests)
            figures.set("system_us_per_request", cpu * share * 1e6 / requests)
            figures.set("switches_per_request", (b.switches - a.switches) / requests)
        figures.set("minor_faults_s", minor / seconds)
        figures.set("major_faults_s", major / seconds)
        figures.set("faults_s", (minor + major) / seconds)
        figures.set("read_kb_s", (b.read_bytes - a.read_bytes) / 1024 / seconds)
        figures.set("write_kb_s", (b.write_bytes - a.write_bytes) / 1024 / seconds)
        figures.set("memory_percent", 100 * b.rss_bytes / _memory_of(topology, instance, after.host))
        figures.process(b)
        if instance.name in after.info and instance.name in before.info:
            figures.info(after.info[instance.name], before.info[instance.name])
