#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks the review text of cli/manual/strings: it is complete, and it is in plain words.

    strings.py FILE    exit status 1: a known string is missing, or a string contains a phrase of BANNED
"""
import re
import sys

# A string of each program, and of each way to print one. Where a word changes, change it here.
KNOWN = [r'^## forktail --help$', r'^## forktail lab run --help$', r'^## forktail record --help$', r'^## forktail load --help$',
         r'^## forktail guard --help$', r'^## forktail rank --help$', r'^## forktail clock probe --help$', r'^ +--slow THRESHOLD ',
         r'^\d+: forktail: unknown command \'%s\'; forktail help lists the commands$',  # forktail
         r'^\d+: cannot read \{\}: \{\}$',  # several sources, joined with +
         r'^## cli/sql\.cc$', r'^## analysis/evidence/\S+\.cc$', r'^## analysis/report/src/\S+\.js$', r'^## analysis/fleet/\S+\.py$',
         r'^## loader/\S+\.c$', r'^## loadgen/\S+\.c$', r'^## live/watch/\S+\.cc$', r'^## hosts/clock/\S+\.c$', r'^## lab/\S+\.cc$']
# Phrases that readers stumble over; say what the hint says.
BANNED = {
    r'\banew\b': 'again', r'\bfor ever\b': 'continuously', r'\bso much\b': 'name the quantity', r'\bwho(m|ever)\b': 'which thread',
    r"\bone's own\b": 'custom', r'\btold\b': 'is reported', r'\btells?\b': 'prints, reports, distinguishes', r'\bgive or take\b': 'within',
    r'\b(some|no)body\b': 'name the process, thread or user', r'\bcan be had\b': 'is available', r'\bas ever\b': 'leave it out',
    r'\bcomes? to (that|it|in all|[0-9{%])': 'amounts to', r'\bgoes? on\b': 'continues', r"\bcan't be had\b": 'is not available',
    r'\bbeside (it|them|each)\b': 'next to', r'\bwhat (it|that|this|they) (is|are|was|were) (of|for)\b': 'name it',
    r'\bturns? of (an|the|its) (event )?loops?\b': 'event-loop iteration', r'\ba turn\b': 'an event-loop iteration',
    r'\bare one or the other\b': 'are mutually exclusive', r'\bgive way\b': 'lower the priority'}


def main(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    wrong = [f'missing: {known}' for known in KNOWN if not re.search(known, text, re.M)]
    heading = ''
    for line in text.splitlines():
        heading = line[3:] if line.startswith('## ') else heading
        wrong += [f'{heading}: "{line.strip()}": "{found.group()}" is banned: {hint}' for phrase, hint in BANNED.items()
                  for found in [re.search(phrase, line, re.I)] if found]
    print('\n'.join(wrong) or f'{len(text.splitlines())} lines, {len(text.split())} words of help and messages')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
