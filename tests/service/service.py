# SPDX-License-Identifier: MIT
"""Tests the packages' service in a Debian system that systemd boots in QEMU (docs/results/platforms.md).

Exit status: 0 every step went as it should, 1 one did not, 2 usage, 3 the environment is not suitable.
"""
import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import root
from root import guest, packages

PAGE = os.path.join(guest.ROOT, "docs", "results", "platforms.md")
BEGIN, END = "<!-- service: begin -->", "<!-- service: end -->"
LIMIT_S = {"amd64": 1200, "arm64": 2400}
KERNELS = {release: version for version, release in packages.RELEASES.items()}


class Outcome:
    """What the guest left: its steps, and what it ran."""

    def __init__(self, release, results, seconds):
        def text(name):
            with open(os.path.join(results, name)) as f:
                return f.read().strip("\n") # not tabs: a step may have no figures

        self.seconds, self.steps = seconds, [line.split("\t") for line in text("steps").split("\n")]
        self.system = f"{text('release')}, {text('systemd')}, Linux {text('kernel')}"
        self.release = release

    @property
    def good(self):
        return all(outcome == "ok" for _, _, outcome, _ in self.steps)

    def table(self):
        lines = [f"### {self.system}", f"{self.seconds:.0f} s from power-on to power-off.", "",
                 "| step | s | figures |", "|---|---:|---|"]
        plain = []
        for name, seconds, result, figures in self.steps:
            if result == "ok" and not figures.strip():
                plain.append(f"{name} ({seconds} s)")
                continue
            cells = (name if result == "ok" else f"{name}: **{result}**", seconds, figures.strip())
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        if plain:
            lines += ["", f"Passed too: {', '.join(plain)}."]
        return "\n".join(lines) + "\n"


def boot(release, architecture, build, keep):
    debs = root.built(build, release, architecture)
    kernel = packages.Kernel(KERNELS[release], architecture)
    with tempfile.TemporaryDirectory(prefix="forktail-service-") as directory:
        tree = guest.begin_initramfs(directory, kernel, "fuse", "overlay")
        shutil.copy(os.path.join(root.HERE, "guest", "init"), tree)
        os.chmod(os.path.join(tree, "init"), 0o755)
        disk = root.disk(directory, release, architecture, debs, build)
        since = time.monotonic()
        try:
            results = guest.run(directory, kernel, guest.pack(tree, directory), disk, LIMIT_S[architecture], "uptime")
            return Outcome(release, results, time.monotonic() - since)
        finally:
            if keep:
                for part in ("runs", "console"):
                    path, to = os.path.join(directory, part), os.path.join(keep, root.place(release, architecture), part)
                    os.makedirs(os.path.dirname(to), exist_ok=True)
                    if os.path.isdir(path):
                        shutil.copytree(path, to, dirs_exist_ok=True)
                    elif os.path.exists(path):
                        shutil.copy(path, to)


def write(text, architecture):
    begin, end = (mark if architecture == packages.AMD64 else mark.replace("service", f"service {architecture}") for mark in (BEGIN, END))
    with open(PAGE) as f:
        page, found = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n{text}{end}", f.read(), flags=re.S)
    if not found:
        raise RuntimeError(f"{PAGE} has no markers {begin} and {end}")
    with open(PAGE, "w") as f:
        f.write(page)


def main():
    parser = argparse.ArgumentParser(prog="script/test-service", description=__doc__.split("\n")[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="bookworm (default), trixie")
    parser.add_argument("--arch", choices=sorted(LIMIT_S), default=packages.AMD64, help="the system's architecture, as Debian calls it")
    parser.add_argument("--keep", metavar="DIR", help="keep the guests' journals, results and consoles in DIR")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/results/platforms.md")
    arguments = parser.parse_args()
    releases = arguments.releases or ["bookworm"]
    for release in releases:
        if release not in ("bookworm", "trixie"):
            parser.error(f"no release {release}. Choose bookworm or trixie")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every clean-up runs
    outcomes = []
    for release in releases:
        try:
            outcomes.append(boot(release, arguments.arch, os.path.join(guest.ROOT, "build-packages"), arguments.keep))
        except (packages.Missing, RuntimeError) as why:
            print(f"script/test-service: {release}: {why}", file=sys.stderr)
            return 3 if isinstance(why, packages.Missing) else 1
        print(outcomes[-1].table(), flush=True)
    if arguments.write:
        write("\n".join(outcome.table() for outcome in outcomes), arguments.arch)
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
