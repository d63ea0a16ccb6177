# SPDX-License-Identifier: MIT
"""The kernel's own measurements of a thread's lost time, from interfaces that forktail does not use: /proc/*/schedstat
and the delay accounting of taskstats. Also which thread read which descriptor, from the kernel's own trace. The truth
suite measures injections with them.

Delay accounting is off by default. DelayAccounting enables it while it is held. On a kernel without it, cases that need
it are skipped.
"""
import contextlib
import os
import re
import socket
import struct
import subprocess

from trial import Skip

# linux/taskstats.h, version 13: offsets of 64-bit fields in struct taskstats.
FIELDS = {
    "run-queue": 24,  # cpu_delay_total
    "block-io": 40,  # blkio_delay_total
    "page-in": 56,  # swapin_delay_total
    "reclaim": 320,  # freepages_delay_total
    "cow-copy": 408,  # wpcopy_delay_total
}
SYSCTL = "/proc/sys/kernel/task_delayacct"
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID = 1, 1
TASKSTATS_TYPE_STATS, TASKSTATS_TYPE_AGGR_PID = 3, 4
NLM_F_REQUEST, NLMSG_ERROR = 1, 2


def attribute(kind, payload):
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind & 0x3FFF, data[4:length]
        data = data[length + 3 & ~3:]


class DelayAccounting:
    """Delays of threads in nanoseconds, by cause."""

    def __init__(self):
        self.netlink = None
        if not os.path.exists(SYSCTL):
            return
        with open(SYSCTL) as f:
            self.before = f.read()
        with open(SYSCTL, "w") as f:
            f.write("1")
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)  # NETLINK_GENERIC
        self.netlink.bind((0, 0))
        reply = self.ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0"))
        self.family = struct.unpack("=H", dict(attributes(reply))[CTRL_ATTR_FAMILY_ID])[0]

    def ask(self, family, command, payload):
        message = struct.pack("=BBH", command, 1, 0) + payload
        self.netlink.send(struct.pack("=IHHII", 16 + len(message), family, NLM_F_REQUEST, 1, 0) + message)
        reply = self.netlink.recv(65536)
        kind = struct.unpack_from("=IH", reply)[1]
        if kind == NLMSG_ERROR:
            raise OSError(-struct.unpack_from("=i", reply, 16)[0], "taskstats")
        return reply[20:]

    def of(self, tid):
        if not self.netlink:
            raise Skip("this kernel has no delay accounting")
        reply = self.ask(self.family, TASKSTATS_CMD_GET, attribute(TASKSTATS_CMD_ATTR_PID, struct.pack("=I", tid)))
        for kind, body in attributes(reply):
            if kind == TASKSTATS_TYPE_AGGR_PID:
                for inner, stats in attributes(body):
                    if inner == TASKSTATS_TYPE_STATS:
                        return {name: struct.unpack_from("=Q", stats, at)[0] if len(stats) >= at + 8 else 0
                                for name, at in FIELDS.items()}
        raise OSError(0, "taskstats gave no statistics")

    def close(self):
        if not self.netlink:
            return
        self.netlink.close()
        with open(SYSCTL, "w") as f:
            f.write(self.before)


def run_delay_ns(tid):
    """Time a thread was runnable and did not run, exact at the moment when it last got a CPU."""
    with open(f"/proc/{tid}/schedstat") as f:
        return int(f.read().split()[1])


def threads(pid):
    """{tid: name} of a process."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm") as f:
            found[int(tid)] = f.read().strip()
    return found


class Reads:
    """Every read of a process' threads from now on, recorded by a separate instance of the kernel's trace."""

    CALLS = ("read", "readv", "recvfrom", "recvmsg")
    LINE = re.compile(r"-(\d+)\s+\[\d+\].*: sys_\w+\(fd: (?:0x)?([0-9a-f]+)")

    def __init__(self, trial, pid):
        self.path = f"/sys/kernel/tracing/instances/forktail-truth-{os.getpid()}"
        try:
            os.mkdir(self.path)
        except OSError as e:
            raise Skip(f"{self.path}: {e.strerror}") from e
        trial.stack.callback(os.rmdir, self.path)
        self.set("set_event_pid", " ".join(map(str, threads(pid))))
        for call in self.CALLS:
            self.set(f"events/syscalls/sys_enter_{call}/enable", 1)

    def set(self, name, value):
        with open(os.path.join(self.path, name), "w") as f:
            f.write(str(value))

    def by_descriptor(self):
        """{descriptor: threads that read it}. Stops the tracing."""
        for call in self.CALLS:
            self.set(f"events/syscalls/sys_enter_{call}/enable", 0)
        found = {}
        with open(os.path.join(self.path, "trace")) as f:
            for line in f:
                if match := self.LINE.search(line):
                    found.setdefault(int(match[2], 16), set()).add(int(match[1]))
        return found


def sockets(pid):
    """{descriptor: inode} of a process' sockets."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):  # closed since
            if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}")):
                found[int(fd)] = int(match[1])
    return found


def other_ends():
    """{inode: inode of the other end} of this host's connections, TCP over IPv4 and Unix."""
    found, by_ends = {}, {}
    with open("/proc/net/tcp") as f:
        for words in map(str.split, list(f)[1:]):
            by_ends[words[1], words[2]] = int(words[9])
    for (local, remote), inode in by_ends.items():
        if (remote, local) in by_ends:
            found[inode] = by_ends[remote, local]
    listed = subprocess.run(["ss", "-x", "-n", "-H", "state", "connected"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    for line in listed.stdout.splitlines():  # ... address inode address inode
        words = line.split()
        found[int(words[-3])] = int(words[-1])
    return found


def served(load, server):
    """The server's descriptor of each of a load generator's connections, in the order in which it opened them."""
    descriptors = {inode: fd for fd, inode in sockets(server).items()}
    ends = other_ends()
    return [descriptors[ends[inode]] for _, inode in sorted(sockets(load).items()) if ends.get(inode) in descriptors]
