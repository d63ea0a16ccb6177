# SPDX-License-Identifier: MIT
"""Runs one command of forktail: `python3 -I python COMMAND ARGUMENT...`, as cli/python.cc starts it.

Python searches this directory first, and with -I none of the user's. So the package `forktail`
is the one beside this file. A command is a module with main(words) -> exit status. It is imported only when it runs.
"""

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module

# cli/python.cc blocked SIGINT, because Python's own start would end with a traceback. Until a command runs it kills.
interrupt = signal.getsignal(signal.SIGINT)
if interrupt == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

if sys.version_info < (3, 11):  # noqa: UP036 # before the package, which is newer Python
    how = "Install Python 3.11 or later, and set $FORKTAIL_PYTHON to its path"
    print("forktail: " + sys.executable + " is older than Python 3.11. " + how, file=sys.stderr)
    sys.exit(3)

from forktail.failure import CANNOT, Failure, die_of  # noqa: E402
from forktail.text import visible_lines  # noqa: E402

# The command, its module, and the program's name before its errors.
COMMANDS = {
    "fleet": ("forktail.fleet.main", "forktail fleet"),
    "forecast": ("forktail.forecast.main", "forktail"),
    "hosts": ("forktail.hosts", "forktail"),
    "lab": ("forktail.lab.main", "forktail lab"),
    "mcp": ("forktail.mcp_server", "forktail"),
    "parquet": ("forktail.wheel", "forktail"),
    "settings": ("forktail.settings.main", "forktail"),
    "sql": ("forktail.sql", "forktail"),
    "try": ("forktail.trial.main", "forktail"),
}


def main() -> int:
    command, *words = sys.argv[1:]
    module, program = COMMANDS[command]
    try:
        signal.signal(signal.SIGINT, interrupt)
        try:
            status = import_module(module).main(words)
        except SystemExit as end:  # of --help, or of a program that printed why
            status = end.code
        try:
            sys.stdout.flush()
        except OSError as error:  # a full disk
            error.filename = "standard output"
            raise
        return int(status or 0)
    except Failure as failure:
        with suppress(OSError):
            sys.stdout.flush()
        print(f"{program}: {visible_lines(str(failure))}", file=sys.stderr)
        return failure.status
    except BrokenPipeError:
        die_of(signal.SIGPIPE)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        about = f"{error.filename}: " if error.filename else ""
        print(f"{program}: {about}{error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        die_of(signal.SIGINT)
    return CANNOT


if __name__ == "__main__":
    sys.exit(main())
