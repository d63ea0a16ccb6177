# SPDX-License-Identifier: MIT
"""The jobs: each module has TABLES, what it reads beside runs; HELP, what it answers; and run(data, options), its sheets."""
from . import causes, changes, episodes, fork, latency, regressions

JOBS = {"causes": causes, "latency": latency, "fork": fork, "regressions": regressions, "changes": changes,
        "episodes": episodes}
