# SPDX-License-Identifier: MIT
"""What the first line of each case must name, and what was innocent in it. One row per fact; first_lines.py judges by it.

A case without a row is judged by what it injected: those causes are right, and causes of other places are wrong.
Whole runs have the names that Trial.whole gives them.
"""
import dataclasses

HOST = ("softirq", "hardirq", "page-zero", "page-file", "cow-reuse")  # what happens inside of a command and is part of it
ELSEWHERE = ("network", "client-late")
NOT_OWN_WORK = (*ELSEWHERE, "held")
NOT_NETWORK = ("stopped", "server-busy", "held", "peer-wait", "client-late")
OUTSIDE = r"outside the server's host|on the network"
# Of conclusions that were false once, the words that were printed then.
OUTSIDE_THEN = "Requests or replies were outside the server's host for {} ... (network)"


@dataclasses.dataclass(frozen=True)
class Fact:
    case: str
    injected: str = ""  # in words, for the tables
    right: tuple[str, ...] = ()  # causes, or a verdict's kind: the first one that is named must be one of them
    says: str = ""  # a pattern that the line must have to be right, and then it must be right
    innocent: tuple[str, ...] = ()  # causes that may not be named at all
    unsaid: str = ""  # a pattern of innocent places, processes and commands
    gate: str = ""  # a limit that a gate on the run must not pass
    ranked: bool = False  # the gate must name the same cause as the line
    before: str = ""  # the false first line that this case was made of, verbatim
    negative: str = ""  # a negative case: the place that was innocent


ROWS = (
    # Waits inside an event-loop iteration: the server is not idle, and nothing is on the network.
    Fact("name-resolution", "`replicaof NAME`, and the name server answers late", ("peer-wait",), r"127\.0\.0\.77", ELSEWHERE,
         OUTSIDE, before="Requests or replies were outside the server's host for 99.9 % of the slow requests' time (network). "
         "Without it p99.9 would be 20.2 ms instead of 1.00 s.", negative="network"),
    Fact("migrate", "MIGRATE to a server that is stopped", ("peer-wait",), r"poll|connect|recv|send|read|write", ELSEWHERE, OUTSIDE,
         negative="network"),
    Fact("migrate-recorded", "MIGRATE to a server that is stopped, and recorded too", ("peer-wait", "stopped"), r"stopped", ELSEWHERE,
         OUTSIDE, negative="client"),
    Fact("half-a-reply", "a primary that sends half of a reply to its replica's PING", ("peer-wait",), "", ELSEWHERE, OUTSIDE,
         negative="network"),
    Fact("backend-recv", "a server with epoll that waits in recv() for its own backend", ("peer-wait",), "", ELSEWHERE,
         OUTSIDE, negative="network"),
    # Requests that an idle server has read and holds.
    Fact("client-pause", "`CLIENT PAUSE N WRITE`", ("held",), r"pause", ELSEWHERE, OUTSIDE,
         before=OUTSIDE_THEN.format("99.4 %"), negative="network"),
    Fact("client-pause-all", "`CLIENT PAUSE N ALL`, recorded with `--requests`", ("held",), r"pause", ELSEWHERE, OUTSIDE),
    Fact("failover", "FAILOVER to a replica that is stopped", ("held",), r"pause|FAILOVER|failover", ELSEWHERE, OUTSIDE,
         before=OUTSIDE_THEN.format("99.4 %"), negative="network"),
    Fact("wait", "`WAIT 1 1000` while the replica is stopped", ("held",), r"WAIT|replica", ELSEWHERE, OUTSIDE,
         before=OUTSIDE_THEN.format("97.6 %"), negative="network"),
    Fact("blocking-command", "BLMOVE from a list that is empty for a while", ("held",), r"BLMOVE|block", ELSEWHERE, OUTSIDE,
         negative="network"),
    # Waits between processes of one host.
    Fact("nagle", "a proxy without TCP_NODELAY that writes each answer in two pieces; all processes recorded",
         ("unattributed", "held", "network"), r"idle|between|recorded cause", ("client-late",), OUTSIDE,
         before=OUTSIDE_THEN.format("98.8 %"), negative="network"),
    Fact("nutcracker-backend", "one of two servers behind nutcracker is stopped, all recorded without `--requests`",
         ("stopped", "unattributed"), "", ("client-late",), OUTSIDE + r"|nutcracker[^.;,]*was stopped",
         before=OUTSIDE_THEN.format("89.4 %"), negative="proxy"),
    # Places that are innocent while another is guilty.
    Fact("link-down", "the link to the server loses all packets", ("network", "unattributed"), "", NOT_NETWORK, negative="server"),
    Fact("network", "a relay delays requests", ("network", "unattributed"), "", NOT_NETWORK, negative="server"),
    Fact("client-stop", "the load generator is stopped", ("client-late",), "", ("network", "stopped", "held", "peer-wait"),
         negative="server"),
    Fact("stop", "the server is stopped", ("stopped",), "", ELSEWHERE, negative="client"),
    Fact("proxy-stop", "nutcracker is stopped", ("stopped",), r"nutcracker", ELSEWHERE, r"redis-server[^.;,]*was stopped",
         negative="server"),
    # A command's own time, with what happens inside of it.
    Fact("lcs", "LCS of two strings: one command, with first touches of new memory evenly in it", ("server-busy", "page-zero"), r"LCS",
         NOT_OWN_WORK, before="page-zero 78.8 %, server-busy 15.1 % (the thread itself: 59 : 41)"),
    Fact("del-beside-child", "DEL of a large hash while a snapshot's child uses the same CPU", ("server-busy", "run-queue"), r"DEL|child",
         NOT_OWN_WORK, before="73 : 22 (the thread itself: 51 : 49)"),
    Fact("eval-beside-child", "EVAL while a snapshot's child uses the same CPU", ("server-busy", "run-queue"), r"EVAL|child",
         NOT_OWN_WORK),
    Fact("eval-and-packets", "EVAL while packets arrive on the same CPU", ("server-busy",), r"EVAL", NOT_OWN_WORK),
    Fact("sunionstore", "SUNIONSTORE: a command that allocates while it computes", ("server-busy",), r"SUNIONSTORE",
         (*NOT_OWN_WORK, "page-zero")),
    Fact("smembers", "SMEMBERS of a large set", ("server-busy",), r"SMEMBERS", NOT_OWN_WORK, r"SINTER took",
         before="SMEMBERS -> \"SINTER\""),
    Fact("chroot", "a script, and the server's file is in a chroot of its own mount namespace", ("server-busy",), r"EVAL|[Ss]cript",
         ELSEWHERE, r"outside any known file", before="Code outside any known file took 1.43 s of CPU"),
    # More requests than can be answered.
    Fact("overload", "400,000 requests per second are due at one server", ("overload",), r"due.*answered", HOST,
         before="Soft interrupts (net_rx) took 3.10 s of the time of CPU 0: 26.5 % ... Without it p99.9 would be 8.69 s instead of "
         "11.8 s"),
    Fact("overload-client", "the load generator's CPU cgroup has a quota of 10 %", ("overload", "client-late"), r"load generator|client",
         ("network", "run-queue"), negative="server"),
    Fact("overload-quota", "the server's CPU cgroup has a quota of 5 %", ("overload", "cpu-quota"), r"quota", ELSEWHERE),
    Fact("overload-script", "each request is a script of a millisecond, 2,000 per second", ("overload",), r"EVAL|[Ss]cript", ELSEWHERE),
    # The end of a server.
    Fact("killed", "SIGKILL of the server at half of the run", ("outage",), r"SIGKILL", ELSEWHERE, gate="errors < 0.1%",
         before="The load generator waited 3.12 ms for a CPU ... (client-late); `forktail gate RUN 'errors < 0.1%'` passes"),
    Fact("restarted", "SHUTDOWN by SIGTERM, and a new server after a second", ("outage",), r"exit|SIGTERM|end", ELSEWHERE,
         r"python3 held", before="python3 held CPU 0 for 212 us ...: 0.01 % of the slow requests' time"),
    Fact("oom", "the server outgrows its memory cgroup", ("outage",), r"OOM", ELSEWHERE,
         r"cgroup (?!/forktail-truth)", gate="errors < 0.1%"),
    Fact("segfault", "DEBUG SEGFAULT", ("outage",), r"SIGSEGV|signal 11", ELSEWHERE, gate="errors < 0.1%"),
    # Recordings that lack the answer.
    Fact("no-server", "the run of `unrecorded`, without its server.forktail", ("unattributed",), r"not recorded|no server", ELSEWHERE,
         before="The load generator sent requests late ...: 20.1 % ... (client-late). Without it p99.9 would be 19.6 ms instead of "
         "19.6 ms. Give the load generator its own CPU."),
    Fact("empty-server", "the same, and server.forktail has 0 bytes", ("unattributed",), r"not recorded|no server|empty", ELSEWHERE,
         before="the same"),
    Fact("cut-server", "the same, and server.forktail is cut to 40 % of its length", ("unattributed", "server-busy"), r"cut|ends|recorded|EVAL",
         ELSEWHERE,
         before="the same"),
    # Public reports that no case above has (public.py).
    Fact("log-pipe", "the process that reads the server's log from a pipe is stopped", ("syscall", "file-write", "peer-wait"),
         r"write\(\)|pipe|log", ELSEWHERE, OUTSIDE, before="redis-server was blocked in write() for 3.89 s (syscall)"),
    Fact("resync", "a server with a large data set becomes a replica", ("server-busy",), r"emptyData|[Ff]lush|[Ee]mpty|[Dd]iscard",
         NOT_OWN_WORK, before="emptyData() took 1.21 s of CPU"),
    Fact("multiget", "one request for tens of thousands of keys at memcached", ("server-busy",), "", ("held", "network")),
    Fact("low-rate", "100 requests per second", ("none", "unattributed", "server-busy", "run-queue", "softirq", "client-late"),
         r"idle|[Ww]ake|cold", ("network",)),
    # The first line is about the cause whose removal helps most.
    Fact("rank-fork", "a fork of 300 MB, and a neighbour that often takes the CPU for a shorter time", ("fork",), r"[Ff]ork",
         ("network",), gate="p99.9 < 1us", ranked=True,
         before="run-queue 38.6 %, \"p99.9 would be 15.8 ms instead of 19.6\"; without fork it would be 11.8 ms"),
    Fact("rank-client", "a neighbour on the CPU of each, the server's with more priority", ("run-queue",), "",
         ("network",), gate="p99.9 < 1us", ranked=True,
         before="The load generator waited 2.86 s for a CPU ... 70.9 % (client-late). Without it p99.9 would be 32.2 ms instead of "
         "32.7 ms"),
)
FACTS = {fact.case: fact for fact in ROWS}
