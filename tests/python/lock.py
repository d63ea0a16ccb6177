#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes requirements.lock: what requirements.txt needs, directly and indirectly, with the SHA-256 of each wheel for the Pythons of
the distributions that build forktail, so that pip installs the same files as the author's (script/python).

    lock.py PYTHON     with this Python's pip; run it after a change of requirements.txt
    lock.py --check    exit status 1 if requirements.txt has a version that the lock has not
"""
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Debian 12, Ubuntu 24.04, Debian 13; arm64's Arrow for the wheel, with script/python --arch arm64.
PYTHONS = "3.11", "3.12", "3.13"
GLIBC = 17, 24, 26, 27, 28, 31, 34


def report(python, version, machine, words):
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBC] + [f"--platform=manylinux2014_{machine}"]
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--disable-pip-version-check",
                           "--only-binary=:all:", f"--python-version={version}", *platforms, "--target=unused", "--report=-", *words],
                          stdout=subprocess.PIPE, check=True)
    for item in json.loads(done.stdout)["install"]:
        yield item["metadata"]["name"].lower().replace("_", "-"), item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"]


def check():
    locked = (HERE / "requirements.lock").read_text(encoding="utf-8")
    pins = [line.split(";")[0].strip() for line in (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines() if "==" in line]
    missing = [pin for pin in pins if f"\n{pin} \\\n    --hash" not in locked]
    print(*[f"{pin} is not in requirements.lock. Run tests/python/lock.py" for pin in missing], sep="\n")
    return 1 if missing else 0


def main(python):
    source = HERE / "requirements.txt"
    found = {}
    for version in PYTHONS:
        for name, number, digest in report(python, version, "x86_64", ["-r", str(source)]):
            found.setdefault((name, number), {}).setdefault(version, set()).add(digest)
    pyarrow = next(line for line in source.read_text(encoding="utf-8").splitlines() if line.startswith("pyarrow=="))
    for name, number, digest in report(python, PYTHONS[0], "aarch64", ["--no-deps", pyarrow]):
        found[name, number].setdefault(PYTHONS[0], set()).add(digest)
    lines = ["# Written by lock.py from requirements.txt."]
    for (name, number), by_version in sorted(found.items()):
        only = "" if len(by_version) == len(PYTHONS) else " ; " + " or ".join(f'python_version == "{v}"' for v in by_version)
        hashes = sorted(set().union(*by_version.values()))
        lines.append(f"{name}=={number}{only} \\\n" + " \\\n".join(f"    --hash=sha256:{digest}" for digest in hashes))
    (HERE / "requirements.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(check() if sys.argv[1] == "--check" else main(sys.argv[1]))
