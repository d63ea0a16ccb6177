#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks that the review text of cli/manual/strings is complete.

    strings.py FILE    exit status 1: a known string is missing
"""
import re
import sys

# A string of each program, and of each way to print one. Where a word changes, change it here.
KNOWN = [r'^## forktail --help$', r'^## forktail lab run --help$', r'^## forktail record --help$', r'^## forktail load --help$',
         r'^## forktail guard --help$', r'^## forktail rank --help$', r'^## forktail clock probe --help$', r'^ +--slow THRESHOLD ',
         r'^\d+: unknown command \'\{\}\'\.\{ forktail help lists the commands\}$',  # forktail
         r'^\d+: cannot read \{\}: \{\}$',  # several sources, joined with +
         r'^## python/forktail/sql\.py$', r'^## analysis/explain/\S+\.cc$', r'^## analysis/report/src/\S+\.js$', r'^## python/forktail/fleet/\S+\.py$',
         r'^## loader/\S+\.c$', r'^## loadgen/\S+\.c$', r'^## live/watch/\S+\.cc$', r'^## hosts/clock/\S+\.c$']


def main(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    wrong = [f'missing: {known}' for known in KNOWN if not re.search(known, text, re.M)]
    print('\n'.join(wrong) or f'{len(text.splitlines())} lines, {len(text.split())} words of help and messages')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
