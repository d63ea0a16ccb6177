# SPDX-License-Identifier: MIT
"""Slow commands that something else happens inside of: first touches of memory, packets, a child on the same CPU. The
requests that wait for such a command must be divided as its thread's own time (division)."""
import os
import signal

import host
import kernel
from cases_code import LOOP, slow_command
from cases_memory import end_child
from cases_network import PACKETS, packets_on
from registry import case
from trial import CLIENT_CPU, SERVER_CPU


@case(40, "lcs", ["server-busy"], (2000, 4000, 6000), threshold="4ms")
def lcs(t, magnitudes):
    """LCS needs a table of new memory and fills it while it computes."""
    server = t.redis()
    for size in magnitudes:
        server.mset({f"a{size}": os.urandom(size // 2).hex(), f"b{size}": os.urandom(size // 2).hex()})
    t.begin(["-s", server.socket], observer=True)
    for size in magnitudes:
        slow_command(t, server, "LCS", f"{size} bytes", "LCS", f"a{size}", f"b{size}", division=True, among=2)


@case(40, "sunionstore", ["server-busy"], (50_000, 150_000, 400_000), threshold="4ms", in_short=False)
def sunionstore(t, magnitudes):
    server = t.redis("--activerehashing", "no", "--lazyfree-lazy-server-del", "yes")
    for count in magnitudes:
        for first in range(0, count, 10_000):
            server.eval("for i = ARGV[1], ARGV[1] + 9999 do redis.call('SADD', KEYS[1], 'member:' .. i) end", 1, f"set{count}", first)
    t.begin(["-s", server.socket])
    for count in magnitudes:
        slow_command(t, server, "SUNIONSTORE", f"{count} members", "SUNIONSTORE", f"to{count}", f"set{count}", division=True,
                     or_named=["command/SUNIONSTORE", "command/SUNION, SUNIONSTORE, SDIFF or SDIFFSTORE"])


def beside_child(t, magnitudes, prepare, words):
    """A command, while a snapshot's child uses the same CPU. The scheduler's account has the waits."""
    server = t.redis("--lazyfree-lazy-user-del", "no", "--activerehashing", "no", "--rdbcompression", "no",
                     "--stop-writes-on-bgsave-error", "no")
    server.execute_command("DEBUG", "POPULATE", 1_500_000, "snapshot", 100)
    for n in magnitudes:
        prepare(server, n)
    t.begin(["-s", server.socket], rate=2000)
    for n in magnitudes:
        server.bgsave()
        with t.injecting("run-queue", str(n), server.tid, truth=kernel.run_delay_ns, culprit=child(server.tid), among=2,
                         division=True) as done:
            server.execute_command(*words(n))
            server.ping()
            done["happened"] = bool(server.info("persistence")["rdb_bgsave_in_progress"])
        end_child(server)


def child(pid):
    """The first child of a process."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()[0]


@case(40, "del-beside-child", ["run-queue"], (100_000, 200_000, 300_000), threshold="4ms")
def del_beside_child(t, magnitudes):
    fill = "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], i, i) end"
    beside_child(t, magnitudes, lambda r, n: r.eval(fill, 1, f"hash{n}", n), lambda n: ("DEL", f"hash{n}"))


@case(40, "eval-beside-child", ["run-queue"], (4_000_000, 8_000_000, 16_000_000), threshold="4ms", in_short=False)
def eval_beside_child(t, magnitudes):
    beside_child(t, magnitudes, lambda r, n: None, lambda n: ("EVAL", LOOP, "0", n))


@case(40, "eval-and-packets", ["server-busy"], (8_000_000, 16_000_000, 24_000_000), threshold="4ms", in_short=False)
def eval_and_packets(t, magnitudes):
    """A script, while packets arrive on the same CPU, each with a millisecond of work for the kernel, which may take as long
    as the script. Redis' clock of the script includes that, so its time is not compared."""
    name = packets_on(t, SERVER_CPU)
    server = t.redis()
    t.begin(["-s", server.socket])
    for n in magnitudes:
        flood = t.start(["ip", "netns", "exec", name, "nice", "-n", "-5", "taskset", "-c", str(CLIENT_CPU), "/usr/bin/python3", "-c",
                         PACKETS % 2.0])
        host.wait_stopped(flood.pid)
        t.calm()
        flood.send_signal(signal.SIGCONT)
        with t.injecting("server-busy", str(n), server.tid, activity="command/EVAL", or_named=["script"], among=2,
                         division=True):
            server.eval(LOOP, 0, n)
        flood.wait()


@case(41, "smembers", ["server-busy"], (50_000, 150_000, 400_000), in_short=False)
def smembers(t, magnitudes):
    """In Redis, SMEMBERS is executed by the function of SINTER."""
    server = t.redis()
    for count in magnitudes:
        server.eval("for i = 1, ARGV[1] do redis.call('SADD', KEYS[1], 'member:' .. i) end", 1, f"set{count}", count)
    t.begin(["-s", server.socket], observer=True)
    for count in magnitudes:
        slow_command(t, server, "SMEMBERS", f"{count} members", "SMEMBERS", f"set{count}",
                     or_named=["command/SMEMBERS", "command/SINTER or SMEMBERS",
                               "command/SINTER, SINTERCARD, SINTERSTORE or SMEMBERS", "answer"])
