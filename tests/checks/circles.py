#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Circles of files: a.c uses what b.c defines, and b.c, perhaps by way of others, what a.c defines.

Rooms keep folders from circles (cmake/rooms.cmake); within a room nothing does but this. It asks nm which object
file of a static library uses functions and variables of which other: what goes through a table of functions is no
such use, which is how a lower file may call a higher one.

    circles.py LIBRARY.a...        exit status 1 when there is a circle
"""
import collections
import subprocess
import sys


def uses_of(libraries):
    """For each object file those whose symbols it uses."""
    defines, wants = {}, collections.defaultdict(set)
    for library in libraries:
        for line in subprocess.run(["nm", "-A", "-P", library], check=True, capture_output=True,
                                   text=True).stdout.splitlines():
            where, name, kind = line.split()[:3]
            member = where[where.rindex("[") + 1:].rstrip("]:")
            wants[member]
            if kind in "Uwv":
                wants[member].add(name)
            elif kind.isupper():
                defines[name] = member
    return {member: {defines[name] for name in names if name in defines} - {member}
            for member, names in wants.items()}


def reached_from(uses, member):
    """All that it uses, directly or not."""
    seen, todo = set(), [member]
    while todo:
        new = uses[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


def main():
    uses = uses_of(sys.argv[1:])
    reached = {member: reached_from(uses, member) for member in uses}
    circles = {frozenset(other for other in reached[member] if member in reached[other])
               for member in uses if member in reached[member]}
    for circle in sorted(map(sorted, circles)):
        print("a circle:", ", ".join(f"{member} -> {' '.join(sorted(uses[member] & set(circle)))}"
                                     for member in circle))
    print(f"{len(uses)} files, {len(circles)} circles")
    return 1 if circles or not uses else 0


sys.exit(main())
