# SPDX-License-Identifier: MIT
"""A virtual machine without a root disk: an initramfs with the tested programs, booted in QEMU without acceleration.

The guest writes its results as a tar archive to a disk. Its serial console goes to a file.
"""
import contextlib
import os
import shutil
import subprocess
import tarfile

from machines import HERE, MACHINES, ROOT, program
from packages import Missing, busybox

BIN = MACHINES["amd64"].bin()
LIMIT_S = 250  # a variant, including the boot
SCRIPT_LIMIT_S = 200  # and without
# Slow enough for an fsync to be visible.
DISK_WRITES_A_SECOND = 40


class Script:
    """A script of guest/, with its arguments: the name of its results, options, and the seconds after which it is ended."""

    def __init__(self, script, limit_s=SCRIPT_LIMIT_S, name=None, options=""):
        self.script, self.limit_s, self.name, self.options = script, limit_s, name or script, options


def begin_initramfs(directory, kernel, *modules):
    """Returns a directory with a shell and the kernel's modules: those for disks, and others."""
    tree = os.path.join(directory, "initramfs")
    for name in ("bin", "dev", "proc", "sys", "tmp", "data", "modules", "etc"):
        os.makedirs(os.path.join(tree, name))
    box = os.path.join(tree, "bin", "busybox")
    shutil.copy(busybox(kernel.architecture), box)
    # The host's has the same commands, and can run here.
    for applet in subprocess.run([busybox(), "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            os.symlink("busybox", os.path.join(tree, "bin", applet))
    modules = kernel.modules(*modules)
    for name, data in modules.items():
        with open(os.path.join(tree, "modules", name), "wb") as f:
            f.write(data)
    with open(os.path.join(tree, "modules", "order"), "w") as f:
        f.write("".join(name + "\n" for name in modules))
    return tree


def make_initramfs(directory, kernel, variants, on_disk=(), programs=("redis-server", "redis-cli", "nice")):
    """Returns the path of a compressed cpio archive, with programs of the machine, and the libraries of programs on the disk too."""
    tree = begin_initramfs(directory, kernel)
    machine = MACHINES[kernel.architecture]
    for path in [os.path.join(machine.bin(), name) for name in ("forktail-record", "forktail-load")] + [
            machine.program(name) for name in programs]:
        to = os.path.join(tree, "bin", os.path.basename(path))
        if os.path.islink(to):  # one of busybox' own commands
            os.unlink(to)
        shutil.copy(os.path.realpath(path), to)
        copy_libraries(machine, path, tree)
    for path in on_disk:
        copy_libraries(machine, path, tree)
    for name, text in (("etc/passwd", "root:x:0:0::/:/bin/sh\n"), ("etc/group", "root:x:0:\n"),
                       ("variants", "".join(f"{v.name} {v.script} {v.limit_s} {v.options}\n" for v in variants))):
        with open(os.path.join(tree, name), "w") as f:
            f.write(text)
    for name in {"init", *(v.script for v in variants)}:
        shutil.copy(os.path.join(HERE, "guest", name), os.path.join(tree, name))
        os.chmod(os.path.join(tree, name), 0o755)
    return pack(tree, directory)


def copy_libraries(machine, path, tree):
    for library, file in machine.libraries(path).items():
        to = tree + library
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to):
            shutil.copy(file, to)


def pack(tree, directory):
    path = os.path.join(directory, "initramfs.gz")
    with open(path, "wb") as out:
        files = subprocess.Popen(["find", ".", "-print0"], cwd=tree, stdout=subprocess.PIPE)
        archive = subprocess.Popen([program("cpio"), "--null", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=tree,
                                   stdin=files.stdout, stdout=subprocess.PIPE)
        subprocess.run(["gzip", "-1"], stdin=archive.stdout, stdout=out, check=True)
        if files.wait() or archive.wait():
            raise Missing("cpio failed to make the initramfs")
    return path


def boot(directory, kernel, variants):
    """Runs the scenario's variants in a guest. Returns the directory with their results."""
    initramfs = make_initramfs(directory, kernel, variants)
    data = os.path.join(directory, "data.img")
    make_disk(data, 512)
    subprocess.run([program("mkfs.ext4"), "-q", "-F", data], check=True)
    return run(directory, kernel, initramfs, f"{data},throttling.iops-write={DISK_WRITES_A_SECOND}", LIMIT_S * len(variants),
               "dmesg")


def make_disk(path, megabytes):
    with open(path, "wb") as f:
        f.truncate(megabytes << 20)


def run(directory, kernel, initramfs, first_disk, limit_s, last):
    """Boots a guest that writes an archive to its second disk, with the file `last` at the end. Returns the directory with the
    archive's files."""
    out, console = os.path.join(directory, "out.img"), os.path.join(directory, "console")
    make_disk(out, 256)
    disk = "if=virtio,format=raw,cache=unsafe,file="
    machine = MACHINES[kernel.architecture]
    # One host thread for both CPUs: with one each, QEMU 7.2 sometimes runs kernel code that was just patched (a static
    # key, a trampoline) in its old form, and 6.12 ends with an unexpected int3.
    command = [program(machine.emulator[0]), *machine.emulator[1:], "-accel", "tcg,thread=single", "-smp", "2", "-m", "1800",
               "-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{console}", "-kernel", kernel.image,
               "-initrd", initramfs, "-append", f"{machine.settings} quiet panic=-1 mitigations=off",
               "-drive", f"{disk}{first_disk}", "-drive", f"{disk}{out}"]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=limit_s, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as why:
        raise RuntimeError(f"QEMU: {type(why).__name__}; the guest's last output: {last_words(console)}") from None
    runs = os.path.join(directory, "runs")
    with contextlib.suppress(tarfile.TarError), tarfile.open(out) as archive:
        archive.extractall(runs)
    if not os.path.exists(os.path.join(runs, last)):
        raise RuntimeError(f"the guest left no results; its last output: {last_words(console)}")
    return runs


def last_words(console):
    if not os.path.exists(console):
        return "none"
    with open(console, errors="replace") as f:
        return f.read()[-600:]
