# SPDX-License-Identifier: MIT
"""The container image of contrib/container, built by buildah, on a debian:12 made here: the test needs no registry."""
import contextlib
import os
import shutil
import subprocess

import root
from root import guest, packages

RELEASE = "bookworm"
BASE = "debian:12"
CONTAINERFILE = os.path.join(guest.ROOT, "contrib", "container", "Containerfile")


def debian(architecture, build):
    """A minimal Debian 12 that uses this host's mirror and certificates. Made once. A foreign one runs in user-mode emulation."""
    system = os.path.join(build, f"image-{root.place(RELEASE, architecture)}")
    made, log = os.path.join(system, "made"), system + ".log"
    if os.path.exists(made):
        return system
    shutil.rmtree(system, ignore_errors=True)
    host = packages.host_release()
    mirror = next(uri for uri, suite in packages.host_sources() if suite == host)
    print(f"creating {BASE} for {architecture}", flush=True)
    root.called([guest.program("debootstrap"), f"--arch={architecture}", "--variant=minbase", "--include=ca-certificates",
                 RELEASE, system, mirror], log)
    for part in ("/etc/apt/apt.conf.d", "/usr/local/share/ca-certificates"):
        shutil.copytree(part, system + part, dirs_exist_ok=True)
    root.called([guest.program("chroot"), system, "update-ca-certificates"], log)
    open(made, "w").close()
    return system


class Store:
    """buildah's images, in a directory."""

    def __init__(self, directory):
        self.log = os.path.join(directory, "log")
        self.options = ["--root", os.path.join(directory, "images"), "--runroot", os.path.join(directory, "run"),
                        "--storage-driver", "vfs"]

    def command(self, *words):
        return [guest.program("buildah"), *self.options, *words]

    def run(self, *words):
        root.called(self.command(*words), self.log)

    def output(self, *words):
        return subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout.strip()

    @contextlib.contextmanager
    def system(self, image):
        """The directory with the file system of a container of this image."""
        container = self.output("from", "--pull-never", image)
        try:
            yield self.output("mount", container)
        finally:
            self.run("rm", container)

    def add_base(self, architecture, build):
        container = self.output("from", "--arch", architecture, "scratch")
        subprocess.run(["cp", "-a", debian(architecture, build) + "/.", self.output("mount", container)], check=True)
        self.run("config", "--arch", architecture, "--env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", container)
        self.run("commit", "--rm", container, BASE)


def built(directory, architecture, build):
    """Builds the image as the Containerfile's comment says. Returns the store, and the image's name in it."""
    root.built(build, RELEASE, architecture)  # says which packages are missing
    store = Store(directory)
    store.add_base(architecture, build)
    store.run("bud", "--isolation", "chroot", "--pull-never", "--platform", f"linux/{architecture}", "-t", "forktail", "-f", CONTAINERFILE, build)
    return store, "forktail"
