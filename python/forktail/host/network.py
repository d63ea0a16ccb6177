# SPDX-License-Identifier: MIT
"""A network between a server and everybody else: a network namespace for the server, connected by a veth pair whose
two ends may send at a limited rate (tc's token bucket, tbf).

A process holds the namespace. When it ends, the kernel removes the namespace and both ends, so nothing can be left
behind.
"""

import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

from forktail.failure import Failure
from forktail.host.session import Child, Command, Session
from forktail.servers.listen import await_true

_PATIENCE_S = 10
_BURST = "64kb"  # at least the largest packet of a veth pair, which the kernel divides later than a network card


@dataclass
class Link:
    """A namespace behind a link. host: its address. under: the command that starts a program in it. interfaces: the two
    ends, as directories of /sys, the namespace's first."""

    holder: Child
    host: str
    under: list[str]
    interfaces: list[Path] = field(default_factory=list)

    def close(self, session: Session) -> None:
        """Ends the namespace; its programs must have ended."""
        self.holder.needed = False
        session.wait_for_end(self.holder, signal.SIGTERM, _PATIENCE_S)


def _configure(session: Session, *words: str) -> None:
    child = session.start(Command(name=words[0], argv=list(words)))
    await_true(session, _PATIENCE_S, f"{words[0]} did not end", lambda: child.ended)
    child.check()


def _free_addresses(pid: int) -> tuple[str, str]:
    """Two neighbours of the range for benchmarks (198.18.0.0/15, RFC 2544), which no network has."""
    block = pid % (1 << 15)
    return tuple(f"198.{18 + (block >> 14)}.{block >> 6 & 255}.{(block & 63) * 4 + i}" for i in (1, 2))  # type: ignore[return-value]


def make_link(session: Session, rate: str, queue_bytes: int, polls: bool = False) -> Link:
    """Makes a namespace behind a link that carries `rate` in each direction (tc's format, "100mbit"; "": no limit),
    with a queue of so many bytes before it, beyond which packets are dropped. polls: both ends poll (NAPI), like a
    network card. Raises Failure with what this host lacks."""
    for program in ("ip", "tc", "nsenter", "unshare", *(["ethtool"] if polls else [])):
        if not shutil.which(program):
            raise Failure(f"a network needs {program} (packages iproute2, util-linux and ethtool)")
    # /sys shows the interfaces of the namespace in which it is mounted.
    start = "mount -t sysfs sysfs /sys && exec sleep infinity"
    holder = session.start(Command(name="network", argv=["unshare", "--net", "--mount", "sh", "-c", start]))
    holder.needed = True
    theirs = Path(f"/proc/{holder.pid}/ns/net")

    def is_separate() -> bool:
        try:
            return os.readlink(theirs) != os.readlink("/proc/self/ns/net")
        except OSError:  # it has ended: the next step of the session reports how
            return False

    await_true(session, _PATIENCE_S, "no network namespace", is_separate)
    under = ["nsenter", f"--net={theirs}"]
    near, far = f"ft{holder.pid}a", f"ft{holder.pid}b"
    our_host, host = _free_addresses(holder.pid)
    limits = ["rate", rate, "burst", _BURST, "limit", str(queue_bytes)]
    words = ["ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", str(holder.pid)]
    _configure(session, *words)
    for prefix, name, address in (([], near, our_host), (under, far, host)):
        _configure(session, *prefix, "ip", "address", "add", f"{address}/30", "dev", name)
        _configure(session, *prefix, "ip", "link", "set", name, "up")
        if polls:
            # A veth pair polls only with GRO, and only packets of a sender that does not leave segmentation to it.
            _configure(session, *prefix, "ethtool", "-K", name, "gro", "on", "tso", "off")
        if rate:
            _configure(session, *prefix, "tc", "qdisc", "add", "dev", name, "root", "tbf", *limits)
    _configure(session, *under, "ip", "link", "set", "lo", "up")
    interfaces = [Path(f"/proc/{holder.pid}/root/sys/class/net", far), Path("/sys/class/net", near)]
    await_true(session, _PATIENCE_S, "no /sys in the network namespace", interfaces[0].exists)
    return Link(holder, host, under, interfaces)
