# SPDX-License-Identifier: MIT
"""The CPUs of the kernel's network code: receive and send steering (RPS, XPS) of an interface. The keeper restores
the settings, however the session ends.
"""

import os
from pathlib import Path

from forktail.failure import Failure
from forktail.host.keeper import Leftover, write_setting
from forktail.host.machine import first_line
from forktail.host.session import Session, parse_cpus


def _mask_of_all_cpus() -> str:
    """The mask of all online CPUs in the format of /sys: 32 bits per word, the highest first."""
    mask = sum(1 << cpu for cpu in parse_cpus(first_line("/sys/devices/system/cpu/online")))
    words = [mask >> shift & 0xFFFFFFFF for shift in range(0, mask.bit_length(), 32)]
    return ",".join([f"{words[-1]:x}"] + [f"{word:08x}" for word in words[-2::-1]])


def spread_softirqs(session: Session, interface: str, on: bool) -> None:
    """Sets receive and send steering (RPS, XPS) of the interface to all CPUs, or to none: then softirqs stay on the
    CPU of the interrupt, or of the sender on the loopback interface. Raises Failure with what this host lacks."""
    queues = Path("/sys/class/net", interface, "queues")
    files = [str(path) for path in queues.glob("rx-*/rps_cpus")]
    if not files:
        raise Failure(f"cannot spread the soft interrupts of {interface}: it has no receive queues")
    # With a single send queue there is nothing to steer, and the kernel has no xps_cpus (the loopback interface).
    if len(list(queues.glob("tx-*"))) > 1:
        files += [f"{path}/xps_cpus" for path in queues.glob("tx-*")]
    for file in files:
        try:
            was = Path(file).read_text().rstrip("\n")
            session.keeper.keep(Leftover.SETTING, file, was)
            write_setting(file, _mask_of_all_cpus() if on else "0")
        except OSError as e:
            raise Failure(
                f"cannot spread the soft interrupts of {interface}: {file}: {os.strerror(e.errno or 0)}"
            ) from e
