#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the top folders, except hidden ones, and the sources in each folder, because a reader has to grasp either at a
glance.

    layout.py DIRECTORY    exit status 1 when there are more than allowed
"""
import sys

from sources import folders_of

TOP = 17
IN_FOLDER = 30
SOURCES = (".c", ".cc", ".h", ".py", ".mjs", ".js")  # .bpf.c counts as .c


def main():
    folders = list(folders_of(sys.argv[1]))
    counts = {folder: sum(name.endswith(SOURCES) for name in files) for folder, _, files in folders}
    top = len(folders[0][1])
    print(f"{top} top folders (limit {TOP}): {' '.join(folders[0][1])}")
    largest = sorted(counts, key=counts.get, reverse=True)
    full = [folder for folder in largest if counts[folder] > IN_FOLDER]
    for folder in full or largest[:1]:
        print(f"{counts[folder]} sources and headers in {folder} (limit {IN_FOLDER})")
    return 1 if top > TOP or full or not any(counts.values()) else 0


sys.exit(main())
