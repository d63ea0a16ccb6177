# SPDX-License-Identifier: MIT
"""forktail hosts run: a run on several hosts, from its plan (TOML) to the collected run directory.

mpirun is started twice: for the run, and to collect the files from the hosts. There is no state in between, so the
second works however the first ended (a killed rank, Ctrl-C, a lost host). It starts forktail-rank (hosts/rank) on this
host, which is rank 0, and on each host of the plan. Ranks report by lines of JSON on their standard output.

The end of a run: when all loads have ended, a program died or a signal arrived, every rank gets "end" through mpirun's
standard input. Ranks on this host do not get that input and receive SIGTERM. Ranks end their programs and exit, then
mpirun exits. If it does not, it is killed, and daemons and ranks end because their parent died.
"""

import ctypes
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from forktail import __version__
from forktail.failure import CANNOT, NO, USAGE, Failure
from forktail.files import replace_file, write_json
from forktail.options import Command, Option
from forktail.programs import find_program
from forktail.text import command_line, format_count, parse_duration, visible
from forktail.toml import Table, read_table

COMMAND = Command(
    "forktail hosts run",
    "Run a plan on its hosts: record servers, generate load, and collect everything in one run directory "
    "(docs/guides/many-hosts.md). Arguments after -- go to mpirun.\n"
    "Exit status: 0 done, 1 a program died and the run is incomplete, 2 the plan is invalid, 3 the run could "
    "not start.",
    [
        Option("PLAN", "Plan file (TOML)", required=True),
        Option("-o,--output", "Create this run directory", "RUN", excludes="--check"),
        Option("--check", "Print which program would run on which host, and start nothing", excludes="--output"),
        Option("--hostfile", "Use mpirun's hostfile FILE with the hosts and their slots", "FILE"),
    ],
    examples=("forktail hosts run plan.toml -o monday",),
)
USAGE_TEXT = """\
forktail hosts run PLAN.toml -o RUN [-- MPIRUN OPTIONS]   generate load and record on several hosts
forktail hosts run --help prints the options.
"""

_SPARE_S = 120  # on a host that is cut off, programs end by themselves so long after the planned end
_SILENT_S, _LEAVE_S, _LEAVING_S, _GATHERING_S, _ONE_HOST_S, _QUIETLY_S = 20, 75, 15, 600, 60, 5
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TARGETS = ("port", "pid", "name-of", "unix", "container", "cgroup")

Message = dict[str, Any]


@dataclass
class PlanHost:
    name: str  # its name in directories and messages
    address: str  # its address for mpirun: a name, an address, or a host of ssh's configuration
    network: str  # its address for the other hosts
    programs: str  # directory of forktail's programs there; "": as on this host


@dataclass
class Program:
    """A recorder or a load of a host. `name`.forktail is its recording."""

    kind: str  # "recorder", "load"
    host: str
    name: str
    words: list[str]  # its targets or servers
    options: list[str]


@dataclass
class Plan:
    duration_ns: int  # of the loads
    settle_ns: int  # between the last recorder's readiness and the first request
    scratch: str  # directory of each host's files until they are collected
    continue_on_death: bool  # when a program dies, the others continue
    clocks: bool  # compare clocks during the run
    mpirun: list[str]  # options for it
    hosts: list[PlanHost] = field(default_factory=list)  # the first is the reference of the clock comparison
    programs: list[Program] = field(default_factory=list)

    def loads(self) -> int:
        return sum(program.kind == "load" for program in self.programs)

    def directory(self, token: str, host: str) -> str:
        """The directory of a host's files of run `token`."""
        return f"{self.scratch}/forktail-hosts-{token}-{host}"


def parse_plan(text: str | bytes, path: str) -> Plan:
    """Reads a plan; `path` is for messages. An unknown key is an error, so that a misspelled one is not ignored."""
    table = read_table(text, path, "a plan")
    keys = ("duration", "settle", "scratch", "on_death", "clocks", "mpirun", "hosts", "record", "load")
    table.allow(*keys)
    on_death = _text(table, "on_death", "end")
    plan = Plan(
        _time(table, "duration", 0),
        _time(table, "settle", 2 * 10**9),
        _text(table, "scratch", "/var/tmp"),
        on_death == "continue",
        table.flag("clocks") if "clocks" in table.node else True,
        table.words("mpirun"),
    )
    if on_death not in ("end", "continue"):
        table.refuse(f'`on_death` must be "end" or "continue", not "{on_death}"')
    if not plan.scratch.startswith("/"):
        table.refuse(f'`scratch` must be an absolute path, not "{plan.scratch}"')
    for one in table.each("hosts", "a host"):
        plan.hosts.append(_host(one, plan))
    for one in table.each("record", "a recorder"):
        plan.programs.append(_program(one, plan, "recorder", "server", (*_TARGETS, "options")))
    for one in table.each("load", "a load"):
        plan.programs.append(_program(one, plan, "load", "load", ("to", "options")))
    if not plan.hosts:
        table.refuse("the plan has no [[hosts]]")
    if not plan.programs:
        table.refuse("the plan needs at least one [[record]] or [[load]]")
    if not plan.duration_ns:
        table.refuse('`duration` is missing: set the length of the run, such as "30s"')
    return plan


def _text(table: Table, key: str, default: str) -> str:
    return table.text(key) if key in table.node else default


def _time(table: Table, key: str, default_ns: int) -> int:
    """A time with a unit, in ns."""
    if key not in table.node:
        return default_ns
    text = table.text(key)
    ns = parse_duration(text)
    if ns is None:
        table.refuse(f'`{key}` must be a time such as "30s", not "{text}"', key)
    return ns


def _host(table: Table, plan: Plan) -> PlanHost:
    table.allow("name", "address", "network", "programs")
    name = table.text("name")
    address = _text(table, "address", name)
    network = _text(table, "network", address)
    if not _NAME.fullmatch(name):
        wanted = "a host needs a `name` that consists of letters, digits, '-', '_' and '.'"
        table.refuse(f'{wanted}, not "{name}"')
    if not address or set(address) & set(",:; \t\n'\""):
        table.refuse(f'the address of {name} must be one name or address that mpirun accepts, not "{address}"')
    for other in plan.hosts:
        if other.name == name:
            table.refuse(f"two hosts have the name {name}")
        if other.address == address:
            table.refuse(f"the hosts {other.name} and {name} have the same address, {address}")
    return PlanHost(name, address, network, table.text("programs"))


def _program(table: Table, plan: Plan, kind: str, otherwise: str, keys: tuple[str, ...]) -> Program:
    """A recorder or a load. Names are unique per host. The default is `otherwise`, with a number if that is taken."""
    table.allow("host", "name", *keys)
    host, name = table.text("host"), table.text("name")
    if host not in [one.name for one in plan.hosts]:
        table.refuse(f'a {kind} needs a `host` from the plan, not "{host}"')
    taken = {"clock", *(one.name for one in plan.programs if one.host == host)}  # clock: of the clock comparison
    number = 1
    while not name or (name in taken and "name" not in table.node):
        name = otherwise if number == 1 else f"{otherwise}-{number}"
        number += 1
    if not _NAME.fullmatch(name):
        table.refuse(f"a name consists of letters, digits, '-', '_' and '.', not \"{name}\"")
    if name in taken:
        table.refuse(f'the name "{name}" is already used on {host}')
    if kind == "load":
        words = [word for server in table.words("to") for word in ("--server", server)]
    else:
        options = {key: "--" + key.removesuffix("-of") for key in _TARGETS}
        words = [word for key in _TARGETS for target in table.words(key) for word in (options[key], target)]
        if not words:
            table.refuse("a [[record]] needs a target: `port`, `pid`, `name-of`, `unix`, `container` or `cgroup`")
    return Program(kind, host, name, words, table.words("options"))


def jobs_of(plan: Plan, host: PlanHost, directory: str) -> list[Message]:
    """The programs of a host in the order of their start: kind, name of the recording and the log, argv.

    argv begins with the program without a directory. forktail-rank adds --start-at to loads.
    """

    def file(name: str) -> str:
        return f"{directory}/{name}.forktail"

    limit = f"{-(-(plan.duration_ns + plan.settle_ns) // 10**9) + _SPARE_S}s"
    jobs: list[Message] = []
    if plan.clocks and len(plan.hosts) > 1:
        first = plan.hosts[0]
        words = ["serve", "--listen", first.network]
        if host is not first:
            words = ["probe", first.network, "-o", file("clock"), "--duration", limit]
        jobs.append({"kind": "clock", "name": "clock", "argv": ["forktail-clock", *words]})
    for one in plan.programs:
        if one.host != host.name:
            continue
        if one.kind == "recorder":
            words = ["forktail-record", "-o", file(one.name), *one.words, "--duration", limit]
        else:
            words = ["forktail-load", "-o", file(one.name), "--progress", *one.words]
            words += ["--duration", f"{plan.duration_ns // 10**6}ms"]
        jobs.append({"kind": one.kind, "name": one.name, "argv": words + one.options})
    return jobs


def roles_of(plan: Plan, host: PlanHost) -> str:
    """ "recorder and load", for messages."""
    kinds = [one.kind for one in plan.programs if one.host == host.name]
    counts = [(kind, kinds.count(kind)) for kind in ("recorder", "load")]
    roles = [f"{count} {kind}s" if count > 1 else kind for kind, count in counts if count]
    return " and ".join(roles) or "nothing"


def describe_plan(plan: Plan) -> str:
    """The programs of each host, for --check."""
    lines = []
    for host in plan.hosts:
        lines.append(f"{host.name} ({host.address}): {roles_of(plan, host)}\n")
        lines += [f"  {command_line(job['argv'])}\n" for job in jobs_of(plan, host, plan.scratch)]
    return "".join(lines)


def rank_plan(plan: Plan, token: str) -> str:
    """What forktail-rank reads of the plan (hosts/rank/host_run.h): JSON."""
    hosts = []
    for host in plan.hosts:
        directory = plan.directory(token, host.name)
        jobs = jobs_of(plan, host, directory)
        hosts.append({"name": host.name, "programs": host.programs, "directory": directory, "jobs": jobs})
    return json.dumps({"duration_ns": plan.duration_ns, "settle_ns": plan.settle_ns, "hosts": hosts})


@dataclass
class MpiRun:
    """What mpirun's command lines consist of, besides the plan."""

    rank: str  # the path of forktail-rank
    plan: str  # the path of rank_plan's JSON
    run: str  # absolute path
    token: str  # the id of the run on its hosts
    hostfile: str = ""
    options: list[str] = field(default_factory=list)  # the user's, after the plan's


def mpi_command(mpi: MpiRun, plan: Plan, mode: str, hosts: list[PlanHost]) -> list[str]:
    """The command line of mpirun. `mode` is "run" or "gather"; `hosts` are rank 1, 2, ...

    Each rank is a separate application context with the host's name as argument, independent of how mpirun numbers
    and places ranks. mpirun is started by name: with a path, it expects Open MPI at the same path on all hosts.
    """
    words = ["mpirun", "--stdin", "all"]  # "end" reaches every rank without MPI
    words += ["--bind-to", "none"]  # Open MPI would bind each rank, and so its programs, to a core
    words += ["--oversubscribe"]
    # A rank that waits in MPI, before the load, leaves its CPU to others.
    words += ["--mca", "mpi_yield_when_idle", "1"]
    for name, seconds in (("time", "10"), ("intvl", "5"), ("probes", "4")):
        words += ["--mca", f"oob_tcp_keepalive_{name}", seconds]  # a daemon that is cut off ends after half a minute
    words += ["--allow-run-as-root"] if os.geteuid() == 0 else []  # recording needs it
    words += ["--hostfile", mpi.hostfile] if mpi.hostfile else []
    words += [*plan.mpirun, *mpi.options, "--host", "localhost", "-np", "1", mpi.rank, mode, mpi.token]
    words += ["--plan", mpi.plan, *([mpi.run] if mode == "gather" else [])]
    for host in hosts:
        rank = f"{host.programs}/forktail-rank" if host.programs else mpi.rank
        words += [":", "--host", host.address, "-np", "1", rank, mode, mpi.token, host.name]
    return words


@dataclass
class LoadSecond:
    """The last second that a load generator reported."""

    elapsed_s: float = 0
    per_second: int = 0
    p99_ms: float = 0
    max_ms: float = 0
    errors: int = 0


def read_progress(line: str) -> LoadSecond | None:
    """A line of forktail-load, "SET+GET  3 s  40,000/s  p50 0.100 ms  p99 0.310 ms  max 1.200 ms  errors 0"."""
    found = re.search(r"  *([\d.]+) s  ([\d,]+)/s  ", line)
    if not found:
        return None

    def after(word: str) -> float:
        number = re.search(rf"{word} ([\d.,]+)", line)
        return float(number[1].replace(",", "")) if number else 0

    rate = int(found[2].replace(",", ""))
    return LoadSecond(float(found[1]), rate, after("p99"), after("max"), int(after("errors")))


def merged_progress(loads: dict[str, LoadSecond]) -> str:
    """One line for all loads, by "HOST/NAME".

    Percentiles of several load generators cannot be merged, so the worst is printed; explain computes the total from
    their logs.
    """
    all_of = [loads[name] for name in sorted(loads)]
    worst = max(sorted(loads), key=lambda name: loads[name].p99_ms)
    return (
        f"{max(one.elapsed_s for one in all_of):.0f} s  {format_count(sum(one.per_second for one in all_of))}/s"
        f" from {len(loads)} load{'' if len(loads) == 1 else 's'}"
        f"  worst p99 {loads[worst].p99_ms:.3f} ms ({worst.split('/')[0]})"
        f"  max {max(one.max_ms for one in all_of):.3f} ms  errors {sum(one.errors for one in all_of)}"
    )


def parse_message(line: str) -> Message | None:
    """A message of a rank (hosts/rank/host_run.h); None: another line."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and text_of(message, "forktail") else None


def text_of(message: Message, member: str) -> str:
    """A text member; "" if missing."""
    value = message.get(member)
    return value if isinstance(value, str) else ""


class Stops:
    """Counts SIGINT, SIGTERM and SIGHUP. Each puts None into `wake`, which ends the wait of who reads it."""

    def __init__(self) -> None:
        self.count = 0
        self.wake: SimpleQueue[str | None] = SimpleQueue()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, self._stop)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.wake.put(None)


class Mpi:
    """A running mpirun, in its own process group. It gets SIGTERM if this process dies."""

    def __init__(self, words: list[str], stops: Stops) -> None:
        """Raises Failure."""
        parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

        def die_with_parent() -> None:
            prctl(1, int(signal.SIGTERM))  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)

        start = partial(subprocess.Popen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.process: subprocess.Popen[str] = start(
                words, text=True, errors="replace", process_group=0, preexec_fn=die_with_parent
            )
        except OSError as error:
            raise Failure(f"cannot start mpirun ({words[0]}): {error.strerror}") from None
        self.asked = False  # it was asked to end
        self.last: deque[str] = deque(maxlen=6)  # its own last lines
        self.ended_s = self.over_s = 0.0  # when "end" was sent; when all ranks had finished
        self._stops, self._stops_before = stops, stops.count
        streams = (self.process.stdout, self.process.stderr)
        self._readers = [threading.Thread(target=self._read, args=(one,), daemon=True) for one in streams]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Iterable[str]) -> None:
        for line in stream:
            self._stops.wake.put(line)
        self._stops.wake.put(None)

    def stopped(self, more: int = 0) -> bool:
        """More stop signals than these have arrived since its start."""
        return self._stops.count > self._stops_before + more

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def has_output(self) -> bool:
        """Its standard output is still open: a rank may write."""
        return self._readers[0].is_alive()

    def kill(self) -> None:
        self.asked = True
        self.process.kill()

    def send_end(self) -> None:
        self.asked = True
        with suppress(OSError):  # it has ended or will be killed
            assert self.process.stdin
            self.process.stdin.write("end\n")
            self.process.stdin.flush()

    def messages(self, seconds: float = 0.5) -> Iterator[Message]:
        """Waits for a line, the end of a pipe or a signal. Yields the messages so far; other lines are mpirun's own."""
        with suppress(Empty):
            line = self._stops.wake.get(timeout=seconds)
            while True:
                if message := parse_message(line or ""):
                    yield message
                elif line and line.strip("- \n"):
                    self.last.append(line.rstrip("\n"))
                line = self._stops.wake.get_nowait()

    def last_messages(self) -> Iterator[Message]:
        """Those that are left when it has ended. A process that it left behind may keep a pipe open."""
        for reader in self._readers:
            reader.join(1)
        return self.messages(0)

    def how_it_ended(self) -> str:
        status = self.process.returncode
        killed = f"was killed by signal {-status} ({signal.strsignal(-status)})" if status < 0 else ""
        last = "; its last messages: " + " / ".join(self.last) if self.last else ""
        return (killed or f"ended with status {status}") + last


@dataclass
class HostState:
    """What the rank of a host has reported."""

    hello: Message = field(default_factory=dict)
    started: list[Message] = field(default_factory=list)
    loaded: bool = False  # its loads have ended
    over: bool = False  # all its programs have ended
    heard_s: float = 0  # when it last reported


class Session:
    """State of a run from the messages of its ranks, and messages for the user."""

    def __init__(self, plan: Plan, mpi: MpiRun) -> None:
        self.plan, self.mpi = plan, mpi
        self.hosts: dict[str, HostState] = {}
        self.loads: dict[str, LoadSecond] = {}  # by "host/name"
        self.troubles: list[str] = []  # sentences for run.json
        self.stopped: set[str] = set()  # those of ranks that were only told to stop
        self.cannot = self.ending = False
        self.go_s = 0.0  # when all hosts were ready
        self._open = False  # the terminal shows a progress line
        self._shown_s = 0.0
        self._stops = Stops()

    def say(self, sentence: str) -> None:
        """Removes the progress line and prints a sentence."""
        print(f"{self._wipe()}forktail: {visible(sentence)}", file=sys.stderr, flush=True)

    def _wipe(self) -> str:
        wipe, self._open = "\r\033[K" if self._open else "", False
        return wipe

    def trouble(self, sentence: str) -> None:
        """Prints and remembers a problem, once: collecting is tried twice."""
        if sentence not in self.troubles:
            self.troubles.append(sentence)
            self.say(sentence)

    def take(self, message: Message) -> bool:
        """Processes one message of a rank. True: the run must end."""
        what, host = text_of(message, "forktail"), text_of(message, "host")
        if what == "go":
            self.go_s = time.monotonic()
            seconds = f"{message.get('seconds', 0.0):f}"[:4]
            self.say(f"all hosts are ready; the load starts in {seconds} s")
            return False
        if what == "cannot":
            self.cannot = True
            sentence = (f"{host}: " if host else "") + text_of(message, "why")
            if message.get("stopped"):
                self.stopped.add(sentence)
            self.trouble(sentence)
            return False
        if host not in [one.name for one in self.plan.hosts]:
            return False
        state = self.hosts.setdefault(host, HostState())
        state.heard_s = time.monotonic()
        name = f"{host}/{text_of(message, 'name')}"
        if what == "hello":
            state.hello = message
        elif what == "started":
            state.started.append({"name": text_of(message, "name"), "argv": message.get("argv", [])})
        elif what == "progress":
            if second := read_progress(text_of(message, "line")):
                self.loads[name] = second
        elif what == "ended":
            self.loads.pop(name, None)
            return self._take_end(message, host)
        elif what == "loaded":
            state.loaded = True
        elif what == "over":
            state.over = state.loaded = True
        elif what == "left" and text_of(message, "why"):
            self.trouble(f"{host}: {text_of(message, 'why')}")
        return False

    def _take_end(self, message: Message, host: str) -> bool:
        """Handles the end of a program. True: the run must end."""
        if message.get("well") or message.get("asked") or self.ending:
            return False
        kind = text_of(message, "kind")
        self.trouble(f"{host}: the {kind} ({text_of(message, 'name')}) {text_of(message, 'how')}")
        return not self.plan.continue_on_death and kind != "clock"  # the comparison up to then is usable

    def show_progress(self) -> None:
        """Shows the progress line if it is due."""
        now, terminal = time.monotonic(), sys.stderr.isatty()
        # The first line covers all loads, unless one is late.
        late = self.go_s and now > self.go_s + self.plan.settle_ns / 1e9 + _QUIETLY_S
        begun = self._shown_s or len(self.loads) == self.plan.loads() or late
        if not begun or not self.loads or now - self._shown_s < (1 if terminal else _QUIETLY_S):
            return
        self._shown_s = now
        line = merged_progress(self.loads)
        print(f"\r\033[K{line}" if terminal else f"{line}\n", end="", file=sys.stderr, flush=True)
        self._open = terminal

    def every(self, what: Callable[[HostState], bool]) -> bool:
        """True if every host of the plan has reported and is so."""
        return all(host.name in self.hosts and what(self.hosts[host.name]) for host in self.plan.hosts)

    def all_loaded(self) -> bool:
        """True if all loads have ended, as reported by the hosts. Without loads the planned time must be over."""
        planned_s = (self.plan.settle_ns + self.plan.duration_ns) / 1e9
        if not self.plan.loads() and (not self.go_s or time.monotonic() < self.go_s + planned_s):
            return False
        return self.every(lambda state: state.loaded)

    def only_silent_left(self) -> bool:
        """True if all loads have ended except those of silent hosts, and there are silent hosts."""
        now = time.monotonic()
        if not self.every(lambda state: state.heard_s > 0):
            return False
        silent = [name for name, state in self.hosts.items() if now - state.heard_s > _SILENT_S]
        return bool(silent) and self.every(lambda state: state.loaded or now - state.heard_s > _SILENT_S)

    def send_end(self, mpi: Mpi) -> None:
        """Asks all ranks to end. Of those that our mpirun started itself, only rank 0 gets standard input."""
        if mpi.ended_s:
            return
        mpi.ended_s = time.monotonic()
        self.ending = True
        mpi.send_end()
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        for state in self.hosts.values():
            pid = state.hello.get("pid", 0)
            if text_of(state.hello, "boot_id") != boot_id or state.hello.get("parent") != mpi.process.pid:
                continue
            with suppress(OSError, IndexError):
                parent = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                if int(parent) == mpi.process.pid:
                    os.kill(pid, signal.SIGTERM)

    def insist(self, mpi: Mpi) -> None:
        """Kills an mpirun that does not end in time."""
        now = time.monotonic()
        if not mpi.over_s and self.every(lambda state: state.over):
            mpi.over_s = now
        since_end = now - mpi.ended_s if mpi.ended_s else 0
        if (
            mpi.stopped(1)
            or (mpi.over_s and now - mpi.over_s > _LEAVING_S)
            or since_end > _LEAVE_S
            or (since_end > _LEAVING_S and self.only_silent_left())
        ):
            mpi.kill()

    def run_loads(self) -> None:
        """The first mpirun, from its start to its end."""
        try:
            mpi = Mpi(mpi_command(self.mpi, self.plan, "run", self.plan.hosts), self._stops)
        except Failure as failure:
            return self.trouble(str(failure))
        while not mpi.has_ended():
            wanted = any([self.take(message) for message in mpi.messages()])
            stopped = mpi.stopped() and not mpi.ended_s
            if stopped:
                self.trouble("received a signal; stopping the programs of all hosts")
            if wanted or stopped or self.all_loaded() or self.only_silent_left():
                self.send_end(mpi)
            self.insist(mpi)
            self.show_progress()
        for message in mpi.last_messages():
            self.take(message)
        self._name_lost()
        # Before the load starts, ranks that report their end were stopped.
        well = mpi.process.returncode == 0 or (mpi.over_s and self.go_s)
        # That mpirun stopped the others when one died may be known before which one it was.
        if not well and set(self.troubles) <= self.stopped:
            self.trouble(self._name_dead_rank(mpi))
        return None

    def _name_lost(self) -> None:
        """Names hosts that stopped reporting while others finished."""
        for host in self.plan.hosts:
            state = self.hosts.get(host.name, HostState())
            silent_s = time.monotonic() - state.heard_s
            if not state.over and state.heard_s and silent_s > _SILENT_S:
                self.trouble(f"{host.name} ({roles_of(self.plan, host)}) has not reported for {int(silent_s)} s")

    def _name_dead_rank(self, mpi: Mpi) -> str:
        """From "mpirun noticed that process rank 2 with PID 77 on node b exited on signal 9 (Killed).\""""
        for line in mpi.last:
            found = re.search(r"process rank (\d+).*exited on signal (\d+)", line)
            if found and int(found[1]) <= len(self.plan.hosts):
                host = self.plan.hosts[int(found[1]) - 1]
                dead = f"the rank on {host.name} ({roles_of(self.plan, host)})"
                who = dead if int(found[1]) else "rank 0, on this host,"
                return f"{who} was killed by signal {found[2]}; the programs of all hosts were stopped"
        return f"mpirun {mpi.how_it_ended()}"

    def gather(self) -> None:
        """Collects from all hosts at once. If that fails, from each alone: a lost host does not block the others."""
        left = [host for host in self.plan.hosts if host.name in self.hosts and self.hosts[host.name].hello]
        if not left:
            return
        self.say(f"collecting files in {self.mpi.run}")
        left = self._gather_from(left, _GATHERING_S)
        again = left if len(left) > 1 or len(left) < len(self.plan.hosts) else []
        for host in again:
            left = [one for one in left if one is not host] + self._gather_from([host], _ONE_HOST_S)
        for host in left:
            there = self.plan.directory(self.mpi.token, host.name)
            self.trouble(f"cannot fetch the files of {host.name}: they are still in {there} on that host")

    def _gather_from(self, hosts: list[PlanHost], limit_s: float) -> list[PlanHost]:
        """Returns the hosts whose files have not been collected."""
        try:
            mpi = Mpi(mpi_command(self.mpi, self.plan, "gather", hosts), self._stops)
        except Failure as failure:
            self.trouble(str(failure))
            return hosts
        collected: list[str] = []
        limit = time.monotonic() + limit_s
        while not mpi.has_ended() or (mpi.has_output() and not mpi.asked):
            for message in mpi.messages():
                if text_of(message, "forktail") == "stored":
                    collected.append(text_of(message, "host"))
                else:
                    self.take(message)
            if time.monotonic() > limit or mpi.stopped():
                mpi.kill()
        return [host for host in hosts if host.name not in collected]

    def write_run_json(self, plan_path: str, started: float) -> None:
        """Writes what ran where into the run directory. Raises Failure."""
        hosts = []
        for host in self.plan.hosts:
            one: Message = {"name": host.name, "address": host.address, "roles": roles_of(self.plan, host)}
            if state := self.hosts.get(host.name):
                members = ("host_name", "kernel", "boot_id", "version")
                one |= {member: text_of(state.hello, member) for member in members} | {"programs": state.started}
            hosts.append(one)
        about = {
            "program": "forktail hosts run",
            "versions": {"forktail": __version__},
            "started_unix": started,
            "plan": plan_path,
            "hosts": hosts,
            "troubles": self.troubles,
        }
        write_json(f"{self.mpi.run}/run.json", about, 2)


def prepare(run: str) -> tuple[str, str]:
    """Finds the programs and creates the run directory. Returns the paths of forktail-rank and of the directory."""
    run = os.path.join(os.getcwd(), run)
    if not shutil.which("mpirun"):
        raise Failure("cannot find mpirun on PATH. Install openmpi-bin.")
    rank = find_program("forktail-rank")
    if not rank:
        how = "Install the package forktail-mpi, or install libopenmpi-dev and build again."
        raise Failure(f"cannot find forktail-rank next to forktail. {how}")
    try:
        if os.path.lexists(run) and os.listdir(run):
            raise Failure(f"{run} exists and is not empty. Name a new directory.")
        os.makedirs(f"{run}/hosts", exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot create {run}: {error.strerror}") from None
    return str(rank), run


def run_hosts(plan: Plan, plan_path: str, mpi: MpiRun) -> int:
    """Returns the exit status: 0 done, 1 a program died or files are missing, 3 the run could not start."""
    started = time.time()
    session = Session(plan, mpi)
    replace_file(mpi.plan, rank_plan(plan, mpi.token))
    try:
        session.run_loads()
        session.gather()
    finally:
        Path(mpi.plan).unlink(missing_ok=True)
    try:
        session.write_run_json(plan_path, started)
    except Failure as failure:
        session.trouble(str(failure))
    if session.cannot or not session.go_s:
        return CANNOT
    if session.troubles:
        session.say(f"the run is incomplete: see {mpi.run}")
        return NO
    session.say(f"done: forktail explain {mpi.run}")
    return 0


def main(words: list[str]) -> int:
    if words[:1] != ["run"]:
        wanted = words[:1] in (["--help"], ["-h"])
        print(USAGE_TEXT, end="", file=sys.stdout if wanted else sys.stderr)
        return 0 if wanted else USAGE
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    _, asked = COMMAND.parse(own)
    if not asked["check"] and not asked["output"]:
        raise Failure("no run directory is given. Name it with -o RUN.", USAGE)
    path = asked["plan"]
    try:
        plan = parse_plan(Path(path).read_bytes(), path)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", USAGE) from None
    if asked["check"]:
        print(describe_plan(plan), end="")
        return 0
    rank, run = prepare(asked["output"])
    token = secrets.token_hex(6)
    options = words[len(own) + 2 :]
    mpi = MpiRun(rank, f"{run}/.forktail-plan-{token}", run, token, asked["hostfile"] or "", options)
    return run_hosts(plan, os.path.join(os.getcwd(), path), mpi)
