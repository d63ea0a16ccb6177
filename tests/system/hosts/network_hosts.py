# SPDX-License-Identifier: MIT
"""Hosts for tests: network namespaces that a bridge connects, and mpirun's replacement for ssh. Programs whose clock is
a day ahead.

Each namespace has no name, and exists as long as the process that keeps it, so nothing is left by a test that is
killed, and several tests can have such hosts at once.
"""

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from forktail.programs import find_program, program
from harness import Program, eventually, explain, run_program
from processes import Closing

NSENTER = shutil.which("nsenter")
AHEAD_S = 86_400
A_DAY_AHEAD = ["unshare", "-T", "--monotonic", str(AHEAD_S), "--fork", "--kill-child"]  # before a program's words


def need_hosts():
    """Skips the test where there cannot be such hosts."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    if not (shutil.which("mpirun") and shutil.which("ip") and NSENTER and find_program("forktail-rank")):
        pytest.skip("needs mpirun, iproute2 and forktail-rank")
    if run_program("unshare", "--net", "true").status != 0:
        pytest.skip("needs network namespaces, which this machine does not allow")


def need_time_namespaces():
    """Skips the test where no program's clock can be a day ahead."""
    if run_program(*A_DAY_AHEAD, "true").status != 0:
        pytest.skip("needs root and time namespaces")


def shell(script, *within, **options):
    """Runs a script to its end, which it has to reach without an error."""
    ran = run_program(*within, "sh", "-euc", script, timeout=90, **options)
    assert ran.status == 0, ran.out + ran.err
    return ran


def command_line(pid):
    """The command line of a process; "" if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Namespace(Closing):
    """A network namespace. within: the words before a command that is to be in it. link: its path."""

    def __init__(self):
        self._keeper = Program("unshare", "--net", "sleep", "infinity")
        self.link = f"/proc/{self._keeper.pid}/ns/net"
        own = os.readlink("/proc/self/ns/net")
        assert eventually(lambda: os.readlink(self.link) != own)
        self.within = [NSENTER, f"--net={self.link}", "--"]
        self.keeper_pid = self._keeper.pid

    def pids(self):
        """Its processes."""
        wanted, found = os.readlink(self.link), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if os.readlink(process / "ns/net") == wanted:
                    found.append(int(process.name))
        return [pid for pid in found if pid != self.keeper_pid]

    def close(self):
        self._keeper.close()


class Hosts(Closing):
    """Hosts with these names, and a run on them. All programs end with the `with` block.

    directory: an empty one, which other users can enter. run: the run directory. scratch: where the hosts keep their
    files. here: the namespace of the bridge, in which forktail runs. path: PATH for forktail.
    """

    def __init__(self, directory, *names):
        need_hosts()
        self.directory, self.names = directory, names
        self.run, self.scratch, self.path = directory / "run", directory / "scratch", None
        self.forktail, self._servers, self._in_memory = None, {}, None
        self.here, self._hosts = Namespace(), {name: Namespace() for name in names}
        self.scratch.mkdir()
        (directory / "net").mkdir()
        lines = [
            "ip link set lo up",
            "ip link add forktail0 type bridge",
            "ip addr add 10.77.0.254/24 dev forktail0",
            "ip link set forktail0 up",
        ]
        for i, (name, host) in enumerate(self._hosts.items(), 1):
            (directory / "net" / name).symlink_to(host.link)
            inside = f"nsenter --net={host.link} ip"
            lines += [
                f"ip link add ft{i} type veth peer name eth0 netns {host.keeper_pid}",
                f"ip link set ft{i} master forktail0 up",
                f"{inside} addr add {self.address(name)}/24 dev eth0",
                f"{inside} link set eth0 up",
                f"{inside} link set lo up",
            ]
        self.shell("\n".join(lines))
        self.write_agent('exec sh -c "$*"')

    def write_agent(self, then):
        """Writes the script that mpirun calls as it calls ssh: agent HOST COMMAND. `then` runs the command."""
        # Hosts have unique names, by which Open MPI's daemons identify each other.
        agent = self.directory / "agent"
        agent.write_text(
            f"#!/bin/sh\nhost=$1\nshift\nexec nsenter --net={self.directory}/net/$host unshare --uts "
            f"sh -c 'hostname $0; {then}' $host \"$@\"\n"
        )
        agent.chmod(0o755)

    def shell(self, script):
        """Runs a script where the bridge and its links ft1, ft2, ... are."""
        return shell(script, *self.here.within)

    def put_scratch_in_memory(self):
        """/dev/shm is another file system than the run's, so that files go through MPI. Returns the directory there."""
        self._in_memory = Path(f"/dev/shm/forktail-hosts-test-{os.getpid()}")
        self.scratch.rmdir()
        self._in_memory.mkdir()
        self.scratch.symlink_to(self._in_memory)
        return self._in_memory

    def address(self, name):
        return f"10.77.0.{self.names.index(name) + 1}"

    def on(self, name, *words):
        """The words of a command on that host."""
        return [*self._hosts[name].within, *words]

    def serve(self, name, *words):
        """Starts a server there, with a new directory."""
        directory = self.directory / f"data-{name}"
        directory.mkdir()
        self._servers[name] = Program(*self.on(name, *words), cwd=directory)
        return self._servers[name]

    def serve_redis(self, name):
        config = ["--bind", self.address(name), "--protected-mode", "no", "--save", "", "--enable-debug-command", "yes"]
        server = self.serve(name, "redis-server", *config)
        assert eventually(lambda: self.redis(name, "PING").startswith("PONG")), server.out
        return server

    def redis(self, name, *words):
        """The answer of the redis-server there."""
        return run_program(*self.on(name, "redis-cli", "-h", self.address(name), *words)).out

    def inside(self, name):
        """Its processes except the servers."""
        servers = [server.pid for server in self._servers.values()]
        return [pid for pid in self._hosts[name].pids() if pid not in servers]

    def find(self, name, of):
        """The process of this program on that host, or None."""
        return next((pid for pid in self.inside(name) if command_line(pid).partition(" ")[0].endswith(of)), None)

    def leader(self):
        """The rank that runs here and not on a host, or None."""
        plan = f" --plan {self.run}"
        lines = {pid: command_line(pid) for pid in self.here.pids()}
        ranks = (pid for pid, line in lines.items() if "forktail-rank run " in line and plan in line)
        return next((pid for pid in ranks if "mpirun" not in lines[pid]), None)

    def left(self):
        """Command lines of the run's remaining processes on all hosts, and files in the scratch directory."""
        lines = [command_line(pid) for name in self.names for pid in self.inside(name)]
        return [line for line in lines if line] + list(self.scratch.iterdir())

    def check_nothing_is_left(self):
        assert eventually(lambda: not self.left(), 15), self.left()

    def plan(self, duration, *programs, head=""):
        """A plan with all hosts, Open MPI's options here, and these programs. head: more lines of its first table."""
        mpirun = ["--mca", "plm_rsh_agent", f"{self.directory}/agent", "--mca", "btl", "tcp,self"]
        mpirun += ["--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24"]
        settings = (
            f'duration = "{duration}"\nsettle = "1s"\nscratch = "{self.scratch}"\nmpirun = {json.dumps(mpirun)}\n'
        )
        hosts = (f'[[hosts]]\nname = "{name}"\nnetwork = "{self.address(name)}"\n' for name in self.names)
        return "".join([settings, head, *hosts, *programs])

    @staticmethod
    def record(name, port=6379, *options):
        """A recorder of a plan."""
        return f'[[record]]\nhost = "{name}"\nport = {port}\noptions = {json.dumps(options)}\n'

    def load(self, name, to="redis-a", *options, rate=500):
        """A load of a plan. to: a host, or an address with a port."""
        to = self.address(to) if to in self.names else to
        words = [*options, "--rate", str(rate), "-c", "5", "-r", "10000", "-d", "100"]
        return f'[[load]]\nhost = "{name}"\nto = "{to}"\noptions = {json.dumps(words)}\n'

    def begin(self, plan):
        """Starts a run of this plan."""
        file = self.directory / "plan.toml"
        file.write_text(plan)
        shutil.rmtree(self.run, ignore_errors=True)
        words = [*self.here.within, program("forktail"), "hosts", "run", file, "-o", self.run]
        self.forktail = Program(*words, env={"PATH": self.path} if self.path else {})

    def await_load(self, what):
        """Waits until it reports the load: "from 2 loads"."""
        run = self.forktail
        assert eventually(lambda: what in run.err or not run.running, 40) and what in run.err, run.err

    def finish(self, status, timeout=80):
        """Waits for its end with this exit status. What it has said."""
        ended = self.forktail.wait(timeout)
        assert ended.status == status, ended.err
        return ended.err

    def file(self, name):
        """A file of the run: "redis-a/server.forktail"."""
        return self.run / "hosts" / name

    def requests(self, name):
        """explain's report on the requests in a file of the run."""
        return explain(self.file(name))["requests"]

    @property
    def json(self):
        return json.loads((self.run / "run.json").read_text())

    def close(self):
        if self.forktail and self.forktail.running:
            self.forktail.signal(signal.SIGTERM)
            eventually(lambda: not self.forktail.running, 30)
            self.forktail.close()
        for server in self._servers.values():
            server.close()
        for namespace in (*self._hosts.values(), self.here):
            for pid in namespace.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            namespace.close()
        if self._in_memory:
            shutil.rmtree(self._in_memory)
