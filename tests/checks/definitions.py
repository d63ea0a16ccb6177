#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Finds types and functions that two files of the tree define.

Two C++ types of one name in one program are undefined behaviour: the linker keeps one of the two destructors for both.
Neither the linker nor the compiler, which sees one source at a time, reports that. So this script reads all sources,
lists the definitions of each in a named namespace, and prints names defined twice.

A file's private definitions do not count: unnamed namespaces, static functions of a source, C types of a source. Nor do
definitions of separate programs: main(), and the sources of two tests. A header of tests and tests/support count.
Of the files machine_NAME in a folder the build takes one (cmake/machine.cmake), so they may define the same.

    definitions.py DIRECTORY    exit status 1 when a name is defined twice
"""
import collections
import itertools
import re
import sys

from sources import files_of, text_of

TOKEN = re.compile(r"""
    (?:\s|//[^\n]*|/\*.*?\*/)+
  | (?P<text>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|(?:u8|[LuU])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
  | (?P<token>[A-Za-z_]\w*|\d(?:'?[\w.])*|::|->|&&|\.\.\.|.)""", re.VERBOSE | re.DOTALL)
CLOSING = {"(": ")", "{": "}", "[": "]"}
TYPES = ("struct", "class", "union", "enum")
ANNOTATIONS = ("__attribute__", "alignas", "SEC")
PROGRAMS = ("tests", "bench")  # folders whose sources are separate programs


def without_directives(text):
    """Of alternatives (#if ... #else) the first."""
    lines, taken, goes_on = [], [], False
    for line in text.split("\n"):
        directive = None if goes_on else re.match(r"\s*#\s*(\w*)", line)
        if directive:
            if directive[1].startswith("if"):
                taken.append(True)
            elif directive[1] in ("elif", "else"):
                taken[-1] = False
            elif directive[1] == "endif":
                taken.pop()
        if directive or goes_on:
            goes_on = line.endswith("\\")
        elif all(taken):
            lines.append(line)
    return "\n".join(lines)


def tree_of(text):
    """Its tokens, each a string ('""' for any literal). Content in brackets is a list that begins with the bracket."""
    tree = []
    enclosing = [tree]
    for match in TOKEN.finditer(without_directives(text)):
        token = '""' if match["text"] else match["token"]
        if token in CLOSING:
            enclosing[-1].append([token])
            enclosing.append(enclosing[-1][-1])
        elif token in CLOSING.values():
            if CLOSING.get(enclosing.pop()[:1][0]) != token:
                raise ValueError(f"unmatched {token}")
        elif token:
            enclosing[-1].append(token)
    return tree


def is_word(token):
    return isinstance(token, str) and re.match(r"[A-Za-z_]", token) is not None


def in_brackets(token, bracket):
    return isinstance(token, list) and token[0] == bracket


def written(tokens):
    """The tokens as one text, with a space where two words would join."""
    text = ""
    for token in tokens:
        token = written(token) + CLOSING[token[0]] if isinstance(token, list) else token
        text += " " + token if is_word(token) and re.search(r"\w$", text) else token
    return text


def past_angles(tokens, at):
    """The place after the > that closes the < at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] == "<") - (tokens[i] == ">")
        if depth == 0:
            return i + 1
    return len(tokens)


def without_prefixes(head):
    """A declaration without template parameters, attributes, and macro calls before it."""
    rest, at = [], 0
    while at < len(head):
        after = head[at + 1] if at + 1 < len(head) else None
        called = is_word(head[at]) and in_brackets(after, "(")
        if head[at] == "template" and after == "<":
            at = past_angles(head, at + 1)
        elif in_brackets(head[at], "[") and len(head[at]) > 1 and in_brackets(head[at][1], "["):
            at += 1
        elif called and (head[at] in ANNOTATIONS or not rest and head[at].isupper() and at + 2 < len(head)):
            at += 2
        else:
            rest.append(head[at])
            at += 1
    return rest


def parameters(group):
    """The types of a function's parameters, without their names and defaults."""
    types, one, depth = [], [], 0
    for token in group[1:] + [","]:
        depth += (token == "<") - (token == ">")
        if token != "," or depth > 0:
            one.append(token)
            continue
        one = one[:one.index("=")] if "=" in one else one
        if len(one) > 1 and is_word(one[-1]) and one[-2] not in ("::", "const", "unsigned", *TYPES):
            one.pop()
        types.append(written(one))
        one = []
    return ", ".join(types)


def function_of(head):
    """The name and parameters of the function that is declared, or None."""
    at = 0
    while at < len(head):
        if head[at] == "operator":
            end = next(i for i in range(at + 2, len(head)) if in_brackets(head[i], "("))
            return written(head[at:end]), parameters(head[end])
        if head[at] == "<":
            at = past_angles(head, at)
        elif in_brackets(head[at], "("):
            break
        else:
            at += 1
    if at < 2 or at == len(head) or not is_word(head[at - 1]):
        return None  # a test or another call of a macro has no type before its name
    if head[at - 1].isupper():  # BPF_PROG(name, ...)
        return head[at][1], ""
    begin = at - 1
    while begin > 0 and head[begin - 1] in ("::", "~"):
        begin -= 1 if head[begin - 1] == "~" else 2
    return written(head[begin:at]), parameters(head[at])


def type_of(head):
    """The name of the type that a declaration defines: "" if it is unnamed, None if it defines none."""
    at = next((i for i, token in enumerate(head) if token in TYPES), None)
    if at is None:
        return None
    name = [token for token in head[at:] if token not in TYPES]
    end = next((i for i, token in enumerate(name) if token in (":", "final")), len(name))
    return written(name[:end])


class Reader:
    """Lists a file's definitions in `found`: "type a::B", "function a::b(int)"."""

    def __init__(self, path, text):
        self.header = path.endswith(".h")
        self.c = path.endswith(".c") or self.header and not re.search(r"^namespace", text, re.MULTILINE)
        self.found = set()
        self.read(tree_of(text), "")

    def read(self, tokens, scope):
        """The definitions in one namespace."""
        head = []
        for token in tokens:
            if token == ";":
                self.alias(without_prefixes(head), scope)
                head = []
            elif in_brackets(token, "{"):
                head = self.braces(head, token, scope)
            else:
                head.append(token)

    def braces(self, head, body, scope):
        """The definition of a declaration before braces. Returns the part that continues after them."""
        names = [word for word in head if word not in ("inline", "namespace", "::")]
        if "namespace" in head:
            if names:
                self.read(body[1:], scope + "::".join(names) + "::")
            return []
        if head == ["extern", '""']:
            self.read(body[1:], scope)
            return []
        head = without_prefixes(head)
        if "=" in head and "operator" not in head:
            return head + [body]
        function = function_of(head)
        if function:
            if ":" in head and not isinstance(head[-1], list):
                return head + [body]  # a constructor's member, with its body still to come
            name, types = function
            if name != "main" and (self.header or "static" not in head):
                self.found.add(f"function {scope}{name}" + ("" if self.c else f"({types})"))
            return []
        if any(in_brackets(token, "(") for token in head):
            return []  # TEST_CASE("...")
        name = type_of(head)
        if name and (self.header or not self.c):
            self.found.add(f"type {scope}{name}")
        return head + [body]

    def alias(self, head, scope):
        """A declaration that ended without braces or after them."""
        if self.header and head[:1] == ["using"] and "=" in head:
            self.found.add(f"type {scope}{head[1]}")
        elif self.header and head[:1] == ["typedef"] and is_word(head[-1]):
            self.found.add(f"type {scope}{head[-1]}")


def is_program(path):
    folders = path.split("/")
    return folders[0] in PROGRAMS and folders[1] != "support" and not path.endswith(".h")


def is_alternative(one, other):
    machines = [re.match(r"(.*/)machine_\w+\.[ch]$", path) for path in (one, other)]
    return all(machines) and machines[0][1] == machines[1][1]


def main():
    places = collections.defaultdict(list)
    for path in files_of(sys.argv[1], (".c", ".cc", ".h")):
        for definition in Reader(path, text_of(sys.argv[1], path)).found:
            places[definition].append(path)
    twice = 0
    for definition, paths in sorted(places.items()):
        for one, other in itertools.combinations(paths, 2):
            if not (is_program(one) and is_program(other)) and not is_alternative(one, other):
                print(f"{definition}: {one} and {other}")
                twice += 1
    print(f"{len(places)} types and functions, {twice} defined twice")
    return 1 if twice or not places else 0


sys.exit(main())
