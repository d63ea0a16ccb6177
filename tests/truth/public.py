# SPDX-License-Identifier: MIT
"""The public set: cases that come from public reports, a row each, in a form in which any tool's words can be judged.

A row adds to a case of the suite its report, and the words that an answer must have (judge.py). The run's directory gets
truth.json: what was reported and injected, when it was and how long by the injector, and those words. forktail's words are
the first line that `forktail explain` prints for the requests around the injection, or for the run.
"""
import json
import os
import time
from dataclasses import dataclass

import first_lines
import judge
import tables
from trial import now_ns

# Words that blame something. Each row names those that are innocent in it. Where it happened inside of a command, slow
# commands are not innocent.
NETWORK = r"outside the (server's )?host|on the network|network (delay|latency|problem|is)"
CLIENT = r"load generator (itself )?(delayed|was|waited)|client-late"
DISK = r"\bdisks?\b.{0,30}(busy|slow|contention)|slow disk|check .{0,40}\bdisk"
FORK = r"\bfork(\(\))? (took|event|time)|\bfork: \d"
SWAP = r"\bswap"
COMMANDS = r"commands? .{0,60}too slow|slow commands?|avoid .{0,20}commands"
CPU = r"held CPU|waited .{0,40}for a CPU|provide Redis CPU time|lower the system load"
EXCUSED = {"run-queue": CPU, "client-late": CLIENT}  # what a busy machine really had (first_lines.excused_by)
AOF = r"append-?only|\baof\b"


@dataclass(frozen=True)
class Report:
    case: str
    project: str  # on GitHub
    number: int  # of an issue or pull request
    reported: str
    injected: str
    cause: str
    cause_words: tuple[str, ...]  # of which an answer must have one
    object: str
    object_words: tuple[str, ...]  # the same. (): the cause says it
    innocent: tuple[str, ...]  # words that it must not have

    @property
    def name(self):
        return f"{self.project.split('/')[1].replace('_benchmark', '')}#{self.number}"

    @property
    def url(self):
        return f"https://github.com/{self.project}/issues/{self.number}"

    def words(self, excused=()):
        """What judge.py judges by. `excused`: causes that were there besides."""
        innocent = [word for word in self.innocent if word not in [EXCUSED[cause] for cause in excused]]
        return {"right": [list(group) for group in (self.cause_words, self.object_words) if group], "wrong": innocent}


ROWS = (
    Report("name-resolution", "redis/redis", 8148,
           "while the name of a replica's primary cannot be resolved, each query takes over 3.5 s",
           "`replicaof NAME`, and the name server answers late",
           "poll() waits for an answer, in the main thread",
           (r"\bpoll\(\)", r"do_(sys_)?poll", r"getaddrinfo", r"resol(ve|ution)", r"waited .{0,60}\banswer", r"replicaof"),
           "the name server 127.0.0.77:53", (r"127\.0\.0\.77", r"name server", r"name resolution", r"\bDNS\b", r"getaddrinfo"),
           (NETWORK, CLIENT, DISK, FORK, CPU)),
    Report("client-pause", "redis/redis", 9618,
           "after a manual failover the old primary holds writes until its pause of 10 s ends",
           "`CLIENT PAUSE N WRITE`",
           "the idle server holds requests that it has read",
           (r"\bpaus(e|es|ed)\b", r"\bheld (them|requests|clients)", r"had read requests"),
           "CLIENT PAUSE", (r"client[ |]pause", r"clients (were|are|was) paused", r"pause[sd]? clients"),
           (NETWORK, CLIENT, DISK, FORK, COMMANDS, CPU)),
    Report("nagle", "redis-rs/redis-rs", 2195,
           "without TCP_NODELAY a request waits in the kernel for the acknowledgement of the one before",
           "a proxy without TCP_NODELAY that writes each answer in two pieces",
           "the second piece of an answer waits for a delayed ACK (Nagle's algorithm)",
           (r"\bnagle", r"delayed[ -]ACK", r"TCP_NODELAY", r"unacknowledged"),
           "the proxy's connections", (r"proxy", r"\brelay", r"replies of python3"),
           (NETWORK, CLIENT, DISK, FORK, COMMANDS, CPU)),
    Report("overload", "brianfrankcooper/YCSB", 1672,
           "with a target rate, latency from the intended time grows beyond 100 s",
           "400,000 requests per second are due at one server",
           "more requests are due than can be answered",
           (r"\bdue\b.{0,80}\banswered", r"\boverload", r"\bbacklog\b", r"saturat", r"more (requests )?than .{0,30}(answer|serve|process)"),
           "400,000 per second", (r"400,?000", r"400k"),
           (NETWORK, CLIENT, r"soft interrupts", FORK, COMMANDS)),
    Report("killed", "redis/memtier_benchmark", 94,
           "the load generator does not end as expected when the server drops its connections",
           "SIGKILL of the server at half of the run",
           "the server was killed",
           (r"\bkilled\b", r"\bexited\b", r"\bdied\b", r"SIGKILL"),
           "SIGKILL", (r"SIGKILL", r"signal 9"),
           (NETWORK, CLIENT, FORK, COMMANDS, CPU)),
    Report("chroot", "iovisor/bcc", 5543,
           "functions of a program in a chroot have no names",
           "a script in a server with its own root and mount namespace",
           "a script runs",
           (r"\bEVAL\b", r"\bLua\b", r"\bluaV?_\w+"),
           "EVAL", (),
           (r"outside any known file", NETWORK, CLIENT, DISK, FORK)),
    Report("log-pipe", "redis/redis", 2973,
           "the reader of the log stalls, and the server blocks in write() (also redis#1873)",
           "the process that reads the server's log from a pipe is stopped",
           "write() blocks the main thread",
           (r"\bwrite\(\)", r"pipe_write", r"ksys_write"),
           "the pipe of the log, standard output",
           (r"\bpipe", r"pipe_write", r"(?<!slow )\blog\b", r"\bfd 1\b", r"stdout", r"standard output"),
           (NETWORK, CLIENT, DISK, FORK, COMMANDS, CPU, AOF)),
    Report("nodes-conf", "redis/redis", 6753,
           "a slot changes its owner, each node syncs nodes.conf in its event loop, and the shared disk takes long",
           "`CLUSTER BUMPEPOCH` on a slow disk",
           "fsync() in the main thread",
           (r"(?<![a-z])f(data)?sync", r"sync_file"),
           "nodes.conf", (r"nodes(-\d+)?\.conf", r"cluster('s)? config"),
           (NETWORK, CLIENT, FORK, COMMANDS, CPU, AOF)),
    Report("resync", "redis/redis", 13495,
           "before a full synchronization a replica discards its data set and answers nothing meanwhile",
           "`REPLICAOF` on a server with a large data set",
           "the replica flushes its data set",
           (r"emptyData", r"\bflush(es|ed|ing)?\b", r"\bempt(y|ies|ied|ying)\b", r"discard"),
           "the full synchronization", (r"synchroni[sz]", r"\bresync", r"full sync", r"\breplica"),
           (NETWORK, CLIENT, DISK, FORK, CPU)),
    Report("publish", "redis/redis", 198,
           "what a PUBLISH costs with many hundreds of subscribers",
           "one message to 4,000 subscribers",
           "the server sends a message to each subscriber",
           (r"send(ing|s|ers?)? (of )?(replies|answers|messages)", r"subscriber"),
           "PUBLISH", (r"\bPUBLISH\b", r"subscriber", r"pub/?sub"),
           (NETWORK, CLIENT, DISK, FORK, CPU)),
    Report("multiget", "memcached/memcached", 1046,
           "one request for thousands of keys",
           "`get` of 40,000 keys from one client",
           "one long request occupies a worker",
           (r"own code", r"\bmulti-?get", r"\bget\b.{0,40}\bkeys"),
           "a get of 40,000 keys", (r"40,?000", r"\bmulti-?get", r"one (long |large )?(request|get)\b"),
           (NETWORK, CLIENT, DISK, CPU)),
    Report("low-rate", "redis/redis", 9543,
           "latency decreases as throughput increases",
           "100 requests per second instead of 10,000",
           "each request finds an idle CPU",
           (r"\bidle\b", r"\bwake-?ups?\b", r"\basleep\b"),
           "its wake-up and cold caches", (r"\bcold\b", r"CPU was idle", r"wake-?ups?\b", r"wakes? up\b", r"low rate", r"\bfrequency"),
           (NETWORK, COMMANDS, DISK, FORK)),
    Report("copy-on-write-thp", "redis/redis", 7381,
           "with huge pages a copy-on-write fault after a fork takes 0.25 ms",
           "a byte is written into each of many pages while a snapshot's child lives, with transparent huge pages",
           "copy-on-write faults",
           (r"copy-on-write", r"\bcow\b", r"cow-copy", r"wp_(page|huge)"),
           "huge pages, the snapshot's child", (r"\bhuge", r"\bTHP\b", r"snapshot", r"\bchild\b"),
           (NETWORK, CLIENT, DISK, SWAP)),
    Report("fork", "redis/redis", 1154,
           "each RDB save raises latency to one second: latest_fork_usec is 981,432",
           "BGSAVE of a server with 400 MB of data",
           "fork() in the main thread",
           (r"\bfork(s|ed|ing)?\b", r"kernel_clone"),
           "BGSAVE", (r"BGSAVE", r"snapshot", r"page tables", r"\bRDB\b"),
           (NETWORK, CLIENT, DISK, SWAP)),
    Report("write-behind-fsync", "redis/redis", 1019,
           "while the AOF is rewritten, write() blocks the main thread for 7 to 14 s (appendfsync everysec)",
           "appendfsync everysec on a slow disk whose dirty pages another process fills",
           "write() waits in the main thread",
           (r"\bwrite\(\)", r"file-write", r"aof-write", r"balance_dirty_pages", r"ksys_write"),
           "the append-only file", (r"append-?only", r"\baof\b"),
           (NETWORK, CLIENT, FORK, COMMANDS, CPU)),
    Report("swap-in", "ckcr4lyf/kiryuu", 48,
           "a partly swapped Redis: a call takes 50 ms, a swapped one 10 s, instead of 0.3 ms",
           "a script reads keys that are in swap",
           "pages are read back from swap",
           (r"page-in", r"swap_?(in|read|page)", r"\bswap\b", r"major (page )?fault", r"read back"),
           "swap", (r"(?<![a-z])swap",),
           (NETWORK, CLIENT, FORK, CPU)),
)
BY_CASE = {report.case: report for report in ROWS}


def truth(report, happened):
    """What truth.json has. `happened`: an injection's record (Trial.injecting), or a run's (Trial.whole). Times are
    CLOCK_MONOTONIC, with the first also in seconds since 1970."""
    to_realtime = time.time_ns() - now_ns()
    return {
        "case": report.case, "report": report.name, "url": report.url, "reported": report.reported, "injected": report.injected,
        "cause": report.cause, "object": report.object,
        "begin_ns": happened["start_ns"], "end_ns": happened["end_ns"], "begin": (happened["start_ns"] + to_realtime) / 1e9,
        "amount_ns": happened.get("stall_ns"),  # None: only its begin and end are known
        "words": report.words(first_lines.excused_by(happened)),
    }


class Public:
    """A case's part of the set: its truth, and a verdict for each tool, forktail first."""

    def __init__(self, trial, lines):
        """Writes truth.json and forktail.txt. `lines`: the judged first lines of the case."""
        self.report = BY_CASE[trial.name]
        self.truth = truth(self.report, trial.injections[-1] if trial.injections else trial.whole_run)
        self.to_the_end = "" if trial.injections else "whole run"
        with open(os.path.join(trial.run, judge.TRUTH), "w") as f:
            json.dump(self.truth, f, indent=1)
        self.line = lines[-1]
        with open(os.path.join(trial.run, "forktail.txt"), "w") as f:
            f.write(self.line.answer + "\n")
        self.verdicts = {name: self.judged(trial.run, name) for name in ("forktail", *(tool.name for tool in trial.tools))}

    def judged(self, run, name):
        with open(os.path.join(run, f"{name}.txt"), errors="replace") as f:
            return judge.judge(self.truth["words"], f.read())

    @property
    def how_long(self):
        """The true time, else that from the begin to the end."""
        amount, span = self.truth["amount_ns"], self.truth["end_ns"] - self.truth["begin_ns"]
        return tables.ms(amount) if amount else self.to_the_end or tables.ms(span)

    @property
    def right(self):
        return self.verdicts["forktail"][0] == judge.RIGHT

    def __str__(self):
        return "; ".join(f"{name} {verdict} ({judge.reason(facts)})" for name, (verdict, facts) in self.verdicts.items())


def table(outcomes):
    """A row per case."""
    out = ["| report | reported | case, how long | first line | verdict |", "|---|---|---|---|---|"]
    for o in outcomes:
        if o.public:
            p = o.public
            out.append(f"| [{p.report.name}]({p.report.url}) | {p.report.reported} | `{p.report.case}`, {p.how_long} | "
                       f"{first_lines.text_of(p.line)} | {p.verdicts['forktail'][0]} |")
    out += [""] + [f"Skipped here: `{o.case.name}`: {o.skipped}." for o in outcomes if o.skipped]
    out += [f"Failed here: `{o.case.name}`: {o.failed}." for o in outcomes if o.failed]
    return "\n".join(out).rstrip() + "\n\n" + counts(outcomes)


def counts(outcomes):
    """How often each tool was right."""
    names = dict.fromkeys(name for o in outcomes if o.public for name in o.public.verdicts)
    out = []
    for name in names:
        mine = [o.public.verdicts[name][0] for o in outcomes if o.public]
        out.append(f"{name}: " + ", ".join(f"{mine.count(verdict)} {verdict}" for verdict in judge.VERDICTS))
    return machine() + " " + "; ".join(out) + "."


def machine():
    return f"Load average (5 minutes) {os.getloadavg()[1]:.1f}, Linux {os.uname().release}."


def comparison(outcomes):
    """A row per tool, a column per case: the verdicts. Tools that said nothing are a sentence."""
    ran = [o.public for o in outcomes if o.public]
    verdicts = {name: [p.verdicts[name][0] for p in ran] for name in dict.fromkeys(name for p in ran for name in p.verdicts)}
    mute = [name for name, of in verdicts.items() if set(of) == {judge.NOTHING}]
    return "\n".join([f"| tool | {' | '.join(p.report.case for p in ran)} |", "|---" * (len(ran) + 1) + "|"] +
                     [f"| {name} | {' | '.join(of)} |" for name, of in verdicts.items() if name not in mute] +
                     ["", *([f"In all cases nothing: {', '.join(mute)}."] if mute else []), machine()])
