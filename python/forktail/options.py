# SPDX-License-Identifier: MIT
"""Command lines as tables of options: parsing, --help and refusals in the form of forktail's C++ programs.

A row says an option's names, meaning, type, range and default once. Manual pages and completions are made from --help
(cli/manual/).
"""

import difflib
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forktail.failure import USAGE
from forktail.text import visible

_COLUMN = 30  # where meanings start


@dataclass
class Option:
    """An option, or an argument without a hyphen before its name."""

    names: str  # "-o,--out", or "NAME" for an argument
    meaning: str
    type: str = ""  # the value in --help: "DIR". "": a flag, or a TEXT argument
    default: Any = None  # printed in --help, unless it is None
    required: bool = False
    several: bool = False  # the value is a list
    kind: str = ""  # of a number: INT, UINT, FLOAT
    limits: tuple[float, float] | None = None  # the least and the most of a number; printed in --help with its kind
    excludes: str = ""  # the long name of an option that contradicts this one

    @property
    def name(self) -> str:
        """In refusals: "--out"."""
        return self.names.split(",")[-1]

    @property
    def key(self) -> str:
        """In the parsed values: "out"."""
        return self.name.lstrip("-").replace("-", "_").lower()

    @property
    def is_argument(self) -> bool:
        return not self.names.startswith("-")

    @property
    def is_flag(self) -> bool:
        return not self.type and not self.is_argument

    def line(self) -> str:
        """Its entry in --help."""
        words = self.names
        if not self.is_flag:
            words += " " + (self.type or "TEXT")
        if self.limits:
            words += f":{self.kind} in [{_number(self.limits[0])} - {_number(self.limits[1])}]"
        if self.default is not None:
            words += f"={_number(self.default)}"
        words += " ..." if self.several else ""
        words += " REQUIRED" if self.required else ""
        words += f" Excludes: {self.excludes}" if self.excludes else ""
        return _entry(words, self.meaning)

    def value(self, text: str) -> Any:
        """Raises ValueError with a sentence."""
        if not self.kind:
            return text
        low, high = self.limits or ((0 if self.kind == "UINT" else -(2**63)), 2**64 - 1)
        try:
            if re.fullmatch(r"[0-9.eE+-]+", text):  # Python's own numbers may have _ and other digits
                number = float(text) if self.kind == "FLOAT" else int(text)
                if low <= number <= high:
                    return number
        except ValueError:
            pass
        if not self.limits:
            raise ValueError(f'{self.name}: expected a number, got "{text}"')
        raise ValueError(f'{self.name}: expected a number from {_number(low)} to {_number(high)}, got "{text}"')


JSON_OPTIONS = [Option("--json", "Print JSON"), Option("--json-schema", "Print the JSON Schema of --json")]


@dataclass
class Command:
    """A command line. With `commands`, one of them must follow its options."""

    name: str  # "forktail lab run"
    about: str
    options: list[Option] = field(default_factory=list)
    commands: list["Command"] = field(default_factory=list)
    examples: tuple[str, ...] = ()  # command lines, with which --help begins
    schema: Path | None = None  # of the JSON that JSON_OPTIONS print

    def help(self) -> str:
        arguments = [o for o in self.options if o.is_argument]
        usage = [f"Usage: {self.name} [OPTIONS]"]
        for o in arguments:
            shown = o.names + ("..." if o.several else "")
            usage.append(shown if o.required else f"[{shown}]")
        usage += ["SUBCOMMAND"] if self.commands else []
        own = _entry("-h,--help", "Print this help message and exit")
        parts = [
            f"{_wrapped(self.about)}\n",
            "Examples:\n" + "".join(f"  {line}\n" for line in self.examples) if self.examples else "",
            f"{' '.join(usage)}\n",
            "Positionals:\n" + "".join(o.line() for o in arguments) if arguments else "",
            "Options:\n" + own + "".join(o.line() for o in self.options if not o.is_argument),
            "Subcommands:\n" + "".join(_entry(c.name.split()[-1], c.about) for c in self.commands)
            if self.commands
            else "",
        ]
        return "\n".join(filter(None, parts)) + "\n"

    def parse(self, words: list[str]) -> tuple["Command", dict[str, Any]]:
        """The command that was given (this one or one of `commands`), and the values of all options by key.

        A missing value is the default, a list [], a flag False. Prints --help, --json-schema or a refusal, and exits,
        where that is the answer.
        """
        try:
            command, values, answer = self._parse(words)
        except ValueError as error:
            why = visible(str(error))
            print(f"{self.name}: {why}{'' if why.endswith('?') else '.'} See {self.name} --help", file=sys.stderr)
            raise SystemExit(USAGE) from None
        if answer:
            print(answer, end="")
            raise SystemExit(0)
        return command, values

    def _parse(self, words: list[str]) -> tuple["Command", dict[str, Any], str]:
        """The command, the values, and what is to be printed in place of running it."""
        given, extra, rest = self._scan(words)
        values: dict[str, Any] = {}
        for o in self.options:
            texts = given.get(o.key, [])
            if len(texts) > 1 and not o.several and not o.is_flag:
                raise ValueError(f"{o.name} is given {len(texts)} times; at most 1 is allowed")
            converted = [o.value(text) for text in texts]
            if o.is_flag:
                values[o.key] = bool(texts)
            else:
                values[o.key] = converted if o.several else converted[0] if converted else o.default
        if "help" in given:
            return self, values, self.help()
        if self.schema and values["json_schema"]:
            return self, values, self.schema.read_text()
        for o in self.options:
            if o.required and o.key not in given:
                raise ValueError(f"{o.name} is required")
            if o.key in given and o.excludes.lstrip("-") in given:
                raise ValueError(f"{o.name} and {o.excludes} are mutually exclusive")
        options = [name for o in self.options if not o.is_argument for name in o.names.split(",")]
        for word in extra:
            if word.startswith("-"):
                raise ValueError(f"unknown option {word}" + did_you_mean(word, options))
        if extra and self.commands:
            raise ValueError(f'unknown command "{extra[0]}"' + did_you_mean(extra[0], self._names()))
        if extra:
            raise ValueError(f'unexpected argument "{extra[0]}"')
        if self.commands:
            if not rest:
                raise ValueError(f"name one of the commands {', '.join(self._names())}")
            command = next(c for c in self.commands if c.name.split()[-1] == rest[0])
            command, more = command.parse(rest[1:])
            return command, {**values, **more}, ""
        return self, values, ""

    def _names(self) -> list[str]:
        return [c.name.split()[-1] for c in self.commands]

    def _scan(self, words: list[str]) -> tuple[dict[str, list[str]], list[str], list[str]]:
        """The texts of each option by key, words that are no option, and the words from a subcommand on."""
        by_name = {name: o for o in self.options if not o.is_argument for name in o.names.split(",")}
        arguments = [o for o in self.options if o.is_argument]
        names = set(self._names())
        given: dict[str, list[str]] = {}
        extra: list[str] = []
        todo = list(words)
        only_arguments = False
        while todo:
            word = todo.pop(0)
            if word in names:
                return given, extra, [word, *todo]
            if word == "--" and not only_arguments:
                only_arguments = True
            elif only_arguments or not re.match(r"--?[\w?@]", word):
                if arguments:
                    given.setdefault(arguments[0].key, []).append(word)
                    if not arguments[0].several:
                        del arguments[0]
                else:
                    extra.append(word)
            elif word in ("-h", "--help"):
                given["help"] = [""]
            else:
                name, equals, text = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
                option = by_name.get(name)
                if not option:
                    extra.append(word)
                    continue
                if option.is_flag:
                    if equals and word.startswith("--"):
                        raise ValueError(f"{name} takes no value")
                    todo[:0] = ["-" + text] if text else []
                elif not equals:
                    if not todo:
                        raise ValueError(f"{option.name} needs a value: {option.type}")
                    text = todo.pop(0)
                given.setdefault(option.key, []).append(text)
        return given, extra, []


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """ ". Did you mean run?", or "" if no name is close."""
    by_letters = {name.lstrip("-"): name for name in names}
    close = difflib.get_close_matches(word.lstrip("-"), by_letters, 1)
    return f". Did you mean {by_letters[close[0]]}?" if close else ""


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _columns() -> int:
    return max(shutil.get_terminal_size((100, 24)).columns, 40)


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.fill(line, _columns(), break_on_hyphens=False) for line in text.split("\n"))


def _entry(words: str, meaning: str) -> str:
    words = "  " + words
    gap = "\n" if len(words) >= _COLUMN else " " * (_COLUMN - len(words))
    indent = " " * _COLUMN
    text = textwrap.fill(meaning, _columns(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return f"{words}{gap}{text if gap[0] == chr(10) else text[_COLUMN:]}\n"
