#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Minimises the corpus of a fuzz target: keeps the cases that have a name, and of the inputs found by fuzzing, which
libFuzzer names by their hashes, those that add the most coverage.

    tests/fuzz/minimise.py TARGET...             run it after script/fuzz, whose new inputs (build-fuzz/inputs) it considers too
    tests/fuzz/minimise.py --add TARGET FILE...  adds files to a corpus, by their names
"""
import os
import re
import subprocess
import sys
import tempfile
import zipfile

FOUND = 16  # per target


def archive_of(target):
    return f"tests/fuzz/corpus/{target}_seed_corpus.zip"


def inputs_of(target):
    """{name: bytes} of a corpus."""
    with zipfile.ZipFile(archive_of(target)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(target, inputs):
    """The same inputs give the same archive."""
    with zipfile.ZipFile(archive_of(target), "w") as archive:
        for name, data in sorted(inputs.items()):
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)


def read(path):
    with open(path, "rb") as file:
        return file.read()



def features_of(target, folders):
    """The features that each file of the folders reaches: an edge times 8, plus one of 8 magnitudes of its count."""
    with tempfile.TemporaryDirectory() as made:
        control = os.path.join(made, "control")
        os.mkdir(os.path.join(made, "merged"))
        subprocess.run([f"build-fuzz/bin/fuzz_{target}", "-set_cover_merge=1", "-max_len=65536",
                        f"-merge_control_file={control}", os.path.join(made, "merged"), *folders],
                       check=True, stderr=subprocess.DEVNULL)
        with open(control, encoding="utf-8") as file:
            lines = file.read().splitlines()
    paths = lines[2:2 + int(lines[0])]
    reached = [line.split() for line in lines if line.startswith("FT ")]
    return {paths[int(words[1])]: set(map(int, words[2:])) for words in reached}


def edges_of(features):
    return {feature // 8 for feature in features}


def minimise(target):
    """Repeatedly keeps the input that adds the most edges, until none adds one."""
    corpus = f"build-fuzz/tests/fuzz/corpus/{target}"
    found = f"build-fuzz/inputs/{target}"
    features = features_of(target, [folder for folder in (corpus, found) if os.path.isdir(folder)])
    named = {path for path in features if not re.fullmatch("[0-9a-f]{40}", os.path.basename(path))}
    left = features.keys() - named
    reached = set().union(*(features[path] for path in named))
    selected = set()
    while left and len(selected) < FOUND:
        edges = edges_of(reached)
        best = max(left, key=lambda path: (len(edges_of(features[path]) - edges), len(features[path] - reached),
                                           -os.path.getsize(path), path))
        if edges_of(features[best]) <= edges:
            break
        selected.add(best)
        left.remove(best)
        reached |= features[best]
    everything = set().union(*features.values())
    print(f"{target}: {len(named) + len(selected)} of {len(features)} inputs kept, {len(edges_of(reached))} of "
          f"{len(edges_of(everything))} edges, {len(reached)} of {len(everything)} features")
    write(target, {os.path.basename(path): read(path) for path in named | selected})


os.chdir(os.path.join(os.path.dirname(__file__), "../.."))
if sys.argv[1:2] == ["--add"]:
    write(sys.argv[2], inputs_of(sys.argv[2]) | {os.path.basename(path): read(path) for path in sys.argv[3:]})
else:
    for name in sys.argv[1:]:
        minimise(name)
