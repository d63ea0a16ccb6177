# SPDX-License-Identifier: MIT
"""Runs one command of forktail: `python3 -I python COMMAND ARGUMENT...`, as cli/python.cc starts it.

Python puts this directory, and with -I nothing of the user's, in front of its own libraries. So the package `forktail` is the one beside
this file. A command is a module with main(words) -> exit status. It is imported only when it runs.
"""

import sys
from importlib import import_module

from forktail.failure import Failure
from forktail.text import visible_lines

# The command, its module, and the program's name before its errors.
COMMANDS = {
    "fleet": ("forktail.fleet.main", "forktail fleet"),
    "hosts": ("forktail.hosts", "forktail"),
    "lab": ("forktail.lab.main", "forktail lab"),
    "parquet": ("forktail.parquet", "forktail"),
    "sql": ("forktail.sql", "forktail"),
}


def main() -> int:
    command, *words = sys.argv[1:]
    module, program = COMMANDS[command]
    try:
        status: int = import_module(module).main(words)
        sys.stdout.flush()
        return status
    except Failure as failure:
        print(f"{program}: {visible_lines(str(failure))}", file=sys.stderr)
        return failure.status


if __name__ == "__main__":
    sys.exit(main())
