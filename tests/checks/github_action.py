# SPDX-License-Identifier: MIT
"""Runs the steps of contrib/github/action.yml as GitHub's runner does: github_action.py SOURCE

With an archive whose forktail only says what it was asked, so that it needs neither root nor a build. A wrong checksum, a URL without
one, a failing measurement and a broken limit must each fail its step. 77 without PyYAML.
"""
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile

try:
    import yaml
except ImportError:
    print('SKIPPED: no PyYAML (python3-yaml)')
    sys.exit(77)

FORKTAIL = '#!/bin/sh\necho "$@" >>asked\n[ "$1 $2" != "gate broken" ]\n'


def archive(directory):
    program = os.path.join(directory, 'program')
    with open(program, 'w', encoding='utf-8') as file:
        file.write(FORKTAIL)
    os.chmod(program, 0o755)
    path = os.path.join(directory, 'forktail.tar.gz')
    with tarfile.open(path, 'w:gz') as tar:
        tar.add(program, 'forktail-1.0.0-x86_64/bin/forktail')
    return path


def run(action, directory, given):
    """The name of the step that failed, "" if none did."""
    inputs = {name: given.get(name, about.get('default', '')) for name, about in action['inputs'].items()}
    assert all(name in given for name, about in action['inputs'].items() if about.get('required'))
    environment = {**os.environ, 'RUNNER_TEMP': directory, 'GITHUB_PATH': os.path.join(directory, 'path')}
    for step in action['runs']['steps']:
        if 'run' not in step:
            continue
        path = open(environment['GITHUB_PATH']).read().split() if os.path.exists(environment['GITHUB_PATH']) else []
        values = {name: re.sub(r'\$\{\{ inputs\.(\w+) \}\}', lambda m: inputs[m[1]], text) for name, text in step.get('env', {}).items()}
        assert '${{' not in step['run'], 'an input inside a script would run as code'
        done = subprocess.run(['bash', '--noprofile', '--norc', '-eo', 'pipefail', '-c', step['run']], cwd=directory, check=False,
                              env={**environment, **values, 'PATH': ':'.join([*path, os.environ['PATH']])}, capture_output=True)
        if done.returncode:
            return step['name']
    return ''


def main(source):
    with open(os.path.join(source, 'contrib/github/action.yml'), encoding='utf-8') as file:
        action = yaml.safe_load(file)
    wrong = []
    for given, failed, asked in (
            ({}, '', 'gate run --limits limits.toml --junit gate.xml\n'),
            ({'sha256': '0' * 64}, 'Install forktail', ''),
            ({'archive': 'https://localhost/forktail.tar.gz', 'sha256': ''}, 'Install forktail', ''),
            ({'measure': 'exit 1'}, 'Measure', ''),
            ({'run': 'broken'}, 'Check the limits', 'gate broken --limits limits.toml --junit gate.xml\n')):
        with tempfile.TemporaryDirectory() as directory:
            path = archive(directory)
            with open(path, 'rb') as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            got = run(action, directory, {'archive': path, 'sha256': digest, 'measure': 'mkdir run', 'limits': 'limits.toml', **given})
            record = os.path.join(directory, 'asked')
            said = open(record, encoding='utf-8').read() if os.path.exists(record) else ''
            if (got, said) != (failed, asked):
                wrong.append(f'{given}: {got or "no step"} failed, and forktail was asked: {said}')
    print(*wrong, sep='\n')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
