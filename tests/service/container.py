# SPDX-License-Identifier: MIT
"""Builds the image of contrib/container/Containerfile. Runs the container of contrib/kubernetes/daemonset.yaml from it with crun,
on this host's kernel, with exactly the manifest's capabilities, mounts and security context, and a redis-server outside. Then
the Containerfile's command in the same way. An image for another architecture is built and started in user-mode emulation, which
cannot record.

Exit status: 0 all went as it should, 1 something did not, 3 the environment is not suitable.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

import image
from root import guest, packages

sys.path.append(os.path.join(guest.ROOT, "python"))
from forktail.servers import Server  # noqa: E402

# As Kubernetes' runtimes hide them from containers that are not privileged.
MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug", "/proc/scsi",
          "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
USER = 59742  # of the ring, in the image and so on the node
CONFIG = """\
[record]
name = "redis-server"
directory = "/var/lib/forktail/ring"
keep = "1m,100MB"
user = "forktail"
light = true
[snapshots]
before = "5s"
after = "2s"
[metrics]
listen = "/var/lib/forktail/ring/metrics.sock"
[control]
socket = "/var/lib/forktail/ring/control"
[[trigger]]
name = "deploy"
"""


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.2)


class Container:
    """A container of crun, and the runtime's directory for it."""

    def __init__(self, directory, system, arguments, capabilities, mounts, profile, hidden=(MASKED, READ_ONLY), fixed=True):
        """`profile`: the seccomp profile's path, from the source tree."""
        self.name, self.directory = f"forktail-test-{os.getpid()}-{len(mounts)}", os.path.join(directory, "bundle")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        names = ["CAP_" + name for name in capabilities]
        with open(os.path.join(guest.ROOT, profile), encoding="utf-8") as f:
            seccomp = json.load(f)
        seccomp["architectures"] = [one["architecture"] for one in seccomp.pop("archMap")]
        usual = [("/proc", "proc", "proc", []), ("/dev", "tmpfs", "tmpfs", ["nosuid", "mode=755"]),
                 ("/sys", "bind", "/sys", ["rbind", "ro"]), ("/tmp", "tmpfs", "tmpfs", [])]
        config = {
            "ociVersion": "1.0.2",
            "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
                        "args": ["/usr/bin/forktail"] + arguments, "noNewPrivileges": fixed,
                        "capabilities": {part: names for part in ("bounding", "effective", "permitted")}},
            "root": {"path": system, "readonly": fixed},
            "mounts": [{"destination": to, "type": kind, "source": at, "options": options}
                       for to, kind, at, options in usual + mounts],
            # No pid namespace: hostPID.
            "linux": {"namespaces": [{"type": kind} for kind in ("mount", "ipc", "uts", "network")],
                      "maskedPaths": hidden[0], "readonlyPaths": hidden[1], "seccomp": seccomp}}
        with open(os.path.join(self.directory, "config.json"), "w") as f:
            json.dump(config, f)

    def start(self):
        self.log = open(os.path.join(self.directory, "log"), "w+")
        # crun refuses a host that has both versions of cgroups, so it sees only version 2.
        only = "mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec \"$@\""
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", only, "sh",
                                         "crun", "--cgroup-manager=disabled", "run", "-b", self.directory, self.name],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def end(self):
        self.process.terminate()  # crun passes it on
        return self.process.wait(timeout=30)


def of_manifest(directory, system):
    """The manifest's container, and the ring's directory on this host."""
    with open(os.path.join(guest.ROOT, "contrib/kubernetes/daemonset.yaml")) as f:
        pod = yaml.safe_load(f)["spec"]["template"]["spec"]
    container, context = pod["containers"][0], pod["containers"][0]["securityContext"]
    profile = context["seccompProfile"]
    if not pod["hostPID"] or profile["type"] != "Localhost" or context["allowPrivilegeEscalation"] or not context["readOnlyRootFilesystem"]:
        raise RuntimeError("the manifest is not what this test runs: adapt it")
    host = {"ring": os.path.join(directory, "host"), "config": os.path.join(directory, "config")}
    for path in host.values():
        os.mkdir(path, 0o755)
    with open(os.path.join(host["config"], "record.toml"), "w") as f:
        f.write(CONFIG)
    paths = {volume["name"]: host.get(volume["name"]) or volume["hostPath"]["path"] for volume in pod["volumes"]}
    mounts = [(mount["mountPath"], "bind", paths[mount["name"]], ["rbind", "ro" if mount.get("readOnly") else "rw"])
              for mount in container["volumeMounts"]]
    return Container(directory, system, container["args"], context["capabilities"]["add"], mounts,
                     os.path.join("contrib/kubernetes", profile["localhostProfile"])), os.path.join(host["ring"], "ring")


def check_manifest(directory, system):
    container, ring = of_manifest(directory, system)
    forktail = os.path.join(guest.BIN, "forktail")
    for times in (1, 2):  # the second time on the ring of the first
        container.start()
        try:
            wait_for("the recorder's start", lambda: "recording redis-server" in container.text())
            scrape = ["curl", "-sf", "--unix-socket", os.path.join(ring, "metrics.sock"), "http://host/metrics"]
            wait_for("metrics", lambda: subprocess.run(scrape, capture_output=True, check=False).stdout.find(b"forktail_recording 1") >= 0)
            wait_for("the trigger", lambda: subprocess.run([forktail, "trigger", ring, "deploy"], capture_output=True,
                                                           check=False).returncode == 0)
            wait_for("the explanation", lambda: len(glob.glob(os.path.join(ring, "snapshots", "*", "explain.txt"))) == times)
            if os.stat(ring).st_uid != USER:
                raise RuntimeError(f"the ring's owner is {os.stat(ring).st_uid}")
            print(f"manifest, start {times}: recorded, triggered, explained, scraped; the ring's owner is {USER}")
        except RuntimeError as why:
            raise RuntimeError(f"{why}\n{container.text()}") from None
        finally:
            status = container.end()
        if status:
            raise RuntimeError(f"the manifest's container ended with status {status}\n{container.text()}")


def check_container(directory, system):
    with open(image.CONTAINERFILE) as f:
        comment = f.read().split("FROM")[0]
    capabilities = [name for part in re.findall(r"--cap-add=(\S+)", comment) for name in part.split(",")]
    runs = os.path.join(directory, "runs")
    os.mkdir(runs)
    os.chown(runs, 65534, 65534)
    profile = re.search(r"--security-opt seccomp=(\S+)", comment)[1]
    words = comment[comment.index("-v /sys"):].replace("#", " ").split()
    arguments = words[words.index("forktail") + 1:]
    arguments[arguments.index("--duration") + 1] = "3s"
    mounts = [("/sys/kernel/tracing", "bind", "/sys/kernel/tracing", ["rbind"]), ("/runs", "bind", runs, ["rbind", "rw"])]
    container = Container(directory, system, arguments, capabilities, mounts, profile, fixed=False)
    container.start()
    if container.process.wait(timeout=60) or not os.path.getsize(os.path.join(runs, "server.forktail")):
        raise RuntimeError("the Containerfile's command failed:\n" + container.text())
    print("Containerfile: recorded into a directory of another user")


def check_here(directory, system):
    with Server("redis"):
        check_manifest(directory, system)
        check_container(directory, system)


def check_emulated(store, name):
    container = store.run("from", "--pull-never", name)
    said = store.run("run", "--isolation", "chroot", container, "--", "sh", "-c", "uname -m && forktail --version && forktail-record --help")
    machine, version = said.splitlines()[:2]
    if machine != "aarch64":
        raise RuntimeError(f"the image for arm64 runs on {machine}")
    print(f"on {machine}: {version}")


def main():
    parser = argparse.ArgumentParser(prog="script/test-container", description="Build and run the containers of contrib/.")
    parser.add_argument("--arch", choices=("amd64", "arm64"), default=packages.AMD64, help="architecture of the image (default: amd64)")
    architecture = parser.parse_args().arch
    with tempfile.TemporaryDirectory(prefix="forktail-container-") as directory:
        os.chmod(directory, 0o711)
        try:
            since = time.monotonic()
            store, name = image.built(directory, architecture, os.path.join(guest.ROOT, "build-packages"))
            print(f"image for {architecture}: built in {time.monotonic() - since:.0f} s", flush=True)
            if architecture == packages.AMD64:
                with store.system(name) as system:
                    check_here(directory, system)
            else:
                check_emulated(store, name)
        except (packages.Missing, RuntimeError) as why:
            print(f"script/test-container: {why}", file=sys.stderr)
            return 3 if isinstance(why, packages.Missing) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
