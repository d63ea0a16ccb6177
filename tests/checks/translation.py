# SPDX-License-Identifier: MIT
"""Compares a translated README with the English one, section by section: commands and outputs, figures, and links.
    translation.py README TRANSLATION
Each difference is a line of output, and the exit status is 1. The prose is free; what can be right or wrong is not.
"""
import collections
import os
import re
import sys

FENCE = re.compile(r"^```.*?\n(.*?)^```$", re.M | re.S)
COMMENT = re.compile(r"\s+# .*$", re.M)  # of a command: prose


def section(text):
    """Its facts by kind, each a list. The order of figures and links in a sentence depends on the language."""
    blocks = [COMMENT.sub("", block) for block in FENCE.findall(text)]
    prose = re.sub(r"^#+ [^\n]*$|<!--.*?-->", "", FENCE.sub("", text), flags=re.M | re.S)
    codes = re.findall(r"`([^`\n]+)`", prose)
    prose = re.sub(r"`[^`\n]+`", "", prose)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    figures = re.findall(r"\d[\d,.]*(?<![,.])(?: ?%)?", re.sub(r"\]\([^)\s]+\)", "]", prose))
    return {"block": blocks, "command or name": codes, "figure": figures, "link": links}


def sections(path, other):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # Each page links to the other one.
    text = text.replace(f"({os.path.basename(other)})", "(the other language)")
    fences = [match.span() for match in FENCE.finditer(text)]
    heads = [match.start() for match in re.finditer(r"^## ", text, re.M) if not any(a < match.start() < b for a, b in fences)]
    return [section(text[begin:end]) for begin, end in zip([0, *heads], [*heads, len(text)])]


def differences(path, translation):
    ours, theirs = sections(path, translation), sections(translation, path)
    if len(ours) != len(theirs):
        yield f"{len(theirs)} sections instead of {len(ours)}"
        return
    for number, (one, other) in enumerate(zip(ours, theirs)):
        for kind in one:
            lacks = collections.Counter(one[kind]) - collections.Counter(other[kind])
            adds = collections.Counter(other[kind]) - collections.Counter(one[kind])
            yield from (f"section {number} lacks the {kind} {fact!r}" for fact in lacks)
            yield from (f"section {number} has another {kind} {fact!r}" for fact in adds)


found = 0
for difference in differences(*sys.argv[1:]):
    print(f"{os.path.basename(sys.argv[2])}: {difference}")
    found += 1
sys.exit(1 if found else 0)
