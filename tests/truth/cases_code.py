# SPDX-License-Identifier: MIT
"""Injections into the server's own work: slow commands, bursts of its housekeeping, sleep."""
import contextlib
import os
import socket
import ssl
import subprocess
import threading
import time

import kernel
from registry import case
from trial import Skip, now_ns, wait_for


def ask(server, words):
    """Sends a command and reads its answer without parsing it: the suite shares the load generator's CPU."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(server.socket)
        for command in (words, ("PING",)):
            s.sendall(b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(as_bytes, command)))
        tail = b""
        while not tail.endswith(b"+PONG\r\n"):
            piece = s.recv(1 << 20)
            if not piece:
                raise RuntimeError(f"{words[0]}: the server closed the connection")
            tail = (tail + piece)[-7:]


def as_bytes(word):
    return str(word).encode()


# Code shared with other activities has a separate name. FCALL's functions are static: a stripped server has only Lua's.
CALLED = {"SAVE": "rdb-save", "FCALL": "script", "DEL": "command/DEL or UNLINK"}
# Causes of their own that are part of what the command does.
INCLUDES = {"SAVE": ("file-write", "file-meta", "fsync")}


def slow_command(t, server, name, magnitude, *words, **more):
    """One slow command, whose time Redis' own slow log has, less the time that other tasks had the CPU."""
    server.slowlog_reset()
    with t.injecting("server-busy", magnitude, server.tid, activity=CALLED.get(name, f"command/{name}"),
                     **{"or_named": [f"command/{name}"], "includes": INCLUDES.get(name, ()), **more}) as done:
        waited = kernel.run_delay_ns(server.tid)
        ask(server, words)
        waited = kernel.run_delay_ns(server.tid) - waited
    entries = [e for e in server.slowlog_get(10) if e["command"].split()[0].upper() == words[0].encode()]
    if not entries:
        raise Skip(f"{name} took less than the threshold of Redis' slow log (1 ms)")
    done["stall_ns"] = max(e["duration"] for e in entries) * 1000 - waited


@case(11, "sleep", ["sleep"], (5, 50, 200))
def sleep(t, magnitudes):
    server = t.redis()
    t.begin(["-s", server.socket])
    for ms in magnitudes:
        with t.injecting("sleep", f"{ms} ms", server.tid) as done:
            server.execute_command("DEBUG", "SLEEP", ms / 1000)
        done["stall_ns"] = ms * 1_000_000


LOOP = "local x = 0; for i = 1, ARGV[1] do x = x + i % 7 end; return x"
COMMANDS = {
    "KEYS": (lambda r, n: None, lambda n: ("KEYS", "nothing*"), (50_000, 200_000, 800_000)),
    "LRANGE": (lambda r, n: r.eval("for i = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], i) end", 1, f"list{n}", n),
               lambda n: ("LRANGE", f"list{n}", "0", "-1"), (50_000, 200_000, 1_000_000)),
    "EVAL": (lambda r, n: None, lambda n: ("EVAL", LOOP, "0", n), (1_000_000, 4_000_000, 16_000_000)),
    "DEL": (lambda r, n: r.eval("for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], i, i) end", 1, f"hash{n}", n),
            lambda n: ("DEL", f"hash{n}"), (50_000, 200_000, 800_000)),
    "SAVE": (lambda r, n: None, lambda n: ("SAVE",), (100_000, 400_000, 1_600_000)),
    "FLUSHALL": (lambda r, n: None, lambda n: ("FLUSHALL", "SYNC"), (50_000, 200_000, 800_000)),
    "SORT": (lambda r, n: r.eval("for i = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], (i * 7919) % 100003) end", 1,
                                 f"sort{n}", n),
             lambda n: ("SORT", f"sort{n}", "LIMIT", "0", "10"), (30_000, 100_000, 400_000)),
}


OF_ALL_KEYS = ("KEYS", "SAVE", "FLUSHALL")  # these take longer with more keys


def command_case(name):
    prepare, words, sizes = COMMANDS[name]

    @case(12, name.lower(), ["server-busy"], sizes)
    def run(t, magnitudes):
        server = t.redis("--lazyfree-lazy-user-del", "no", "--activerehashing", "no")
        for n in magnitudes:
            prepare(server, n)
        t.begin(["-s", server.socket])
        for n in magnitudes:
            if name in OF_ALL_KEYS:
                server.execute_command("DEBUG", "POPULATE", n)
            slow_command(t, server, name, str(n), *words(n))


for command in COMMANDS:
    command_case(command)


FUNCTION = f"""#!lua name=truth
redis.register_function('busy', function(KEYS, ARGV) {LOOP} end)"""


def function_case(kind):
    @case(12, "fcall" if kind == "redis" else f"fcall-{kind}", ["server-busy"], (1_000_000, 4_000_000, 16_000_000))
    def run(t, magnitudes):
        server = t.redis(kind=kind)
        server.function_load(FUNCTION)
        t.begin(["-s", server.socket])
        for n in magnitudes:
            slow_command(t, server, "FCALL", str(n), "FCALL", "busy", "0", n)


for server_kind in ("redis", "redis8", "valkey"):
    function_case(server_kind)


@case(12, "exec", ["server-busy"], (20_000, 50_000, 150_000))
def transaction(t, magnitudes):
    """One transaction of another client. Its time is not compared: Redis' account of EXEC includes page faults."""
    server = t.redis("--activerehashing", "no")
    t.begin(["-s", server.socket])
    for count in magnitudes:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(server.socket)
            s.sendall(b"MULTI\r\n")
            receive(s, b"+OK\r\n")
            for first in range(0, count, 1000):  # not all in one stall
                s.sendall(b"".join(b"SET exec:%d:%d x\r\n" % (count, i) for i in range(first, first + 1000)))
                receive(s, b"+QUEUED\r\n" * 1000)
            with t.injecting("server-busy", f"{count} commands", server.tid, activity="command/SET",
                             or_named=["rehash", "command/EXEC"], culprit="transaction (EXEC)"):
                s.sendall(b"EXEC\r\n")
                receive(s, b"+OK\r\n" * count)


def receive(s, end):
    """Reads until `end` has come."""
    got = b""
    while end not in got:
        got += s.recv(1 << 20)


@case(12, "tls-handshakes", ["server-busy"], (20, 60, 200))
def tls_handshakes(t, magnitudes):
    """Handshakes with RSA keys of 4096 bits, from clients that only connect. The load is not encrypted."""
    certificate, key = (os.path.join(t.directory, name) for name in ("tls.crt", "tls.key"))
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-subj", "/CN=truth", "-days", "2",
                           "-keyout", key, "-out", certificate], stdin=subprocess.DEVNULL, capture_output=True)
    if made.returncode:
        raise Skip("openssl cannot make a certificate")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = t.redis("--tls-port", str(port), "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file",
                     certificate, "--tls-auth-clients", "no")
    t.begin(["-s", server.socket])
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    for count in magnitudes:
        with contextlib.ExitStack() as open_sockets:
            waiting = [open_sockets.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
            with t.injecting("server-busy", f"{count} handshakes", server.tid, activity="tls-handshake",
                             or_named=["module/libcrypto.so.3", "module/libssl.so.3"], culprit="TLS handshakes"):
                workers = [threading.Thread(target=context.wrap_socket, args=(s,)) for s in waiting]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()


@case(23, "begun-before", ["server-busy"], (400_000_000,))
def begun_before(t, magnitudes):
    """Starts the recorder in the middle of a slow command. It sees no context switch of the thread until the command is
    over, because the server has its CPU to itself."""
    server = t.redis()
    t.begin(["-s", server.socket], recorded=False)
    for n in magnitudes:
        busy = threading.Thread(target=ask, args=(server, ("EVAL", LOOP, "0", n)))
        busy.start()
        t.record()
        start_ns = now_ns()
        time.sleep(0.1)
        if not busy.is_alive():
            raise Skip("the command ended before the recorder started")
        busy.join()
        t.injections.append({"cause": "server-busy", "magnitude": str(n), "tid": server.tid, "slow_ns": t.slow_ns,
                             "activity": "command/EVAL", "start_ns": start_ns, "end_ns": now_ns()})


@case(13, "expiry", ["server-busy"], (50_000, 200_000, 600_000))
def expiry(t, magnitudes):
    server = t.redis("--activerehashing", "no")
    t.begin(["-s", server.socket])
    for count in magnitudes:
        server.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for base in range(0, count, 10_000):  # not all in one stall
            server.eval("for i = ARGV[1], ARGV[1] + 9999 do redis.call('SET', 'volatile:' .. i, 'x', 'PX', 1) end", 0, base)
        time.sleep(0.5)
        spent = lambda tid: server.info("stats")["expire_cycle_cpu_milliseconds"] * 1_000_000
        with t.injecting("server-busy", f"{count} keys", server.tid, truth=spent, activity="expire"):
            server.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")
            wait_for("the keys' expiry", lambda: server.dbsize() <= 10_001)


LONG_EVICTIONS = ("--maxmemory-policy", "allkeys-random", "--maxmemory-eviction-tenacity", "60")


@case(13, "eviction", ["server-busy"], (20, 60, 200))
def eviction(t, magnitudes):
    evict(t, magnitudes, *LONG_EVICTIONS)


@case(13, "eviction-in-turns", ["server-busy"], (20, 60, 200))
def eviction_in_turns(t, magnitudes):
    """As Redis does it by default: in event-loop iterations of half a millisecond, which find candidates by sampling."""
    evict(t, magnitudes, "--maxmemory-policy", "allkeys-lru")


def evict(t, magnitudes, *policy):
    server = evicting_server(t, *policy)
    t.begin(["-s", server.socket])
    for megabytes in magnitudes:
        evict_some(t, server, megabytes)


def evicting_server(t, *config):
    return t.redis(*config, "--activerehashing", "no", "--lazyfree-lazy-eviction", "no")


def evict_some(t, server, megabytes, before=lambda: None, **more):
    """Half of new data. Calls `before` between filling and evicting."""
    server.config_set("maxmemory", 0)
    server.execute_command("DEBUG", "POPULATE", server.dbsize() + megabytes * 8000, f"e{megabytes}", 50)
    used = server.info("memory")["used_memory"]
    before()
    with t.injecting("server-busy", f"{megabytes} MB", server.tid, activity="evict", **more) as done:
        server.config_set("maxmemory", used - megabytes * 500_000)
        wait_for("the eviction", lambda: server.info("memory")["used_memory"] <= used - megabytes * 490_000)
    return done


@case(13, "rehash", ["server-busy"], (19, 20, 21), threshold="500us", fixed=True)
def rehash(t, magnitudes):
    """A table that must grow is rehashed in iterations of a millisecond, hz times per second, once that is allowed."""
    server = t.redis("--hz", "500", "--dynamic-hz", "no", "--activerehashing", "no")
    t.begin(["-s", server.socket])
    for power in magnitudes:
        server.config_set("activerehashing", "no")
        for part in range(0, (1 << power) + 1000 - server.dbsize(), 20_000):
            server.execute_command("DEBUG", "POPULATE", 20_000, f"r{power}:{part}", 1)
        with t.injecting("server-busy", f"2^{power} keys", server.tid, activity="rehash"):
            server.config_set("activerehashing", "yes")
            time.sleep(0.6)
        wait_for("the end of rehashing", lambda: "rehashing target" not in str(server.execute_command("DEBUG", "HTSTATS", "0")))
