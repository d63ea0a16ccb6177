# SPDX-License-Identifier: MIT
"""Makes one deliberate fault at a time in the product, and checks that the tests of programs see it.

    script/mutants [WORD...]

The faults are those of tests/mutants/*.toml whose text has one of the words; all without any. A fault changes one text
of one file of this tree, which must be unchanged; it is undone after its tests, also if this is
interrupted. Prints a line per fault.
Exit status: 0 all were caught, 1 some were not, 2 usage, 3 it cannot be tried.
"""

import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FrameType

TREE = Path(__file__).resolve().parents[2]


def build(targets: list[str]) -> str:
    """The compiler's words if the targets cannot be built."""
    if not targets:
        return ""
    ran = subprocess.run(["cmake", "--build", "build", "--target", *targets], cwd=TREE, capture_output=True, text=True)
    return ran.stdout if ran.returncode else ""


def outcome(fault: dict) -> str:
    """caught, missed, or why it cannot be tried."""
    path = TREE / fault["file"]
    text = path.read_text()
    if text.count(fault["old"]) != 1:
        return f"cannot be tried: its text is {text.count(fault['old'])} times in {fault['file']}"
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", path], cwd=TREE).returncode:
        return f"cannot be tried: {fault['file']} has changes"
    try:
        path.write_text(text.replace(fault["old"], fault["new"]))
        if failed := build(fault["targets"]):
            return f"cannot be tried: it does not build\n{failed[-2000:]}"
        words = ["-q", "-x", "-p", "no:cacheprovider", *shlex.split(fault["test"])]
        ran = subprocess.run(
            ["/usr/bin/python3", "-B", "-m", "pytest", *words], cwd=TREE, capture_output=True, text=True
        )
    finally:
        path.write_text(text)
    if ran.returncode > 1:
        return f"cannot be tried: pytest ended with status {ran.returncode}\n{ran.stdout[-2000:]}"
    return "caught" if ran.returncode else "missed"


def stop(number: int, _frame: FrameType | None) -> None:
    """Ends by an exception, so that the fault is undone."""
    sys.exit(128 + number)


def main() -> int:
    """Tries the faults."""
    signal.signal(signal.SIGTERM, stop)
    faults = []
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        faults += tomllib.loads(path.read_text())["fault"]
    words = sys.argv[1:]
    chosen = [one for one in faults if not words or any(word in str(one) for word in words)]
    if not chosen:
        print(f"script/mutants: no fault has {' or '.join(words)} in its text", file=sys.stderr)
        return 2
    counts = {"caught": 0, "missed": 0, "cannot be tried": 0}
    targets = set()
    for fault in chosen:
        targets.update(fault["targets"])
        said = outcome(fault)
        counts[said.partition(":")[0]] += 1
        print(f"{said}: {fault['what']} ({fault['kind']}): {fault['file']}, {fault['test']}", flush=True)
    print(", ".join(f"{count} {how}" for how, count in counts.items()))
    if failed := build(sorted(targets)):  # the programs without a fault
        print(failed, file=sys.stderr)
        return 3
    return 3 if counts["cannot be tried"] else 1 if counts["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
