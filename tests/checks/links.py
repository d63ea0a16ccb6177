# SPDX-License-Identifier: MIT
# Lists relative links of a tree's documents that are dead: missing files, and missing headings.
#   links.py DIRECTORY
import os
import re
import sys

SKIPPED = {"build", "build-python", "build-servers", "build-kernels", "node_modules", "runs", ".git", "dead_links"}


def pages(top):
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith(("build", ".")))
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)


def anchors(path):
    """GitHub's anchors: lower case, no punctuation, dashes for spaces, -1 for the second of a name."""
    found = set(re.findall(r'<a (?:name|id)="([^"]+)"', text_of(path)))
    seen = {}
    for heading in re.findall(r"^#+ +(.*?)\s*$", text_of(path), flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(slug + ("-%d" % seen[slug] if slug in seen else ""))
        seen[slug] = seen.get(slug, 0) + 1
    return found


def dead(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(target):
            yield path + " is not there"
        elif anchor and target.endswith(".md") and anchor not in anchors(target):
            yield path + "#" + anchor + " is no heading"


top = sys.argv[1]
found = 0
for page in pages(top):
    for complaint in dead(page):
        print("%s: %s" % (os.path.relpath(page, top), complaint))
        found += 1
sys.exit(1 if found else 0)
