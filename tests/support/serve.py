# SPDX-License-Identifier: MIT
"""Servers for the truth suite and the benchmarks. Each is started, awaited and ended by `forktail lab serve`
(docs/reference/lab-and-scenarios.md), which also ends it when the program that imports this module is killed."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("FORKTAIL_BIN_DIR", os.path.join(ROOT, "build", "bin"))


class Failed(RuntimeError):
    """Why there is no server, in forktail lab's words."""


class Server:
    """A running server: .pid, .socket or .port, .directory of its data. It ends with its block, or by close().

    arguments: of the server's program. cpus: where it runs, in taskset's format. env: {name: value}, added to our own.
    of: addresses of the servers behind a proxy. under: a command that starts forktail, such as nsenter."""

    def __init__(self, kind, *arguments, tcp=False, cpus="", env=None, of=(), directory="", under=()):
        words = ["--tcp"] * tcp
        for option, values in (("--cpus", [str(cpus)] if str(cpus) else []), ("--directory", [directory] if directory else []),
                               ("--env", [f"{name}={value}" for name, value in (env or {}).items()]), ("--of", of)):
            for value in values:
                words += [option, value]
        self.serving = subprocess.Popen([*under, os.path.join(BIN, "forktail"), "lab", "serve", kind, *words, "--", *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.serving.stdout.readline()
        if not line:
            raise Failed(self.serving.communicate()[1].strip())
        server, = json.loads(line)["servers"]
        self.kind, self.pid, self.socket, self.port = kind, server["pid"], server["socket"], server["port"]
        self.directory = server["directory"]

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, limit_s):
        """Waits until it has ended by itself."""
        self.serving.wait(limit_s)

    def close(self):
        self.serving.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
