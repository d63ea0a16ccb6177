# SPDX-License-Identifier: MIT
"""Judges what any tool printed about a case of the public set against what was injected, by words.

A directory of the set has truth.json (public.py writes it) and the tools' outputs, a text file each. truth.json says in
`words` what a right answer must have and what was innocent. All are regular expressions; case does not matter, and white
space is one space. `right` is a list of groups, the cause first, then its object: of each group, one must be found.
`wrong` are words that blame something innocent. The verdict follows from what is found, and from nothing else:

  right    every group of `right`, and nothing of `wrong`
  partly   every group, and something innocent too; or some of the groups, and nothing innocent
  wrong    something innocent, and not every group
  nothing  none of both

How long it took is not judged: tools count different things.
"""
import json
import os
import re
import sys

TRUTH = "truth.json"
RIGHT, PARTLY, WRONG, NOTHING = VERDICTS = ("right", "partly", "wrong", "nothing")


def found(patterns, text):
    """The first words of the text that one of the patterns matches, or None."""
    return next((match[0] for match in (re.search(p, text, re.IGNORECASE) for p in patterns) if match), None)


def judge(words, text):
    """(verdict, {"right": the words found of each group or None, "wrong": those found or None})."""
    text = " ".join(text.split())
    groups, innocent = [found(group, text) for group in words["right"]], found(words["wrong"], text)
    have = sum(group is not None for group in groups)
    if have == len(groups):
        verdict = PARTLY if innocent else RIGHT
    elif innocent:
        verdict = WRONG
    else:
        verdict = PARTLY if have else NOTHING
    return verdict, {"right": groups, "wrong": innocent}


def reason(facts):
    """What was found, as a sentence."""
    said = [f'"{group}"' for group in facts["right"] if group]
    parts = ["has " + " and ".join(said) if said else "names neither cause nor object"]
    if said and None in facts["right"]:
        parts.append("lacks the " + " and the ".join("cause" if i == 0 else "object" for i, group in enumerate(facts["right"])
                                                     if not group))
    if facts["wrong"]:
        parts.append(f'blames "{facts["wrong"]}"')
    return ", ".join(parts)


def words_beside(path):
    """The words of the truth.json beside a tool's output. Raises ValueError with a sentence."""
    truth = os.path.join(os.path.dirname(path) or ".", TRUTH)
    try:
        with open(truth) as f:
            return json.load(f)["words"]
    except OSError as why:
        raise ValueError(f"{truth}: {why.strerror}. Put the output into the directory of its case "
                         "(script/truth --public --keep DIR).") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{truth}: has no words to judge by. Write it with script/truth --public --keep DIR.") from None


def main(paths):
    """Prints a verdict for each file. Exit status: 0 all are right, 1 not all, 2 a file cannot be judged."""
    if not paths or any(path.startswith("-") for path in paths):
        print("usage: script/truth --judge FILE...: judges a tool's output by the truth.json in the same directory", file=sys.stderr)
        return 2
    verdicts = []
    for path in paths:
        try:
            words = words_beside(path)
            with open(path, errors="replace") as f:
                verdict, facts = judge(words, f.read())
        except (OSError, ValueError) as why:
            print(f"script/truth: {f'{path}: {why.strerror}' if isinstance(why, OSError) else why}", file=sys.stderr)
            return 2
        verdicts.append(verdict)
        print(f"{path}: {verdict}: {reason(facts)}")
    return 0 if all(verdict == RIGHT for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
