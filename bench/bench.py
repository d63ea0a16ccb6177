# SPDX-License-Identifier: MIT
"""Shared code of the benchmarks: servers on CPU 0, clients on CPU 1 under a time limit, tables written between the
markers of a page, and reading of recordings' blocks.

wait4() reports a client's CPU time. The client's memory is the high-water mark of its address space, read while it
runs, because wait4()'s figure starts with the memory of the Python process that forked it.
"""
import ctypes
import os
import platform
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "python"))
from forktail import servers  # noqa: E402
from forktail.programs import program  # noqa: E402,F401 (for the benchmarks)
from forktail.servers.listen import connect_to, free_port  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "results", "speed.md")
SERVER_CPU, CLIENT_CPU = "0", "1"


class Ended:
    """What a client took and how it ended."""

    def __init__(self, argv, status, usage, memory_kb, out, err):
        self.argv, self.status, self.out, self.err = argv, status, out, err
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.memory_kb = memory_kb


def high_water_kb(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            found = re.search(r"VmHWM:\s*(\d+) kB", f.read())
        return int(found.group(1)) if found else 0
    except OSError:
        return 0


def start(argv, cpu=CLIENT_CPU, **how):
    return subprocess.Popen(["taskset", "-c", cpu] + argv, **how)


def run(argv, limit_s, watch_memory=False, meanwhile=None, allowed=(0,), cpu=CLIENT_CPU):
    """Runs a client to its end or to the time limit. `meanwhile` is called while it runs."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(argv, cpu, stdout=out, stderr=err)
        killer = threading.Timer(limit_s, process.kill)
        killer.start()
        memory_kb = 0
        try:
            if meanwhile:
                meanwhile()
            while watch_memory and os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                memory_kb = max(memory_kb, high_water_kb(process.pid))
                time.sleep(0.02)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            killer.cancel()
            if process.returncode is None:
                process.kill()
                process.wait()
        texts = []
        for f in (out, err):
            f.seek(0)
            texts.append(f.read().decode(errors="replace"))
    if process.returncode not in allowed:
        why = f"took longer than {limit_s} s" if process.returncode == -signal.SIGKILL else "failed"
        sys.exit(f"{' '.join(argv)} {why}:\n{texts[0]}{texts[1]}")
    return Ended(argv, process.returncode, usage, memory_kb, *texts)


def make_certificate(directory):
    """A self-signed certificate for 127.0.0.1 and its key, in one file."""
    path = os.path.join(directory, "server.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path + ".key", "-out", path,
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"],
                   check=True, capture_output=True)
    with open(path, "a") as both, open(path + ".key") as key:
        both.write(key.read())
    return path


class Server(servers.Server):
    """A server on CPU 0, reached by Unix socket, TCP or (Redis) TLS. It ends with its block."""

    def __init__(self, kind, directory, unix, tls=False):
        self.certificate = make_certificate(directory) if tls else None
        arguments = ["--maxclients", "20000", "--enable-debug-command", "yes"] if kind == "redis" else ["-t", "1", "-c", "20000"]
        if tls:
            tls_port = free_port()
            arguments += ["--tls-port", str(tls_port), "--tls-cert-file", self.certificate, "--tls-key-file",
                          self.certificate, "--tls-ca-cert-file", self.certificate, "--tls-auth-clients", "no"]
        super().__init__(kind, *arguments, tcp=not unix and not tls, cpus=SERVER_CPU)
        if tls:
            self.socket, self.port = "", tls_port
        # Clients name keys in different ways. Every GET must find 16 bytes.
        for key in ("key:000000000000", "key:000000000001", "key:__rand_int__", "memtier-1"):
            self.store(key, "abcdefghijklmnop")

    def store(self, key, value):
        if self.kind == "redis":
            self.ask("SET", key, value)
            return
        with connect_to(self.instance.endpoint, 5) as s:
            s.sendall(f"set {key} 0 0 {len(value)}\r\n{value}\r\n".encode())
            if s.recv(64) != b"STORED\r\n":
                raise OSError("it does not store")

    def where(self):
        """The address in the options that forktail-load and redis-benchmark share."""
        where = ["-s", self.socket] if self.socket else ["-h", "127.0.0.1", "-p", str(self.port)]
        return where + (["--tls", "--cacert", self.certificate] if self.certificate else [])


class Stop:
    """Stops a server's process once, after a while, and measures how long the stop was."""

    def __init__(self, server, before_s, stop_s):
        self.server, self.before_s, self.stop_s, self.length_s = server, before_s, stop_s, None

    def __call__(self):
        time.sleep(self.before_s)
        self.server.send_signal(signal.SIGSTOP)
        since = time.monotonic()
        time.sleep(self.stop_s)
        self.server.send_signal(signal.SIGCONT)
        self.length_s = time.monotonic() - since


def allow_descriptors(count):
    """Raises the limit of open files for this process and its children, as far as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def host():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*:\s*(.*)", f.read())
    versions = []
    for name, flag in (("redis-server", "--version"), ("memcached", "-V")):
        if shutil.which(name):
            text = subprocess.run([name, flag], capture_output=True, text=True).stdout
            versions.append(f"{name} {re.search(r'[0-9]+[.][0-9.]*[0-9]', text).group(0)}")
    return (f"{os.cpu_count()} CPUs ({model.group(1) if model else platform.machine()}), Linux {platform.release()}, "
            f"{', '.join(versions)}; load average at the end {os.getloadavg()[0]:.1f}")


def put(page, begin, end, text):
    """Writes text between two markers of a page."""
    with open(page) as f:
        before, rest = f.read().split(begin)
    with open(page, "w") as f:
        f.write(before + begin + text + "\n" + end + rest.split(end, 1)[1])


def publish(text, script, write):
    """Prints a table. With `write`, also puts it between the markers that name the script in docs/results/speed.md."""
    print(text)
    if write:
        put(PAGE, f"<!-- figures: {script} --write -->\n", "<!-- end of figures -->", text)


def blocks(path, kind):
    """The payloads of one block kind in a finished recording, which may be large, each with its record size
    (recording/include/recording/recording.h)."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    with open(path, "rb") as f:
        while len(header := f.read(36)) == 36:
            block_kind, flags = struct.unpack("<HB", header[4:7])
            size, = struct.unpack("<I", header[8:12])
            raw, stored = struct.unpack("<II", header[16:24])
            if block_kind != kind:
                f.seek(stored, os.SEEK_CUR)
                continue
            payload = f.read(stored)
            if flags & 1:
                out = ctypes.create_string_buffer(raw)
                zstd.ZSTD_decompress(out, ctypes.c_size_t(raw), payload, ctypes.c_size_t(stored))
                payload = out.raw[:raw]
            yield size, payload
