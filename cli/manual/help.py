# SPDX-License-Identifier: MIT
"""Parses the --help texts of forktail's programs.

C programs print it with argp, C++ programs with CLI11, Python commands like CLI11, the fleet with argparse. In all of them
an option's line starts with a few spaces and a hyphen, and its description follows after at least two spaces or on the
next lines. Examples are the indented lines below "Examples:". This is the only source of options for pages and completions.
"""
import os
import re
import subprocess
from dataclasses import dataclass, field

NAME = re.compile(r'(?<![\w-])--?[A-Za-z0-9?][\w-]*')
# Columns where CLI11 and argp start descriptions, possibly after only one space.
COLUMNS = 30, 29


@dataclass
class Option:
    names: list
    argument: str = ''  # as printed; '' if none
    optional: bool = False  # the argument, after =
    meaning: str = ''
    choices: list = field(default_factory=list)


@dataclass
class Command:
    words: list  # ['lab', 'run']; [] is forktail itself
    about: str = ''
    usage: list = field(default_factory=list)
    arguments: list = field(default_factory=list)  # (name, meaning)
    groups: list = field(default_factory=list)  # (title, [Option])
    commands: list = field(default_factory=list)  # [Command]
    programs: list = field(default_factory=list)  # [Command]: only of forktail: programs that other programs start
    text: str = ''  # the --help text, without examples
    examples: str = ''  # lines, indented by four spaces

    def options(self):
        return [o for _, options in self.groups for o in options]

    def name(self):
        return '-'.join(['forktail'] + self.words)


def run(words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False, env={'PATH': '/usr/bin:/bin', 'COLUMNS': '80', 'LC_ALL': 'C.UTF-8'}).stdout


def split(line, below):
    """An entry's words, and the part of its description on the same line."""
    found = re.match(r'( *\S.*?)(?: {2,}(\S.*))?$', line)
    words, meaning = found.group(1), found.group(2) or ''
    for column in COLUMNS:
        if not meaning and not below and line[column - 1:column] == ' ' and line[column:].strip():
            words, meaning = line[:column], line[column:]
    return words.strip(), meaning.strip()


def option(words, meaning):
    words = re.sub(r'\s*(Excludes|Needs): \S+', '', words)
    words = re.sub(r'\bREQUIRED\b|\(REQUIRED\)', '', words)
    o = Option(NAME.findall(words.split('=')[0] if '[' not in words.split('=')[0] else words.split('[')[0]), meaning=meaning)
    for more in re.findall(r',\s*(--?[\w-]+)', words):  # -s, --socket=PATH, --unix-socket=PATH
        if more not in o.names:
            o.names.append(more)
    rest = words
    for name in sorted(o.names, key=len, reverse=True):
        rest = re.sub(r'(?<![\w-])' + re.escape(name) + r'(?![\w-])', '', rest)
    rest = rest.strip(' ,')
    o.optional = rest.startswith('[=')
    rest = rest.strip('[]') if o.optional else rest
    typed = not rest.startswith('=') # CLI11's: UINT:SIZE [b, kb(=1024b), ...]
    rest = rest.lstrip('=').split(', =')[0]
    braces = re.search(r'\{([^}]*)\}', rest)
    if braces:
        o.choices = braces.group(1).split(',')
    elif re.fullmatch(r'[a-z0-9-]+(\|[a-z0-9-]+)+', rest):
        o.choices = rest.split('|')
    o.argument = '|'.join(o.choices) if o.choices else re.sub(r'(\w+):.*', r'\1', rest) if typed else rest
    return o


def entries(lines):
    """(heading, words, description) of every listed entry."""
    heading = ''
    i = 0
    while i < len(lines):
        line = lines[i]
        title = re.fullmatch(r' ?(\w[^:]*):', line)
        i += 1
        if title:
            heading = title.group(1)
        if not re.match(r' {1,6}\S', line) or title:
            continue
        below = []
        while i < len(lines) and re.match(r' {12,}\S', lines[i]):
            below.append(lines[i].strip())
            i += 1
        words, meaning = split(line, below)
        yield heading, words, ' '.join([meaning] + below).strip()


def about(lines):
    """The text above the first list, without the usage."""
    text = []
    for line in lines:
        if re.match(r' *-|\w[^:]*:$| \w[^:]*:$', line):
            break
        if not re.match(r'(?i)usage:|  ', line):
            text.append(line.strip())
    return '\n'.join(text).strip()


def without_examples(text):
    """The text, and its examples."""
    found = re.search(r'(?m)^Examples:\n((?:  .*\n)+)\n?', text)
    return (text[:found.start()] + text[found.end():], found.group(1)) if found else (text, '')


def parse(words, text):
    text, examples = without_examples(text)
    c = Command(words, text=text, examples=re.sub(r'(?m)^  ', '    ', examples))
    lines = text.splitlines()
    c.about = about(lines)
    c.usage = [re.sub(r'(?i)^\s*usage:\s*', '', line).strip() for line in lines
               if re.match(r'(?i)usage:|       forktail[ -]', line)]
    for heading, entry, meaning in entries(lines):
        if entry.startswith('-'):
            if not c.groups or c.groups[-1][0] != heading:
                c.groups.append((heading, []))
            c.groups[-1][1].append(option(entry, meaning))
        elif heading.lower() in ('positionals', 'positional arguments'):
            c.arguments.append((re.sub(r'\s+', ' ', re.sub(r'\bREQUIRED\b|\bTEXT\b|\(\d+x\)', '', entry)).strip(), meaning))
    return c


def below(c):
    """Names of a command's subcommands."""
    names = [entry.split()[0] for heading, entry, _ in entries(c.text.splitlines()) if heading.lower() == 'subcommands']
    prefix = 'forktail ' + ' '.join(c.words)
    for found in re.findall(r'(?m)^(?:Usage:)?\s*' + re.escape(prefix) + r' ([a-z]+)\b', c.text):
        if found not in names:
            names.append(found)
    return names


def read(programs):
    """forktail with the commands in forktail --help, and the installed programs that it or mpirun starts."""
    text, examples = without_examples(run([programs + '/forktail', '--help']))
    main = Command([], text=text, examples=re.sub(r'(?m)^  ', '    ', examples))
    main.about = main.text.split('\n', 1)[0]
    for name in dict.fromkeys(re.findall(r'(?m)^ +forktail ([a-z]+)', main.text)):
        ask = [programs + '/forktail', name]
        c = parse([name], run(ask + ['--help']))
        main.commands.append(c)
        for inner in below(c):
            c.commands.append(parse([name, inner], run(ask + [inner, '--help'])))
    for name in ('guard', 'rank'):
        program = programs + '/forktail-' + name
        if os.access(program, os.X_OK):
            main.programs.append(parse([name], run([program, '--help'])))
    silent = [c.name() for c in every(main) if not c.text]
    if silent:
        raise SystemExit('manual: these commands print no --help: ' + ', '.join(silent))
    return main


def every(command):
    yield command
    for c in command.commands + command.programs:
        yield from every(c)
