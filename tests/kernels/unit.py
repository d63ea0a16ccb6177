# SPDX-License-Identifier: MIT
"""The unit tests of a build for another machine, in a guest of that machine. ctest knows the tests. Those that are programs of
the build run in the guest, with the source tree at its usual path; the others need programs that the guest lacks.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import guest
from machines import ROOT
from packages import Kernel

LIMIT_S = 1800
PROGRAMS = ("sleep", "chrt", "nice")  # which tests start, and busybox does not have, or not under another name
DISK_MB = 800


class Unit:
    """One test: its name, its command, and what the guest left of it."""

    def __init__(self, test):
        self.name, self.command = test["name"], test.get("command", ["(not built)"])
        self.status, self.seconds, self.output = None, 0.0, ""

    @property
    def result(self):
        """Catch2's last line, or that of a replayed corpus."""
        found = re.findall(r"^(?:All tests passed.*|test cases:.*|assertions:.*)$", self.output, flags=re.M)
        return "; ".join(found) or "status " + (self.status or "unknown: the guest did not run it")

    @property
    def lacks(self):
        """Why a guest cannot run it."""
        names = [os.path.basename(word) for word in self.command]
        return next((f"no {name}" for name in names if name in ("node", "cmake", "python", "python3")), "it checks the host's files")

    def failures(self):
        return "" if self.status == "0" else self.output[-3000:]


def tests(build, wanted):
    """(those that a guest can run, the others) of tests whose names match."""
    listed = subprocess.run(["ctest", "--show-only=json-v1", "-L", "^unit$", "-R", wanted], cwd=build, stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, check=True).stdout
    found = [Unit(test) for test in json.loads(listed)["tests"]]
    programs = os.path.join(build, "tests") + os.sep
    can = [t for t in found if t.command[0].startswith(programs)]
    return can, [t for t in found if t not in can]


def make_disk(directory, build, units):
    """An ext4 image with the committed files and the built programs, at their paths below /."""
    tree = os.path.join(directory, "tree")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.split("\0")[:-1]:
        to = os.path.join(tree, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), to, follow_symlinks=False)
    to = os.path.join(tree, os.path.relpath(build, ROOT))
    shutil.copytree(os.path.join(build, "bin"), os.path.join(to, "bin"))
    os.makedirs(os.path.join(to, "tests"))
    for name in os.listdir(os.path.join(build, "tests")):
        path = os.path.join(build, "tests", name)
        if path in [t.command[0] for t in units] or ".so" in name:
            shutil.copy(path, os.path.join(to, "tests"))
    with open(os.path.join(tree, "units"), "w") as f:
        f.write("".join(f"{t.name} {' '.join(t.command)}\n" for t in units))
    with open(os.path.join(tree, "root"), "w") as f:
        f.write(ROOT + "\n")
    image = os.path.join(directory, "data.img")
    guest.make_disk(image, DISK_MB)
    subprocess.run([guest.program("mkfs.ext4"), "-q", "-F", "-d", tree, image], check=True)
    shutil.rmtree(tree)
    return image


def run(version, machine, wanted, keep):
    """Boots a kernel and runs unit tests there. Returns whether all passed."""
    units, others = tests(machine.build, wanted)
    kernel = Kernel(version, machine.architecture)
    with tempfile.TemporaryDirectory(prefix="forktail-unit-") as directory:
        built = [os.path.join(machine.build, "bin", name) for name in os.listdir(os.path.join(machine.build, "bin"))
                 if name != "forktail-parquet"]  # Arrow is no package of the sysroot
        initramfs = guest.make_initramfs(directory, kernel, [guest.Script("unit", LIMIT_S)],
                                         [t.command[0] for t in units] + built, PROGRAMS)
        disk = make_disk(directory, machine.build, units)
        since = time.monotonic()
        left = os.path.join(guest.run(directory, kernel, initramfs, disk, LIMIT_S, "dmesg"), "unit")
        print(f"{kernel.release}: {time.monotonic() - since:.0f} s from power-on to power-off")
        for line in open(os.path.join(left, "status")):
            name, status, seconds = line.split()
            unit = next(t for t in units if t.name == name)
            unit.status, unit.seconds = status, float(seconds)
            with open(os.path.join(left, name), errors="replace") as f:
                unit.output = f.read()
        if keep:
            shutil.copytree(left, os.path.join(keep, version), dirs_exist_ok=True)
    for unit in units:
        print(f"  {unit.name} ({unit.seconds:.0f} s): {unit.result}\n{unit.failures()}".rstrip())
    passed = [unit for unit in units if unit.status == "0"]
    print(f"{len(passed)} of {len(units)} unit tests passed")
    needed = {}
    for other in others:
        needed.setdefault(other.lacks, []).append(other.name)
    for why, names in needed.items():
        print(f"not run in the guest ({why}): {' '.join(names)}")
    return 0 < len(passed) == len(units)
