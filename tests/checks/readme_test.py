#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the commands of README.md unchanged against a redis-server on port 6379, with forktail installed by script/install.

    readme_test.py BUILD [README]    as root; exit status 1 at the first command that fails
    readme_test.py ARCHIVE           the same with the archive of script/tarball, unpacked and installed by README's commands; 77: none

It uses its own mount and network namespaces, where port 6379 is free and /usr/local and /run are empty. It changes a command
only by SHORTER (durations) and PLACEHOLDERS (the table's words in capitals).
"""
import atexit
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
SHORTER = {"--duration 60s": "--duration 5s", "--duration 50 ": "--duration 3 ",
           "hz 20' --port 6379": "hz 20' --port 6379 --duration 4s --pairs 2",
           "'p99 < 2ms'": "'p99 < 2ms' --duration 50ms --warmup 10ms --repeat 1"}
# Values for the table's words in capitals. A command with FILE runs once for each of FILES.
PLACEHOLDERS = {"-o RUN": "-o gathered", "RUN": "monday", "RING": "/run/forktail", "A B": "monday tuesday",
                "LIMIT...": "'p99.9 < 60s'", "PLAN": "plan.toml", "DIR": "monday"}
FILES = ("monday.parquet", "monday.pftrace", "monday.folded")
PLAN = """duration = "2s"
[[hosts]]
name = "localhost"
[[record]]
host = "localhost"
port = 6379
[[load]]
host = "localhost"
to = "127.0.0.1:6379"
options = ["--rate", "1000"]
"""
PATIENCE_S = 60


def fail(command, why, output=b""):
    sys.stdout.flush()
    sys.stderr.write(output.decode(errors="replace"))
    sys.exit(f"readme: {command}: {why}")


def section(readme, heading):
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
    return match[1] if match else fail(heading, "README.md has no such section")


def block(readme, heading):
    """The commands of the section's first fenced block."""
    match = re.search(r"^```\n(.*?)^```$", section(readme, heading), re.MULTILINE | re.DOTALL)
    return match[1].splitlines() if match else fail(heading, "README.md has no commands there")


def table(readme, heading):
    """The commands in the first column of the section's table; a cell may hold several."""
    cells = re.findall(r"^\| (`(?:sudo )?forktail [^|]*`) \|", section(readme, heading), re.MULTILINE)
    return re.findall(r"`([^`]*)`", " ".join(cells)) or fail(heading, "README.md has no commands there")


def shortened(command):
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    return command


def run(command):
    print("$", command, flush=True)
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S * 2)
    if done.returncode != 0:
        fail(command, f"exit status {done.returncode}", done.stdout + done.stderr)
    return done.stdout.decode()


def run_on_terminal(command, wanted, keys):
    """Runs the command until it prints `wanted`, then types the keys that end it."""
    print("$", command, flush=True)
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp("sh", ["sh", "-c", command])
    shown, until = b"", time.monotonic() + PATIENCE_S
    while select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break  # it has ended
        if keys and wanted in shown:
            os.write(terminal, keys)
            keys = b""
    else:
        os.kill(child, signal.SIGHUP)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        fail(command, f"exit status {status}", shown)


class Recorder:
    """A recorder that runs while other commands run. The constructor returns when it records."""

    def __init__(self, command):
        print("$", command, "&", flush=True)
        self.command = command
        self.output = Path("recorder.log")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(["sh", "-c", "exec " + command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            start_new_session=True)
        atexit.register(self.interrupt)
        self.wait_for(lambda: b"recording " in self.output.read_bytes(), "the recorder did not start")
        if "--on " in command:
            run("redis-cli debug sleep 0.2")
            ring = Path(re.search(r"-o (\S+)", command)[1])
            self.wait_for(lambda: any(ring.glob("snapshots/*/explain.txt")), "a command of 200 ms made no explained snapshot")

    def wait_for(self, done, why):
        until = time.monotonic() + PATIENCE_S
        while not done():
            if self.process.poll() is not None or time.monotonic() > until:
                self.interrupt()
                fail(self.command, why, self.output.read_bytes())
            time.sleep(0.1)

    def interrupt(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            self.process.wait(PATIENCE_S)

    def end(self):
        if self.process.wait(PATIENCE_S) != 0:
            fail(self.command, f"exit status {self.process.returncode}", self.output.read_bytes())


def run_block(commands):
    """Runs the commands of a block. A recorder runs until its --duration ends, or to the end of the block."""
    recorder = timed = None
    for command in map(shortened, commands):
        if " record " in command:
            recorder, timed = Recorder(command), "--duration" in command
        else:
            if timed and " load " not in command:
                recorder.end()
            run(command)
    if not timed:
        recorder.interrupt()
        recorder.end()


def missing(command):
    """Why this machine cannot run the command, or ""."""
    for word, needed, why in ((" hosts ", "/usr/local/bin/forktail-rank", "forktail was built without Open MPI"),
                              (" sql ", "/usr/local/bin/forktail-parquet", "forktail was built without build-python/ (script/python)"),
                              (".parquet", "/usr/local/bin/forktail-parquet", "forktail was built without build-python/ (script/python)")):
        if word in command and not os.path.exists(needed):
            return why
    return ""


def run_table(commands):
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    for command in map(shortened, commands):
        for name, value in PLACEHOLDERS.items():
            command = re.sub(rf"(?<![\w-]){re.escape(name)}(?!\w)", value, command)
        for file in FILES if "FILE" in command else [""]:
            filled = command.replace("FILE", file)
            if missing(filled):
                print(f"SKIPPED: {filled}: {missing(filled)}")
                continue
            if " watch " in filled:
                run_on_terminal(filled, b"redis-server", b"q")
            else:
                run(filled)


def inside(build, readme):
    """Runs everything: in the namespaces, in an empty directory."""
    for directory in "/usr/local/bin", "/usr/local/lib", "/usr/local/share", "/run":
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.environ["PATH"] = "/usr/local/bin:" + os.environ["PATH"]
    if not shutil.which("sudo"):
        Path("/usr/local/bin/sudo").write_text('#!/bin/sh\nexec "$@"\n', encoding="utf-8")
        os.chmod("/usr/local/bin/sudo", 0o755)
    if build.endswith(".tar.gz"):
        shutil.copy(build, ".")
        run("set -e\n" + "\n".join(block(readme, "Install and try")))
        remove = "sudo forktail-*/install.sh --remove"
    else:
        run(f"sudo {TREE}/script/install --build {shlex.quote(build)}")
        remove = f"sudo {TREE}/script/install --remove"
    server = subprocess.Popen(["redis-server", "--port", "6379", "--save", "", "--enable-debug-command", "local"],
                              stdout=subprocess.DEVNULL)
    try:
        run("until redis-cli ping; do sleep 0.1; done")
        commands = block(readme, "Your own server")
        run_block(commands)
        run_block([command.replace("monday", "tuesday") for command in commands])
        run_block(block(readme, "Always on"))
        run_table(table(readme, "Commands"))
    finally:
        server.kill()
    run(remove)
    left = [str(path) for place in ("bin", "share") for path in Path("/usr/local", place).rglob("*forktail*")]
    if left:
        fail(remove, "left behind: " + " ".join(left))


def main():
    build, readme = os.path.abspath(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else TREE / "README.md").resolve()
    if build.endswith(".tar.gz") and not os.path.exists(build):
        print("SKIPPED: no archive in build-tarball/ (script/tarball makes it)")
        sys.exit(77)
    if os.environ.get("FORKTAIL_README_INSIDE"):
        inside(build, readme.read_text(encoding="utf-8"))
        return
    with tempfile.TemporaryDirectory(prefix="forktail-readme-") as directory:
        status = subprocess.run(["unshare", "--mount", "--net", sys.executable, __file__, build, readme], cwd=directory,
                                env={**os.environ, "FORKTAIL_README_INSIDE": "yes", "HOME": directory}, check=False).returncode
    sys.exit(status)


main()
