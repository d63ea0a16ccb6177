# SPDX-License-Identifier: MIT
"""Command lines: values, refusals, and --help in the form of the C++ programs."""

import pytest

from forktail.options import Command, Option

SERVE = Command(
    "forktail serve",
    "Start servers.",
    [
        Option("KIND", "A kind of server", required=True),
        Option("ARGUMENT", "After --: more arguments", several=True),
        Option("-n,--count", "Start N servers", "N", 1, kind="INT", limits=(1, 100)),
        Option("--size-mb", "Fill them with N MiB", "N", kind="UINT"),
        Option("--rate", "Send R requests per second", "R", 1e6, kind="FLOAT", limits=(1.0, 10e6)),
        Option("--of", "Forward to ADDRESS", "ADDRESS", several=True),
        Option("--tcp", "Listen on ports", excludes="--unix"),
        Option("--unix", "Listen on sockets", excludes="--tcp"),
    ],
)
MAIN = Command(
    "forktail", "Does things.", [Option("--in", "Work in DIR", "DIR", "here")], [SERVE], ("forktail serve redis",)
)
DEFAULTS = {
    "kind": "redis",
    "argument": [],
    "count": 1,
    "size_mb": None,
    "rate": 1e6,
    "of": [],
    "tcp": False,
    "unix": False,
}


@pytest.mark.parametrize(
    "words, changed",
    [
        ("redis", {}),
        ("-n3 redis", {"count": 3}),
        ("redis -n 3 --rate=2.5 --size-mb 0", {"count": 3, "rate": 2.5, "size_mb": 0}),
        ("--of a redis --of=b --tcp", {"of": ["a", "b"], "tcp": True}),
        ("redis -- --save -- x", {"argument": ["--save", "--", "x"]}),
    ],
)
def test_values(words: str, changed: dict[str, object]) -> None:
    assert MAIN.parse(["serve", *words.split()]) == (SERVE, {"in": "here", **DEFAULTS, **changed})


def test_options_before_the_subcommand() -> None:
    assert MAIN.parse(["--in", "there", "serve", "redis"])[1]["in"] == "there"


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("", "forktail: name one of the commands serve. See forktail --help"),
        ("nonsense", 'forktail: unknown command "nonsense". See forktail --help'),
        ("sreve", 'forktail: unknown command "sreve". Did you mean serve? See forktail --help'),
        ("serve", "forktail serve: KIND is required. See forktail serve --help"),
        ("serve redis --count", "forktail serve: --count needs a value: N. See forktail serve --help"),
        (
            "serve redis --count 0",
            'forktail serve: --count: expected a number from 1 to 100, got "0". See forktail serve --help',
        ),
        (
            "serve redis --count 1_0",
            'forktail serve: --count: expected a number from 1 to 100, got "1_0". See forktail serve --help',
        ),
        (
            "serve redis --rate soon",
            'forktail serve: --rate: expected a number from 1 to 1e+07, got "soon". See forktail serve --help',
        ),
        (
            "serve redis --size-mb -1",
            'forktail serve: --size-mb: expected a number, got "-1". See forktail serve --help',
        ),
        (
            "serve redis --count 1 -n2",
            "forktail serve: --count is given 2 times; at most 1 is allowed. See forktail serve --help",
        ),
        ("serve redis --tcp=no", "forktail serve: --tcp takes no value. See forktail serve --help"),
        (
            "serve redis --tcp --unix",
            "forktail serve: --tcp and --unix are mutually exclusive. See forktail serve --help",
        ),
        ("serve redis --zzz -x", "forktail serve: unknown option --zzz. See forktail serve --help"),
        (
            "serve redis --cuont 1",
            "forktail serve: unknown option --cuont. Did you mean --count? See forktail serve --help",
        ),
        ("serve redis --x\x1b", "forktail serve: unknown option --x\\x1b. See forktail serve --help"),
    ],
)
def test_refusals(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        MAIN.parse(words.split())
    assert (refused.value.code, *capsys.readouterr()) == (2, "", sentence + "\n")


@pytest.mark.parametrize(
    "words, text",
    [
        (
            "--help",
            """\
Does things.

Examples:
  forktail serve redis

Usage: forktail [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit
  --in DIR=here               Work in DIR

Subcommands:
  serve                       Start servers.

""",
        ),
        (
            "serve -h extra",
            """\
Start servers.

Usage: forktail serve [OPTIONS] KIND [ARGUMENT...]

Positionals:
  KIND TEXT REQUIRED          A kind of server
  ARGUMENT TEXT ...           After --: more arguments

Options:
  -h,--help                   Print this help message and exit
  -n,--count N:INT in [1 - 100]=1
                              Start N servers
  --size-mb N                 Fill them with N MiB
  --rate R:FLOAT in [1 - 1e+07]=1e+06
                              Send R requests per second
  --of ADDRESS ...            Forward to ADDRESS
  --tcp Excludes: --unix      Listen on ports
  --unix Excludes: --tcp      Listen on sockets

""",
        ),
    ],
)
def test_help(words: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        MAIN.parse(words.split())
    assert (done.value.code, *capsys.readouterr()) == (0, text, "")
