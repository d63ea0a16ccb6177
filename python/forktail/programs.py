# SPDX-License-Identifier: MIT
"""Where the programs are that the package starts (forktail, forktail-load, forktail-record), and how they are ended.

The package is used from the source tree, from a prefix and from a wheel. A program is looked for in $FORKTAIL_BIN_DIR
alone if it is set. Else beside the package (build/bin of the source tree, bin of the prefix), then on PATH.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from forktail.failure import Failure


def _directories() -> list[Path]:
    package = Path(__file__).resolve().parent
    tree = package.parents[1]
    if (tree / "CMakeLists.txt").exists():
        return [tree / "build" / "bin"]
    # PREFIX/lib/forktail/python/forktail, or PREFIX/lib/python3.11/site-packages/forktail of a wheel.
    return [directory.parent / "bin" for directory in package.parents if directory.name == "lib"]


def find_program(name: str) -> Path | None:
    """The path of a program of forktail, or None."""
    chosen = os.environ.get("FORKTAIL_BIN_DIR")
    for directory in [Path(chosen)] if chosen else _directories():
        if os.access(directory / name, os.X_OK) and (directory / name).is_file():
            return directory / name
    found = None if chosen else shutil.which(name)
    return Path(found) if found else None


def program(name: str) -> Path:
    """The path of a program of forktail. Raises Failure (status 3) if it is not installed."""
    found = find_program(name)
    if found is None:
        how = "Install forktail, or name the directory of its programs in $FORKTAIL_BIN_DIR"
        raise Failure(f"cannot find {name}. {how}")
    return found


def end(process: "subprocess.Popen[bytes]", sign: int, timeout_s: float) -> int:
    """Ends a child process by a signal, also if it is stopped; after timeout_s by SIGKILL. Returns its exit status."""
    if process.poll() is None:
        process.send_signal(sign)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()
