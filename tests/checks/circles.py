#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Finds circles of includes: a.cc includes b.h, and b.h or b.cc, perhaps through other files, includes a.h.

Each module lists the modules it uses (cmake/modules.cmake), so circles of folders are refused there. This script
refuses circles of files, in every folder. A source and the headers of its name count as one file: foo.h, foo.c, foo.cc,
foo.bpf.c.

    circles.py DIRECTORY    lists each circle's includes; exit status 1 when there is one
"""
import collections
import itertools
import os
import re
import sys

from sources import files_of, text_of

STEM = re.compile(r"(\.bpf)?\.(c|cc|h)$")


def includes_of(root):
    """For each file, without its extension, the files it includes, each with its include lines."""
    sources = files_of(root, (".c", ".cc", ".h"))
    uses = {STEM.sub("", source): collections.defaultdict(list) for source in sources}
    known = set(sources)
    for source in sources:
        for name in re.findall(r'^\s*#\s*include "([^"]+)"', text_of(root, source), re.MULTILINE):
            beside = os.path.normpath(os.path.join(os.path.dirname(source), name))
            place = beside if beside in known else name
            if place in known and STEM.sub("", place) != STEM.sub("", source):
                uses[STEM.sub("", source)][STEM.sub("", place)].append(f"{source} includes {place}")
    return uses


def reached_from(uses, file):
    """All files that it includes, directly or not."""
    seen, todo = set(), [file]
    while todo:
        new = uses[todo.pop()].keys() - seen
        seen |= new
        todo += new
    return seen


def main():
    uses = includes_of(sys.argv[1])
    reached = {file: reached_from(uses, file) for file in uses}
    circles = {frozenset(other for other in reached[file] if file in reached[other])
               for file in uses if file in reached[file]}
    for circle in sorted(map(sorted, circles)):
        print("a circle:", " ".join(circle))
        for file, other in itertools.permutations(circle, 2):
            for include in uses[file].get(other, ()):
                print("   ", include)
    print(f"{len(uses)} files, {len(circles)} circles")
    return 1 if circles or not uses else 0


sys.exit(main())
