# SPDX-License-Identifier: MIT
"""Settings of the host in /sys and /proc/sys, which the keeper restores, however the session ends."""

import os
import re
from pathlib import Path

from forktail.failure import Failure
from forktail.host.keeper import Leftover, write_setting
from forktail.host.session import Session


def _restored_by(path: str, before: str) -> tuple[str, str]:
    """The file and the value that bring a setting back. Of a size in bytes and a ratio (vm.dirty_*) the kernel uses
    one, shows 0 for the other, and takes no 0: the one in use brings both back."""
    if before == "0":
        for own, other in (("_bytes", "_ratio"), ("_ratio", "_bytes")):
            used = Path(path.removesuffix(own) + other)
            if path.endswith(own) and used.exists():
                return str(used), used.read_text().rstrip("\n")
    return path, before


def set_host(session: Session, path: str, value: str) -> None:
    """Writes a setting. Raises Failure with the kernel's reason."""
    try:
        before = Path(path).read_text().rstrip("\n")
        chosen = re.search(r"\[(.+?)\]", before)  # "always [madvise] never"
        file, content = _restored_by(path, chosen[1] if chosen else before)
        if not session.settings.keys() & {path, file}:  # else they have the value from before the session already
            session.keeper.keep(Leftover.SETTING, file, content)
            session.settings[file] = content
        write_setting(path, value)
    except OSError as e:
        raise Failure(f"cannot set {path} to {value}: {os.strerror(e.errno or 0)}") from e


def restore_host(session: Session) -> None:
    """Gives every setting its value from before the session. Raises Failure with the kernel's reason."""
    for file, content in session.settings.items():
        try:
            write_setting(file, content)
        except OSError as e:
            raise Failure(f"cannot set {file} to {content}: {os.strerror(e.errno or 0)}") from e
