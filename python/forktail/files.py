# SPDX-License-Identifier: MIT
"""Files that are complete or absent, so that a reader or a resumed run never sees half of one, as common/files.h writes
them.

The output's directory may be anybody's: a temporary name is new and cannot be guessed, and no other user's link is
followed.
"""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from forktail.failure import Failure

UNFINISHED = ".part-"  # what a temporary name has behind the requested one; a killed program leaves it behind


def read_file(path: Path | str) -> str:
    """The content of a file, with surrogates for bytes that are not UTF-8; "" if it cannot be read."""
    try:
        return Path(path).read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""


def _trusted(user: int) -> bool:
    """The user who runs the program, also by sudo, or root."""
    by = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return user in (0, os.geteuid(), os.getuid()) or by == str(user)


def _check_link(path: Path) -> None:
    """Raises Failure for a symbolic link of another user, or in another user's directory."""
    kernel = str(path) in ("/dev/stdout", "/dev/stderr") or str(path).startswith(("/dev/fd/", "/proc/self/fd/"))
    link = path.is_symlink() and not kernel
    if link and not (_trusted(path.lstat().st_uid) and _trusted(path.parent.stat().st_uid)):
        why = "it is a symbolic link of another user, or in another user's directory"
        raise Failure(f"cannot write {path}: {why}")


def replace_file(path: Path | str, content: str | bytes) -> None:
    """Writes a temporary file in the same directory, then renames it. The file has the mode of a new one.

    What is not a regular file (a pipe, /dev/stdout, a link) is written directly. Surrogates become the bytes that they
    stand for. Raises Failure.
    """
    path = Path(path)
    content = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    if path.is_dir():
        raise Failure(f"{path} is a directory, not a file")
    temporary = None
    try:
        _check_link(path)
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            path.write_bytes(content)
            return
        file, temporary = tempfile.mkstemp(prefix=path.name + UNFINISHED, dir=path.parent)
        with open(file, "wb") as out:
            out.write(content)
            out.flush()
            mask = os.umask(0o022)
            os.umask(mask)
            os.fchmod(file, 0o666 & ~mask)
            os.fsync(file)
        os.rename(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise Failure(f"cannot write {path}: {error.strerror}") from None


def write_json(path: Path | str, document: Any, indent: int | str) -> None:
    """Writes a document as JSON, with replacement characters for bytes that are not UTF-8. Raises Failure."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    replace_file(path, text.encode(errors="surrogateescape").decode(errors="replace") + "\n")


def make_directory(path: Path | str, name: str = "") -> None:
    """Makes a directory and those above it, if they do not exist. `name`: the path in the message. Raises Failure."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot create the directory {name or path}: {error.strerror}") from error


def holds_nothing(directory: Path | str) -> bool:
    """True if a directory contains no file, except an unfinished one of replace_file: its run was killed before it
    wrote its identity."""
    try:
        return os.path.isdir(directory) and all(
            UNFINISHED in name for _, _, names in os.walk(directory) for name in names
        )
    except OSError:
        return False
