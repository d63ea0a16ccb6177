# SPDX-License-Identifier: MIT
"""Files are opened for writing in one place (common/text/include/common/text.h, files.h), which follows no other user's links.
In Python that is python/forktail/files.py; other programs in Python print, or write what their caller made.

Every other place that opens for writing is listed here with the reason why that is safe. With --refuses SOURCE, a line that opens a
file is added to a copy of that source and must be found.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("analysis", "cli", "common", "hosts", "live", "loader", "loadgen", "python", "recording")
WRITES = {
    "c": re.compile(r'fopen\([^)]*"[wax]|std::ofstream|O_CREAT|\bcreat\(|freopen\('),
    "py": re.compile(r'\bopen\(.*["\'][rb]?[wax+]|\.write_(text|bytes)\(|O_CREAT|os\.rename|shutil\.(copy|move)'),
}
SAFE = {
    "common/text/output.c": "the one place",
    "common/process.cc": "snapshots' explanations, with O_NOFOLLOW, in the ring",
    "analysis/run/ring.cc": "marks, with O_NOFOLLOW",
    "analysis/exports/csv.cc": "inside a new directory of files.h",
    "analysis/exports/data_set.cc": "inside a new directory of files.h",
    "hosts/rank/host_run.cc": "a run directory that was made for this run",
    "hosts/rank/main.cc": "a run directory that was made for this run",
    "live/guard/metrics.cc": "a temporary file with O_NOFOLLOW",
    "live/follow/snapshot.cc": "a new file (O_EXCL), and a snapshot that was just made",
    "loader/system/privileges.c": "a filter's numbers",
    "python/forktail/load_generator.py": "a new temporary directory",
    "python/forktail/files.py": "the one place in Python",
    "python/forktail/host/keeper.py": "its own name in /proc",
    "python/forktail/host/session.py": "a file or a cgroup that its caller made",
    "python/forktail/host/swap.py": "a temporary directory of the session",
    "python/forktail/lab/charts.py": "a temporary directory of the session",
    "python/forktail/sql.py": "standard output",
    "recording/writer.c": "recordings: new files, without links",
}


def language(path):
    """The key of WRITES; None: neither C, C++ nor Python, or a test."""
    if "tests" in path.parts:
        return None
    return {".c": "c", ".cc": "c", ".h": "c", ".py": "py"}.get(path.suffix)


def openings(path, text, writes):
    for number, line in enumerate(text.splitlines(), 1):
        if writes.search(re.split("//|#", line)[0]):
            yield f"{path}:{number}: {line.strip()}"


def main():
    found, used = [], set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            kind = language(path.relative_to(ROOT))
            if not kind:
                continue
            text = path.read_text(encoding="utf-8")
            if sys.argv[1:] == ["--refuses", name]:
                text += {"c": '\nstatic void added(const char *path) { fopen(path, "w"); }\n', "py": '\nopen(path, "w")\n'}[kind]
            lines = list(openings(name, text, WRITES[kind]))
            if lines and name in SAFE:
                used.add(name)
            elif lines:
                found += lines
    for line in found:
        print(f"{line}\n  opens a file for writing: use output_open(), output_fopen() or Pending, which follow no other user's links")
    for name in sorted(SAFE.keys() - used):
        print(f"{name} is listed in tests/checks/outputs.py and opens nothing for writing")
    return 1 if found or SAFE.keys() - used else 0


if __name__ == "__main__":
    sys.exit(main())
