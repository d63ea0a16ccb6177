# SPDX-License-Identifier: MIT
"""A Debian system on a disk, with systemd, Redis, forktail's packages and what they depend on, and the test of the service."""
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "kernels"))
import guest  # noqa: E402
import packages  # noqa: E402
from packages import called  # noqa: E402

INCLUDED = "systemd,systemd-sysv,redis-server,ca-certificates,curl,procps,python3"
DISK_MB = 1500
NEWER = "9.0"


def place(release, architecture):
    """The end of names of a release's directories, as script/package makes them."""
    return release if architecture == packages.AMD64 else f"{release}-{architecture}"


def built(build, release, architecture):
    """The packages of script/package."""
    directory = os.path.join(build, place(release, architecture))
    debs = [path for name in ("forktail", "forktail-record") for path in glob.glob(os.path.join(directory, f"{name}_*.deb"))]
    if len(debs) != 2:
        option = "" if architecture == packages.AMD64 else f"--arch {architecture} "
        raise packages.Missing(f"no packages in {directory}. Build them with script/package {option}{release}")
    return debs


def dependencies(debs):
    """Names of the packages that these depend on, without themselves."""
    found = set()
    for deb in debs:
        line = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
        found.update(re.split(r"[ (|]", part.strip())[0] for part in line.split(","))
    return sorted(name for name in found if name and not name.startswith("forktail"))


def base(release, architecture, debs, build):
    """A Debian system with everything but forktail. Made once, and again when the packages depend on others. The packages of
    another architecture are only unpacked: the guest configures them."""
    root = os.path.join(build, f"service-{place(release, architecture)}")
    made, log, needed = os.path.join(root, "made"), root + ".log", " ".join(dependencies(debs))
    wanted = f"{INCLUDED} {needed}"
    if os.path.exists(made) and open(made).read() == wanted:
        return root
    shutil.rmtree(root, ignore_errors=True)
    mirror = packages.mirror()
    print(f"creating a Debian system ({place(release, architecture)})", flush=True)
    if architecture != packages.AMD64:
        called([guest.program("debootstrap"), "--foreign", f"--arch={architecture}", "--variant=minbase",
                f"--include={INCLUDED},{needed.replace(' ', ',')}", release, root, mirror], log)
        with open(made, "w") as f:
            f.write(wanted)
        return root
    called([guest.program("debootstrap"), "--variant=minbase", f"--include={INCLUDED}", release, root, mirror], log)
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc"))
    for part in glob.glob("/etc/apt/apt.conf.d/*"):
        shutil.copy(part, os.path.join(root, "etc/apt/apt.conf.d"))
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8")
    called([guest.program("chroot"), root, "sh", "-c",
            f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {needed} && apt-get clean"], log, env=environment)
    with open(made, "w") as f:
        f.write(wanted)
    return root


def newer(deb, directory):
    """The same package with a higher version."""
    tree = os.path.join(directory, "unpacked")
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    path = os.path.join(tree, "DEBIAN", "control")
    with open(path) as f:
        text = re.sub(r"^Version: .*", f"Version: {NEWER}", f.read(), flags=re.M)
    with open(path, "w") as f:
        f.write(re.sub(r"\(= [0-9.]+\)", f"(= {NEWER})", text))
    to = os.path.join(directory, "root", "test", "newer")
    subprocess.run(["dpkg-deb", "-b", tree, to], stdout=subprocess.DEVNULL, check=True)
    shutil.rmtree(tree)


def neighbour(to, architecture):
    """What guest/neighbour needs. Without the programs, which the tests' build makes, the guest leaves it out."""
    faults, built = os.path.join(guest.ROOT, "tests", "faults"), os.path.join(guest.MACHINES[architecture].build, "tests")
    os.makedirs(to)
    for path in (os.path.join(HERE, "guest", "neighbour"), os.path.join(faults, "faults.py"), os.path.join(faults, "fuse_server.py"),
                 os.path.join(built, "fault_victim"), os.path.join(built, "libfault_library.so")):
        if os.path.exists(path):
            shutil.copy(path, to)


def disk(directory, release, architecture, debs, build):
    """Returns the path of a disk's image, made below `directory`."""
    root = os.path.join(directory, "root")
    subprocess.run(["cp", "-a", base(release, architecture, debs, build), root], check=True)
    for part in ("packages", "newer"):
        os.makedirs(os.path.join(root, "test", part))
    for deb in debs:
        shutil.copy(deb, os.path.join(root, "test", "packages"))
        newer(deb, directory)
    shutil.copy(os.path.join(HERE, "guest", "check"), os.path.join(root, "test"))
    neighbour(os.path.join(root, "test", "faults"), architecture)
    units = os.path.join(root, "etc/systemd/system")
    os.makedirs(os.path.join(units, "default.target.wants"), exist_ok=True)
    shutil.copy(os.path.join(HERE, "guest", "check.service"), units)
    os.symlink("../check.service", os.path.join(units, "default.target.wants", "check.service"))
    # Without udev there is no device for a login on the console, and the boot would wait for it.
    for console in ("ttyS0", "ttyAMA0"):
        os.symlink("/dev/null", os.path.join(units, f"serial-getty@{console}.service"))
    path = os.path.join(directory, "disk.img")
    guest.make_disk(path, DISK_MB)
    subprocess.run([guest.program("mkfs.ext4"), "-q", "-F", "-d", root, path], check=True)
    shutil.rmtree(root)
    return path
