# SPDX-License-Identifier: MIT
"""The machines of guests: QEMU's options, and where a guest's programs come from. A class for each."""
import os
import re
import shutil
import subprocess

from packages import AMD64, Missing

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{name} is not installed (script/kernels-setup)")
    return path


class Host:
    """x86-64, with this machine's own programs and libraries."""

    architecture, name = AMD64, "x86-64"
    build = os.path.join(ROOT, "build")
    emulator = ["qemu-system-x86_64", "-M", "pc", "-cpu", "max"]
    # Emulated CPUs' time stamp counters agree. A kernel that doubts it reads the time from an emulated device instead.
    settings = "console=ttyS0 tsc=reliable"

    def bin(self):
        return os.environ.get("FORKTAIL_BIN_DIR", os.path.join(self.build, "bin"))

    def program(self, name):
        return program(name)

    def libraries(self, path):
        """{path in the guest: file} of what a program's loader needs."""
        output = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        return {library: library for library in re.findall(r"(/\S+) \(0x", output)}


class Arm64:
    """arm64, with the programs and libraries of script/sysroot. Its CPU has pointer authentication."""

    architecture, name = "arm64", "arm64"
    build = os.path.join(ROOT, "build-arm64")
    sysroot = os.path.join(ROOT, "build-sysroot-arm64")
    emulator = ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"]
    settings = "console=ttyAMA0"

    def bin(self):
        return os.path.join(self.build, "bin")

    def program(self, name):
        path = os.path.join(self.sysroot, "usr/bin", name)
        if not os.path.exists(path):
            raise Missing(f"{path} is missing. Run script/kernels --arch arm64")
        return path

    def libraries(self, path):
        """Likewise, from the files' own lists: the host cannot run them."""
        found, left = {}, [path]
        while left:
            output = subprocess.run([program("readelf"), "-ld", left.pop()], capture_output=True, text=True, check=True).stdout
            names = [f"/usr/lib/aarch64-linux-gnu/{name}" for name in re.findall(r"\(NEEDED\).*\[(\S+)\]", output)]
            for name in names + re.findall(r"program interpreter: (/\S+)\]", output):
                if name not in found:
                    found[name] = os.path.realpath(self.sysroot + name)
                    left.append(found[name])
        return found


MACHINES = {machine.architecture: machine for machine in (Host(), Arm64())}
