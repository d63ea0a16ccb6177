# SPDX-License-Identifier: MIT
"""Settings of the host in /sys and /proc/sys, which the keeper restores, however the session ends."""

import os
import re
from pathlib import Path

from forktail.failure import Failure
from forktail.host.keeper import Leftover, write_setting
from forktail.host.session import Session


def set_host(session: Session, path: str, value: str) -> None:
    """Writes a setting. Raises Failure with the kernel's reason."""
    try:
        before = Path(path).read_text().rstrip("\n")
        chosen = re.search(r"\[(.+?)\]", before)  # "always [madvise] never"
        session.keeper.keep(Leftover.SETTING, path, chosen[1] if chosen else before)
        write_setting(path, value)
    except OSError as e:
        raise Failure(f"cannot set {path} to {value}: {os.strerror(e.errno or 0)}") from e
