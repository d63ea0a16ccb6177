# SPDX-License-Identifier: MIT
"""`forktail lab pairs`: runs an experiment in pairs with one difference between the sides, for `forktail diff`.

Drift of the machine affects both runs of a pair, and their order is random. Both sides of a pair have the same keys,
operations and arrivals, because their loads have the same seed.
"""

import os
from copy import deepcopy
from dataclasses import dataclass, replace

from forktail.failure import Failure
from forktail.files import holds_nothing, make_directory, read_file, replace_file
from forktail.host.session import Session
from forktail.lab.commands import RunOptions, load_scenarios
from forktail.lab.experiment import ExperimentOptions, exists_text, run_experiment
from forktail.lab.progress import say
from forktail.lab.scenario import Scenario, ServerSpec, parse_scale, points_of, split_words

_IDENTITY, _ORDER = "pairs.txt", "order.txt"


@dataclass
class PairsOptions:
    run: RunOptions  # one scenario, `out`, `resume`, `settings`
    base: str = ""  # a program, a file with settings, "key=value ..."; "": unchanged
    new: str = ""
    pairs: int = 8
    seed: int = 1  # of the order; pair N's loads have seed + N


def _only_server(scenario: Scenario, what: str) -> ServerSpec:
    if len(scenario.servers) != 1:
        raise Failure(f"{what} needs a scenario with one server, and {scenario.name} has {len(scenario.servers)}")
    return scenario.servers[0]


def _add_file(path: str, server: ServerSpec) -> None:
    """Adds the lines "key value value" of a redis.conf as arguments."""
    for line in map(str.strip, read_file(path).splitlines()):
        if not line or line.startswith("#"):
            continue
        words = split_words(line)
        if words is None:
            raise Failure(f"{path}: a quote is not closed: {line}")
        server.config += [f"--{words[0]}", *words[1:]]


def _add_settings(side: str, scenario: Scenario, settings: dict[str, str]) -> None:
    """Adds "key=value" settings; quotes hold a value of several words."""
    words = split_words(side)
    if words is None:
        raise Failure(f"a quote is not closed: {side}")
    knobs = {*scenario.constants, *(size.name for size in scenario.sizes)}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Failure(f"{word} is not a program, a file or a setting NAME=VALUE")
        if name in knobs:
            settings[name] = value
        else:
            _only_server(scenario, name).config += [f"--{name}", value]


def apply_side(side: str, scenario: Scenario, settings: dict[str, str]) -> None:
    """Applies the changes of a side to the scenario, and adds changed constants and sizes to `settings`."""
    if not side:
        return
    if not os.path.isfile(side):
        return _add_settings(side, scenario, settings)
    server = _only_server(scenario, side)
    if not os.access(side, os.X_OK):
        _add_file(side, server)
    elif "'" in side:
        raise Failure(f"cannot read the version of a program with a quote in its name: {side}")
    else:
        server.program = os.path.abspath(side)


def _side_of(directory: str, options: PairsOptions, base: bool, seed: int) -> tuple[Scenario, dict[str, str]]:
    """The scenario of one side of a pair, and its settings."""
    side = options.base if base else options.new
    settings = dict(options.run.settings)
    apply_side(side, deepcopy(load_scenarios(directory, options.run)[0]), settings)
    # Constants and sizes are read with the file, so it is read again with the side's values.
    scenario = load_scenarios(directory, replace(options.run, settings=settings))[0]
    apply_side(side, scenario, dict(settings))
    scenario.explanation = False  # it allows only one run
    for step in scenario.steps:
        if step.load and "--seed" not in step.load and step.by == "forktail-load":
            step.load += f" --seed {seed}"
    return scenario, settings


def check_pairs(directory: str, options: PairsOptions) -> None:
    """Checks everything before the start."""
    for base in (True, False):
        scenario, _ = _side_of(directory, options, base, options.seed)
        points = len(points_of(scenario, parse_scale(scenario, options.run.scale)))
        recorded = sum(step.record for step in scenario.steps)
        if recorded != 1 or points != 1:
            raise Failure(
                f"{scenario.name} cannot be run in pairs: pairs need one point and one recorded load, "
                f"but it has {points} and {recorded}"
            )


def _open(options: PairsOptions) -> None:
    """Opens a new directory, or continues one with the same options."""
    out = options.run.out
    identity = f"scenario {options.run.names[0]}\nbase {options.base}\nnew {options.new}\nseed {options.seed}\n"
    if not os.path.exists(out) or (options.run.resume and holds_nothing(out)):
        make_directory(out, out)
        replace_file(f"{out}/{_IDENTITY}", identity)
    elif not options.run.resume:
        raise Failure(exists_text(out))
    elif read_file(f"{out}/{_IDENTITY}") != identity:
        raise Failure(f"{out} was started with another scenario, other sides or another seed")


def draw_order(seed: int, pairs: int) -> list[bool]:
    """True where a pair's base side runs first: the last bits of MT19937-64, which is std::mt19937_64, as runs of
    earlier versions were drawn. It only depends on the seed, not on the number of pairs."""
    size, middle, whole = 312, 156, (1 << 64) - 1
    state = [seed & whole]
    for i in range(1, size):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) & whole)
    order = []
    for i in range(pairs):
        at = i % size
        x = state[at] & ~0x7FFFFFFF & whole | state[(at + 1) % size] & 0x7FFFFFFF
        state[at] = state[(at + middle) % size] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        y = state[at]
        y ^= y >> 29 & 0x5555555555555555
        y ^= y << 17 & 0x71D67FFFEDA60000
        y ^= y << 37 & 0xFFF7EEE000000000 & whole
        order.append(bool((y ^ y >> 43) & 1))
    return order


def run_pairs(session: Session, directory: str, options: PairsOptions) -> None:
    """Runs the pairs: OUT/base/pair-01, OUT/new/pair-01 and so on."""
    order, out, run = draw_order(options.seed, options.pairs), options.run.out, options.run
    names = [f"pair-{number:02}" for number in range(1, options.pairs + 1)]
    _open(options)
    load_average = os.getloadavg()[0]  # later it has the load of the pairs
    # Written before the first run, as proof that results did not influence the order.
    lines = [
        f"{name} {'base new' if base_first else 'new base'}\n" for name, base_first in zip(names, order, strict=True)
    ]
    replace_file(f"{out}/{_ORDER}", "".join(lines))
    for number, (name, base_first) in enumerate(zip(names, order, strict=True), 1):
        for base in (base_first, not base_first):
            scenario, settings = _side_of(directory, options, base, options.seed + number)
            side = "base" if base else "new"
            to = f"{out}/{side}/{name}"
            say(f"pair {number} of {options.pairs}: {side}")
            experiment = ExperimentOptions(
                scale=parse_scale(scenario, run.scale),
                scale_text=run.scale,
                out=to,
                load_average=load_average,
                resume=run.resume and os.path.exists(to),
                command=run.command,
                settings=settings,
                no_client=run.no_client,
            )
            run_experiment(session, scenario, experiment)
    print(f"forktail diff {out}/base {out}/new", flush=True)
