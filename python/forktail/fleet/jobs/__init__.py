# SPDX-License-Identifier: MIT
"""The jobs. Each module has TABLES (the tables it reads besides runs), HELP, and run(data), which returns sheets."""

from . import causes, changes, episodes, fork, latency, regressions

JOBS = {
    "causes": causes,
    "latency": latency,
    "fork": fork,
    "regressions": regressions,
    "changes": changes,
    "episodes": episodes,
}
