# SPDX-License-Identifier: MIT
"""Completions of forktail's commands, options and fixed option values, for bash, zsh and fish.

Other arguments are completed as files: most of them are runs.
"""
from help import every

NOTE = '# Generated from --help by cli/manual/.\n'


def known(top):
    """All commands and programs with their own options."""
    return list(every(top))


def names(command):
    return [n for o in command.options() for n in o.names if n != '-?']


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash(top):
    lines = ['# bash completion for forktail', NOTE, '_forktail()', '{',
             '\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= values= word i',
             '\tcase ${COMP_WORDS[0]##*/} in', '\tforktail-*) command=${COMP_WORDS[0]##*forktail-} ;;', '\tesac',
             '\tfor ((i = 1; i < COMP_CWORD; i++)); do', '\t\tword=${COMP_WORDS[i]}', '\t\tcase "$command $word" in']
    for c in known(top):
        for inner in c.commands:
            lines += [f'\t\t{quoted(" ".join(c.words) + " " + inner.words[-1])}) command={quoted(" ".join(inner.words))} ;;']
    lines += ['\t\tesac', '\tdone', '\tcase $command in']
    for c in known(top):
        words = [inner.words[-1] for inner in c.commands] + (names(c) or ['--help', '--version'] * (c is top))
        lines += [f'\t{quoted(" ".join(c.words))}) words={quoted(" ".join(words))} ;;']
    lines += ['\tesac', '\tcase "$command $before" in']
    for c in known(top):
        for o in c.options():
            if o.choices and not o.optional:
                patterns = ' | '.join(quoted(' '.join(c.words) + ' ' + n) for n in o.names)
                lines += [f'\t{patterns}) values={quoted(" ".join(o.choices))} ;;']
    lines += ['\tesac', '\tif [[ $values ]]; then', '\t\tmapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")',
              '\telif [[ $current == -* || ! $command ]]; then',
              '\t\tmapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")', '\telse',
              '\t\tmapfile -t COMPREPLY < <(compgen -W "${words%%-*}" -- "$current"; compgen -f -- "$current")',
              '\t\tcompopt -o filenames 2>/dev/null', '\tfi', '}',
              'complete -F _forktail ' + ' '.join(programs(top))]
    return '\n'.join(lines) + '\n'


def programs(top):
    """forktail and the programs with completions for their own names."""
    return ['forktail'] + ['forktail-' + c.words[0] for c in top.commands + top.programs
                           if c.words[0] in ('record', 'load', 'clock', 'guard')]


def zsh_option(o):
    meaning = o.meaning.replace('\\', '\\\\').replace('[', '\\[').replace(']', '\\]').replace(':', '\\:')
    for name in o.names:
        if name == '-?':
            continue
        last = ''
        if o.argument:
            what = ''.join(c if c.isalnum() else ' ' for c in o.argument).strip() or 'value'
            last = ('::' if o.optional else ':') + what + ':' + ('(' + ' '.join(o.choices) + ')' if o.choices else '_files')
        equals = '=-' if o.optional else '=' if o.argument and name.startswith('--') else ''
        yield quoted('*' + name + equals + '[' + meaning + ']' + last)


def zsh(top):
    lines = ['#compdef ' + ' '.join(programs(top)), NOTE]
    for c in known(top):
        lines += [c.name().replace('-', '_').join(['_', '()']), '{']
        if c.commands:
            lines += ['\tlocal -a commands=(' + ' '.join(
                quoted(i.words[-1] + ':' + i.about.split('\n')[0].replace(':', '\\:')) for i in c.commands) + ')',
                '\tif ((CURRENT > 2)); then', '\t\tlocal inner=$words[2]', '\t\tcase $inner in']
            for i in c.commands:
                lines += [f'\t\t{i.words[-1]}) shift words; ((CURRENT--)); _{i.name().replace("-", "_")}; return ;;']
            lines += ['\t\tesac', '\tfi', "\t[[ $words[CURRENT] == -* ]] || _describe command commands"]
        given = [line for o in c.options() for line in zsh_option(o)]
        if c is top:
            given = [quoted('--help[List the commands]'), quoted('--version[Print the version]')]
        lines += ['\t_arguments -s ' + ' \\\n\t\t'.join(given + ([] if c.commands else [quoted('*:file:_files')]))] if given else []
        lines += ['}', '']
    lines += ['case $service in']
    for program in programs(top):
        lines += [f'{program}) _{program.replace("-", "_")} "$@" ;;']
    return '\n'.join(lines + ['esac']) + '\n'


def fish_option(o):
    words = []
    for name in o.names:
        if name == '-?':
            continue
        words += ['-l ' + name[2:] if name.startswith('--') else ('-s ' if len(name) == 2 else '-o ') + name[1:]]
    meaning = o.meaning.replace('\\', '\\\\').replace("'", "\\'")
    more = ' -r' if o.argument and not o.optional else ''
    if o.choices:
        more += " -f -a '" + ' '.join(o.choices) + "'"
    return ' '.join(words) + more + " -d '" + meaning + "'"


def fish(top):
    lines = ['# fish completion for forktail', NOTE]
    for c in top.commands:
        about = c.about.split('\n')[0].replace("'", "\\'")
        lines += [f"complete -c forktail -n __fish_use_subcommand -f -a {c.words[0]} -d '{about}'"]
    lines += ["complete -c forktail -n __fish_use_subcommand -f -l help -d 'List the commands'",
              "complete -c forktail -n __fish_use_subcommand -f -l version -d 'Print the version'"]
    for c in known(top):
        if c is top:
            continue
        when = f"'__fish_seen_subcommand_from {c.words[0]}" + ''.join(
            f'; and __fish_seen_subcommand_from {w}' for w in c.words[1:])
        if c.commands:
            inner = ' '.join(i.words[-1] for i in c.commands)
            lines += [f"complete -c forktail -n {when}; and not __fish_seen_subcommand_from {inner}' -f -a '{inner}'"]
        for o in c.options():
            if c not in top.programs:
                lines += [f"complete -c forktail -n {when}' " + fish_option(o)]
            if len(c.words) == 1 and 'forktail-' + c.words[0] in programs(top):
                lines += [f'complete -c forktail-{c.words[0]} ' + fish_option(o)]
    return '\n'.join(lines) + '\n'
