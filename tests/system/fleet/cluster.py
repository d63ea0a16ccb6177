# SPDX-License-Identifier: MIT
"""A temporary standalone Spark cluster on this machine: a master, and workers with one core each."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pyspark

from forktail.servers.listen import free_port


class Cluster:
    def __init__(self, directory, workers=2, memory="1g"):
        self.directory = Path(directory)
        self.spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
        self.port, self.web = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.processes = []
        deploy = "org.apache.spark.deploy."
        self._start(
            "master",
            deploy + "master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--webui-port",
            str(self.web),
        )
        for n in range(workers):
            self._start(
                f"worker{n}",
                deploy + "worker.Worker",
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                memory,
                "--webui-port",
                "0",
                "--work-dir",
                str(self.directory / f"work{n}"),
                self.url,
            )
        self._wait(workers)

    def _start(self, name, *argv):
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_NO_DAEMONIZE": "1",
        }
        with open(self.directory / f"{name}.log", "w") as log:
            self.processes.append(subprocess.Popen([self.spark_class, *argv], stdout=log, stderr=log, env=environment))

    def _wait(self, workers):
        """Waits until the master has all workers."""
        for _ in range(300):
            try:
                with urlopen(f"http://127.0.0.1:{self.web}/json/", timeout=5) as answer:
                    if json.load(answer)["aliveworkers"] == workers:
                        return
            except (OSError, ValueError):
                pass  # it has not started yet
            if any(p.poll() is not None for p in self.processes):
                break
            time.sleep(0.2)
        self.stop()
        raise RuntimeError("the cluster does not come up: " + (self.directory / "master.log").read_text()[-2000:])

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
