# SPDX-License-Identifier: MIT
"""Whether the server's own code gets the same names however the server was built: stripped as distributions ship it, with
full symbols, and with frame pointers too. script/symbols builds the latter two."""
import os

from trial import ROOT

BUILT = os.path.join(ROOT, "build-symbols")
BUILDS = {"stripped": None, "full symbols": "full", "and frame pointers": "frames"}
# Of one function of the server each: its name decides. TLS is not built; the others are of the kernel's causes.
CASES = ("keys", "lrange", "eval", "del", "save", "flushall", "sort", "fcall", "fcall-redis8", "fcall-valkey", "exec", "expiry",
         "eviction", "eviction-in-turns", "rehash")


def missing():
    return not os.path.exists(os.path.join(BUILT, "made"))


def serve_from(build, found):
    """Servers come from this build from now on. `found`: the environment's own PATH and FORKTAIL_SERVERS."""
    for name, release in (("PATH", "12"), ("FORKTAIL_SERVERS", "13")):
        own = found.get(name)
        if build:
            directory = os.path.join(BUILT, build, release)
            os.environ[name] = directory + (":" + own if name == "PATH" else "")
        elif own is not None:
            os.environ[name] = own
        else:
            os.environ.pop(name, None)


def outcomes(cases, run):
    """{build: [outcome]} of the cases. `run`: runs one case and prints its line."""
    found, results = dict(os.environ), {}
    try:
        for name, build in BUILDS.items():
            print(f"{name}:", flush=True)
            serve_from(build, found)
            results[name] = [run(case) for case in cases]
    finally:
        serve_from(None, found)
    return results


def cell(outcome):
    if outcome.skipped or outcome.failed:
        return "skipped" if outcome.skipped else "failed"
    named = f"{sum(s.hit for s in outcome.scored)} of {len(outcome.scored)}"
    instead = ", ".join(s.label for s in outcome.scored if not s.hit)
    return f"{named} ({instead})" if instead else named


def table(results):
    """A row per case with a miss, a column per build: how many injections were named, and what was named instead. Then a
    sentence about the others."""
    rows = list(zip(*results.values()))
    named = [row for row in rows if all(o.scored and all(s.hit for s in o.scored) for o in row)]
    missed = [f"| {row[0].case.name} | " + " | ".join(cell(o) for o in row) + " |" for row in rows if row not in named]
    table = ["| case | " + " | ".join(results) + " |", "|---|" + "---|" * len(results), *missed, ""] if missed else []
    return "\n".join([*table, f"All, in each build: {', '.join(row[0].case.name for row in named)}."])
