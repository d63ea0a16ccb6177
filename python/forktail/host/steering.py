# SPDX-License-Identifier: MIT
"""The CPUs of the kernel's network code: receive and send steering (RPS, XPS) of an interface, and threads in place of
soft interrupts (threaded NAPI). The keeper restores settings of the host, however the session ends; those of a
network's interfaces end with it.
"""

import os
from pathlib import Path

from forktail.failure import Failure
from forktail.host.keeper import Leftover, write_setting
from forktail.host.machine import first_line
from forktail.host.session import Session, parse_cpus

LOOPBACK_INTERFACE = Path("/sys/class/net/lo")


def _mask(cpus: set[int]) -> str:
    """In the format of /sys: 32 bits per word, the highest first."""
    mask = sum(1 << cpu for cpu in cpus)
    words = [mask >> shift & 0xFFFFFFFF for shift in range(0, max(mask.bit_length(), 1), 32)]
    return ",".join([f"{words[-1]:x}"] + [f"{word:08x}" for word in words[-2::-1]])


def _named(cpus: str) -> set[int]:
    """ "on": all CPUs; "off": none; else a list such as "0-1,3"."""
    if cpus == "off":
        return set()
    return set(parse_cpus(first_line("/sys/devices/system/cpu/online") if cpus == "on" else cpus))


def _set(session: Session | None, file: str, value: str) -> None:
    if session:
        session.keeper.keep(Leftover.SETTING, file, Path(file).read_text().rstrip("\n"))
    write_setting(file, value)


def spread_softirqs(session: Session | None, interface: Path, cpus: str) -> None:
    """Sets receive and send steering (RPS, XPS) of the interface (its directory of /sys) to these CPUs: "on" is all,
    "off" is none: then softirqs stay on the CPU of the interrupt, or of the sender on the loopback interface and on a
    veth pair. `session` restores it; None: the interface ends with its network. Raises Failure with what this host
    lacks."""
    queues = interface / "queues"
    files = [str(path) for path in queues.glob("rx-*/rps_cpus")]
    if not files:
        raise Failure(f"cannot spread the soft interrupts of {interface.name}: it has no receive queues")
    # With a single send queue there is nothing to steer, and the kernel has no xps_cpus (the loopback interface).
    if len(list(queues.glob("tx-*"))) > 1:
        files += [f"{path}/xps_cpus" for path in queues.glob("tx-*")]
    for file in files:
        try:
            _set(session, file, _mask(_named(cpus)))
        except OSError as e:
            raise Failure(
                f"cannot spread the soft interrupts of {interface.name}: {file}: {os.strerror(e.errno or 0)}"
            ) from e


def _poll_threads(name: str) -> list[int]:
    """The kernel threads that poll the interface."""
    comms = [(path, first_line(str(path))) for path in Path("/proc").glob("[0-9]*/comm")]
    return [int(path.parent.name) for path, comm in comms if comm.startswith(f"napi/{name}-")]


def thread_softirqs(session: Session | None, interface: Path, cpus: str) -> None:
    """Polls the interface in kernel threads on these CPUs, or again in soft interrupts ("off"). `session` as in
    spread_softirqs. Raises Failure with what this host lacks. make_link has `polls` for it."""
    try:
        _set(session, f"{interface}/threaded", "0" if cpus == "off" else "1")
        threads = [] if cpus == "off" else _poll_threads(interface.name)
        for thread in threads:
            os.sched_setaffinity(thread, _named(cpus))
    except OSError as e:
        raise Failure(f"cannot poll {interface.name} in threads: {os.strerror(e.errno or 0)}") from e
    if cpus != "off" and not threads:
        raise Failure(f"cannot poll {interface.name} in threads: the kernel started none")
