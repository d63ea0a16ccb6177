# SPDX-License-Identifier: MIT
"""`forktail fleet` without Spark: one sentence with what to install, and exit status 3. Needs neither Spark nor Java.

    FORKTAIL=build/bin/forktail python3 analysis/fleet/tests/test_missing.py
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLEET = Path(__file__).resolve().parents[1]
FORKTAIL = os.environ.get("FORKTAIL", str(FLEET.parent / "build/bin/forktail"))
NO_SPARK = "cannot find Spark. Run script/spark, or install the Python packages pyspark and ruptures."


class Missing(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="forktail-fleet-missing-"))
        self.addCleanup(shutil.rmtree, self.directory)
        # Outside its tree, or it would find the tree's build-spark/.
        self.forktail = self.directory / "a/b/bin/forktail"
        self.forktail.parent.mkdir(parents=True)
        shutil.copy(FORKTAIL, self.forktail)

    def run_with(self, python, **environment):
        """Runs it with this script, if any, as the only python3."""
        bin = self.directory / "bin"
        bin.mkdir()
        if python:
            (bin / "python3").write_text(python)
            (bin / "python3").chmod(0o755)
        return subprocess.run([self.forktail, "fleet", "causes", "--data", self.directory], capture_output=True, text=True,
                              env={"PATH": str(bin), **environment})

    def check(self, done, sentence):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_a_python_without_packages(self):
        self.check(self.run_with(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n'), NO_SPARK)

    def test_no_python(self):
        self.check(self.run_with(""), NO_SPARK)

    def test_spark_without_the_package(self):
        (self.directory / "packages/pyspark").mkdir(parents=True)
        (self.directory / "packages/pyspark/__init__.py").touch()
        python = f'#!/bin/sh\nPYTHONPATH={self.directory}/packages exec {sys.executable} -S "$@"\n'
        self.check(self.run_with(python), "has pyspark, but not forktail_fleet. Install the package from forktail's analysis/fleet/")

    def test_the_package_without_spark(self):
        """As when a user calls Python directly."""
        stub = self.directory / "java"
        stub.write_text("#!/bin/sh\n")
        stub.chmod(0o755)
        done = subprocess.run([sys.executable, "-S", "-m", "forktail_fleet", "causes", "--data", self.directory], capture_output=True,
                              text=True, env={"PATH": str(self.directory), "PYTHONPATH": str(FLEET)})
        self.check(done, "forktail fleet: " + NO_SPARK)


if __name__ == "__main__":
    unittest.main()
