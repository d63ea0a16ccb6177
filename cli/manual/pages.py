# SPDX-License-Identifier: MIT
"""Manual pages in man(7): one per command; subcommands are sections of its page.

Options and examples come from --help. Longer descriptions and files are in prose.toml.
"""
import re

STATUS = [('0', 'done'), ('1', 'the answer is no: a limit is violated, or a run is slower than allowed'),
          ('2', 'the command line, or a file that it names, is invalid'),
          ('3', 'the environment or the input prevents it: no privileges, no server, no such run, a full disk'),
          ('4', 'no verdict: the runs of diff do not decide, or a run lacks what a limit of gate or --fail-if is about')]


def text(raw):
    """Escapes text: hyphens stay hyphens, and no line is a request."""
    raw = raw.replace('\\', '\\e').replace('-', '\\-').replace('`', '')
    return re.sub(r"(?m)^([.'])", r'\\&\1', raw)


def spec(option):
    words = ', '.join(r'\fB' + text(n) + r'\fR' for n in option.names)
    if not option.argument:
        return words
    argument = r'\fI' + text(option.argument) + r'\fR'
    if option.optional:
        return words + '[=' + argument + ']'
    return words + ('=' if option.names[-1].startswith('--') else ' ') + argument


def options(command):
    lines = []
    for title, group in command.groups:
        if title and title.lower() != 'options':
            lines += ['.SS ' + text(title)]
        for o in group:
            lines += ['.TP', spec(o), text(o.meaning) if o.meaning else r'\&']
    return lines


def arguments(command):
    lines = []
    for name, meaning in command.arguments:
        lines += ['.TP', r'\fI' + text(name) + r'\fR', text(meaning)]
    return lines


def synopsis(command):
    lines = []
    for usage in command.usage or [command.name().replace('-', ' ') + ' COMMAND ...']:
        lines += ['.br'] * bool(lines) + [r'\fB' + re.sub(r'^(forktail(?:[- ][a-z]+)*)', r'\1\\fR', text(usage))
                                          .replace('forktail\\-', 'forktail ', 1)]
    return lines


def paragraphs(body):
    lines = []
    for part in body.strip('\n').split('\n\n'):
        if part.startswith('    '):
            lines += ['.PP'] * bool(lines) + ['.nf', '.RS 4'] + [text(line[4:]) for line in part.split('\n')] + ['.RE', '.fi']
        else:
            lines += ['.PP'] * bool(lines) + [text(part)]
    return lines


def described(command):
    """The description without the exit statuses, which have their own section."""
    return '\n'.join(line for line in command.about.split('\n') if not line.startswith('Exit status'))


def page(command, top, prose, version, date):
    name = command.name()
    own = prose.get(name, {})
    about = own.get('is') or described(command).split('\n')[0].rstrip('.')
    lines = [f'.TH {name.upper()} 1 {date} "forktail {version}" "forktail"', '.SH NAME', text(name) + r' \- ' + text(about),
             '.SH SYNOPSIS'] + synopsis(command)
    lines += ['.SH DESCRIPTION'] + paragraphs(own.get('about') or described(command))
    if command is top:
        lines += ['.SH COMMANDS']
        for c in command.commands:
            lines += ['.TP', r'\fB' + text(c.name()) + r'\fR(1)',
                      text(prose.get(c.name(), {}).get('is') or described(c).replace('\n', ' '))]
        lines += ['.SH OPTIONS', '.TP', r'\fB\-\-help\fR', 'List the commands.', '.TP', r'\fB\-\-version\fR',
                  'Print the version.']
    lines += (['.SH ARGUMENTS'] + arguments(command)) if command.arguments else []
    lines += (['.SH OPTIONS'] + options(command)) if command.groups else []
    for c in command.commands if command is not top else []:
        lines += ['.SH ' + text(c.name().replace('-', ' ').upper())] + synopsis(c) + ['.PP', text(described(c))]
        lines += arguments(c) + options(c)
    lines += ['.SH EXIT STATUS']
    status = re.search(r'Exit status: (.*)\.', command.about)
    if status:
        lines += [text(status.group(1)) + '.']
    else:
        for number, meaning in STATUS:
            lines += ['.TP', number, text(meaning)]
    for heading, body in (('files', own.get('files')), ('examples', command.examples)):
        if body:
            lines += ['.SH ' + heading.upper()] + paragraphs(body.rstrip('\n') if heading == 'examples' else body)
    also = [c.name() for c in [top] + top.commands + top.programs if c is not command]
    lines += ['.SH SEE ALSO', ',\n'.join(f'.BR {text(n)} (1)' for n in also).replace('(1),', '(1),')]
    return '\n'.join(lines) + '\n'
