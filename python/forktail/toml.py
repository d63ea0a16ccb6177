# SPDX-License-Identifier: MIT
"""Reads the tables of a TOML file (a scenario, a plan of hosts): the caller requests each key with its type. The first
mistake is raised as "FILE:LINE: reason".

Unknown keys are refused first, because one explains why another key is missing. tomllib gives no lines, so the text is
scanned for them a second time.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, NoReturn

from forktail.failure import USAGE, Failure

# The path of a node, and its line: ("server", 0, "count") is the second line of the first [[server]].
Place = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*'|#[^\n]*|[][{}=,]|"
    r"""\d{4}-\d\d-\d\d \d\d:[^]\s,}#]*|[^][\s{}=,#"']+""",
    re.S,
)


class _Lines:
    """The lines of all nodes of a valid text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {(): 1}
        self.counts: dict[Place, int] = {}  # elements of each [[list]] so far
        self.tokens: list[tuple[str, int]] = []
        line, at = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", at, match.start())
            at = match.start()
            if not match[0].startswith("#"):
                self.tokens.append((match[0], line))
        self.tokens.reverse()  # the next one is the last
        base: Place = ()
        while self.tokens:
            base = self.header() if self.tokens[-1][0] == "[" else self.pair(base)

    def keys(self, end: str) -> list[str]:
        """Reads a dotted key and the token after it."""
        keys: list[str] = []
        while (token := self.tokens.pop()[0]) != end:
            keys += [tomllib.loads(f"k={token}")["k"]] if token[0] in "\"'" else filter(None, token.split("."))
        return keys

    def place(self, base: Place, keys: list[str], line: int) -> Place:
        """The place of a key, in the last element of each list on its way."""
        for i, key in enumerate(keys):
            base += (key,)
            self.lines.setdefault(base, line)
            if base in self.counts and i + 1 < len(keys):
                base += (self.counts[base] - 1,)
        return base

    def header(self) -> Place:
        line = self.tokens.pop()[1]
        several = self.tokens[-1][0] == "["
        if several:
            self.tokens.pop()
        place = self.place((), self.keys("]"), line)
        if several:
            self.tokens.pop()
            self.counts[place] = self.counts.get(place, 0) + 1
            place += (self.counts[place] - 1,)
        self.lines[place] = line
        return place

    def pair(self, base: Place) -> Place:
        line = self.tokens[-1][1]
        self.value(self.place(base, self.keys("="), line))
        return base

    def value(self, place: Place) -> None:
        token, self.lines[place] = self.tokens.pop()
        count = 0
        while token == "[" and self.tokens[-1][0] != "]":
            if self.tokens[-1][0] == ",":
                self.tokens.pop()
            else:
                self.value((*place, count))
                count += 1
        while token == "{" and self.tokens[-1][0] != "}":
            if self.tokens[-1][0] == ",":
                self.tokens.pop()
            else:
                self.pair(place)
        if token in ("[", "{"):
            self.tokens.pop()


def _text(node: Any) -> str | None:
    """A string or a number as text."""
    if isinstance(node, str):
        return node
    if isinstance(node, int) and not isinstance(node, bool):
        return str(node)
    return f"{node:.15g}" if isinstance(node, float) else None


def _texts(node: Any) -> list[str] | None:
    """A text, or a list of them."""
    texts = [_text(one) for one in node] if isinstance(node, list) else [_text(node)]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None


class Table:
    """A table of a file. A missing key reads as "", False, 0 or empty.

    `what` names it in messages: "a server". `templates`: a string may be a number, because templates are filled in.
    """

    def __init__(
        self, path: str, node: dict[str, Any], lines: dict[Place, int], place: Place, what: str, templates: bool
    ) -> None:
        self.path, self.node, self.what, self.templates = path, node, what, templates
        self._lines, self._place = lines, place
        self.line = lines[place]

    def allow(self, *keys: str) -> None:
        """Refuses other keys."""
        for key in sorted(self.node.keys() - set(keys)):
            has = f"; it has {', '.join(sorted(keys))}" if self.templates else ""
            self.refuse(f"{self.what} has no `{key}`{has}", key)

    def refuse(self, why: str, *key: str) -> NoReturn:
        """Raises Failure at the line of the table or of a key."""
        line = self._lines.get((*self._place, *key), self.line)
        raise Failure(f"{self.path}:{line}: {why}", USAGE)

    def require(self, *keys: str) -> None:
        for key in keys:
            if key not in self.node:
                self.refuse(f"{self.what} needs `{key}`")

    def _value(self, place: tuple[str, ...], value: Any, wanted: str) -> Any:
        """Refuses None."""
        if value is None:
            self.refuse(f"`{place[-1]}` must be {wanted}", *place)
        return value

    def _map(self, key: str) -> list[tuple[str, Any]]:
        node = self.node.get(key, {})
        return sorted(self._value((key,), node if isinstance(node, dict) else None, "a table").items())

    def _as_text(self, place: tuple[str, ...], node: Any) -> str:
        if self.templates:
            return str(self._value(place, _text(node), "a string or a number"))
        return str(self._value(place, node if isinstance(node, str) else None, "a string"))

    def _as_number(self, place: tuple[str, ...], node: Any) -> float:
        """Infinities and NaN are not numbers, nor are integers that a double cannot represent."""
        good = isinstance(node, (int, float)) and not isinstance(node, bool) and abs(node) < 1e308
        return float(self._value(place, node if good and float(node) == node else None, "a number"))

    def text(self, key: str) -> str:
        return self._as_text((key,), self.node.get(key, ""))

    def flag(self, key: str) -> bool:
        node = self.node.get(key, False)
        return bool(self._value((key,), node if isinstance(node, bool) else None, "true or false"))

    def number(self, key: str) -> float:
        return self._as_number((key,), self.node.get(key, 0))

    def words(self, key: str) -> list[str]:
        """A string, a number, or a list of them."""
        words: list[str] = self._value((key,), _texts(self.node.get(key, [])), "a string or a list of strings")
        return words

    def texts(self, key: str) -> dict[str, str]:
        """{ name = value, ... }, in the order of names."""
        return {name: self._as_text((key, name), node) for name, node in self._map(key)}

    def numbers(self, key: str) -> dict[str, float]:
        return {name: self._as_number((key, name), node) for name, node in self._map(key)}

    def lists(self, key: str) -> dict[str, list[str]]:
        wanted = "a value or a list of values"
        return {name: self._value((key, name), _texts(node), wanted) for name, node in self._map(key)}

    def _table(self, node: Any, place: Place, key: str, what: str) -> "Table":
        if not isinstance(node, dict):
            name = f"`{key}`" if self.templates else f"[{key}]"
            raise Failure(f"{self.path}:{self._lines[place]}: {name} must be a table", USAGE)
        return Table(self.path, node, self._lines, place, what, self.templates)

    def inner(self, key: str) -> "Table | None":
        """[key], if present."""
        what = f"`{key}`" if self.templates else f"[{key}]"
        return self._table(self.node[key], (*self._place, key), key, what) if key in self.node else None

    def each(self, key: str, what: str) -> list["Table"]:
        """Each [[key]]; messages call them `what`."""
        nodes = self.node.get(key, [])
        if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
            if self.templates:
                self.refuse(f"`{key}` must be a list of tables: [[{key}]]", key)
            self.refuse(f"[[{key}]] must be written with two brackets", key)
        return [self._table(node, (*self._place, key, i), key, what) for i, node in enumerate(nodes)]

    def each_named(self, key: str, what: str) -> Iterator[tuple[str, "Table"]]:
        """Each [key.NAME], in the order of names."""
        for name, node in self._map(key):
            yield name, self._table(node, (*self._place, key, name), name, what)


def read_table(text: str | bytes, path: str, what: str, templates: bool = False) -> Table:
    """A file's text as one table. Raises Failure for what is no TOML."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        node = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Failure(f"{path}:{line}: it is not UTF-8", USAGE) from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; a number may be too long
        reason, _, position = str(error).partition(" (at ")
        found = re.match(r"line (\d+)", position)
        line = int(found[1]) if found else str(text).rstrip().count("\n") + 1
        raise Failure(f"{path}:{line}: {reason}", USAGE) from None
    return Table(path, node, _Lines(text).lines, (), what, templates)
