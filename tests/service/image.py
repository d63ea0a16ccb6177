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
    print(f"creating {BASE} for {architecture}", flush=True)
    packages.called([guest.program("debootstrap"), f"--arch={architecture}", "--variant=minbase", "--include=ca-certificates",
                 RELEASE, system, packages.mirror()], log)
    for part in ("/etc/apt/apt.conf.d", "/usr/local/share/ca-certificates"):
        shutil.copytree(part, system + part, dirs_exist_ok=True)
    packages.called([guest.program("chroot"), system, "update-ca-certificates"], log)
    open(made, "w").close()
    return system


class Store:
    """buildah's images, in a directory."""

    def __init__(self, directory):
        self.options = ["--root", os.path.join(directory, "images"), "--runroot", os.path.join(directory, "run"),
                        "--storage-driver", "vfs"]

    def command(self, *words):
        return [guest.program("buildah"), *self.options, *words]

    def run(self, *words):
        """Returns what buildah prints."""
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"buildah {words[0]}: {(done.stderr + done.stdout)[-2000:]}")
        return done.stdout.strip()

    @contextlib.contextmanager
    def system(self, image):
        """The directory with the file system of a container of this image."""
        container = self.run("from", "--pull-never", image)
        try:
            yield self.run("mount", container)
        finally:
            self.run("rm", container)

    def add_base(self, architecture, build):
        container = self.run("from", "--arch", architecture, "scratch")
        subprocess.run(["cp", "-a", debian(architecture, build) + "/.", self.run("mount", container)], check=True)
        self.run("config", "--arch", architecture, "--env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", container)
        self.run("commit", "--rm", container, BASE)


def built(directory, architecture, build):
    """Builds the image as the Containerfile's comment says. Returns the store, and the image's name in it."""
    root.built(build, RELEASE, architecture)  # says which packages are missing
    store = Store(directory)
    store.add_base(architecture, build)
    store.run("bud", "--isolation", "chroot", "--pull-never", "--platform", f"linux/{architecture}", "-t", "forktail", "-f", CONTAINERFILE, build)
    return store, "forktail"
