# SPDX-License-Identifier: MIT
"""Runs forktail's programs for the lab: the recorder, the load generator, the analysis."""

import os

from forktail.failure import Failure
from forktail.host.session import Child, Command, OnLine, Session
from forktail.lab.progress import say_meanwhile
from forktail.programs import program

ANALYSIS_S = 120


def find_programs() -> str:
    """The directory of forktail, forktail-record and forktail-load: that of the running program, so that all are of one
    build."""
    directory = os.environ.get("FORKTAIL_BIN_DIR") or str(program("forktail").parent)
    for name in ("forktail", "forktail-record", "forktail-load"):
        if not os.access(f"{directory}/{name}", os.X_OK):
            raise Failure(
                f"cannot find {name} in {directory}: build all programs of forktail, for example with script/demo"
            )
    return directory


def start_recorder(
    session: Session, programs: str, pids: list[int], options: list[str], path: str, tell: OnLine = say_meanwhile
) -> Child:
    """Starts the recorder on these processes and waits until it records. It is `needed` until wait_for_end. tell: what
    takes its messages."""
    recording = False

    def on_line(line: str) -> None:
        nonlocal recording
        recording = recording or line.startswith("recording ")
        tell(line)

    argv = [f"{programs}/forktail-record", "-o", path, *options]
    for pid in pids:
        argv += ["--pid", str(pid)]
    recorder = session.start(Command(name="forktail-record", argv=argv, output="/dev/null", on_line=on_line))
    recorder.needed = True
    while not recording:
        session.step(100)
    return recorder


def run_forktail(session: Session, programs: str, words: list[str], output: str, tell: OnLine = say_meanwhile) -> None:
    """Runs `forktail WORDS` to its end. Its output goes to the file `output`, or to the lab's output if that is "".
    tell: what takes its messages."""
    command = Command(name=f"forktail {words[0]}", argv=[f"{programs}/forktail", *words], output=output, on_line=tell)
    child = session.start(command)
    session.wait_for_end(child, 0, ANALYSIS_S)
    child.check()
