# SPDX-License-Identifier: MIT
"""The exception whose text is the one sentence that a user reads, and the exit status that goes with it."""

import os
import signal

NO = 1  # the answer is no
USAGE = 2  # what the user wrote is wrong
CANNOT = 3  # the environment cannot


class Failure(Exception):
    """One sentence for the user, without a program's name and without a full stop.

    The edge of a program prints it and exits.
    """

    def __init__(self, sentence: str, status: int = CANNOT) -> None:
        super().__init__(sentence)
        self.status = status


def die_of(number: int) -> None:
    """Ends this process by a signal, as a program that does not handle it: the parent, often a shell script, must see
    it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
