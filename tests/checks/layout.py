#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts folders on top, hidden ones apart, and sources in each folder: a reader has to take in either at once.

    layout.py DIRECTORY    exit status 1 when there are more than may be
"""
import sys

from sources import folders_of

TOP = 17
IN_FOLDER = 30
SOURCES = (".c", ".cc", ".h", ".py", ".mjs", ".js")  # .bpf.c is one of .c


def main():
    folders = list(folders_of(sys.argv[1]))
    counts = {folder: sum(name.endswith(SOURCES) for name in files) for folder, _, files in folders}
    top = len(folders[0][1])
    print(f"{top} folders on top, of {TOP} at most: {' '.join(folders[0][1])}")
    largest = sorted(counts, key=counts.get, reverse=True)
    full = [folder for folder in largest if counts[folder] > IN_FOLDER]
    for folder in full or largest[:1]:
        print(f"{counts[folder]} sources and headers in {folder}, of {IN_FOLDER} at most")
    return 1 if top > TOP or full or not any(counts.values()) else 0


sys.exit(main())
