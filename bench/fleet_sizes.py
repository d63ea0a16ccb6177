# SPDX-License-Identifier: MIT
"""How large a data set of real runs is, by table, and the sizes that docs/reference/fleet.md calculates with: bytes per
request, slow request, episode and span, and the bytes of a nearly empty run.

    build-python/bin/python bench/fleet_sizes.py DATA_SET

DATA_SET: fleet_agree --keep DIR makes DIR/data. Prints Markdown.
"""
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

LEAST = "runs", "causes", "hops", "episodes", "episode_causes", "evidence", "parts", "slow"


def main(source):
    files = defaultdict(list)  # table: [(rows, bytes)], one for each run
    for path in sorted(source.glob("date=2*/host=*/run_id=*/*.parquet")):
        files[path.stem].append((pq.read_metadata(path).num_rows, path.stat().st_size))
    rows = {name: sum(r for r, _ in of) for name, of in files.items()}
    size = {name: sum(b for _, b in of) for name, of in files.items()}

    def share(names, of):
        return sum(size[name] for name in names) / max(rows[of], 1)

    print(f"{rows['runs']} real runs ({rows['requests']:,} requests, {rows['slow']:,} slow ones, {rows['episodes']:,} episodes, "
          f"{rows['spans']:,} spans; {sum(size.values()) / 1e6:.1f} MB in all)\n\n| | bytes |\n|---|---|")
    print(f"| `requests`, a request | {share(['requests'], 'requests'):.1f} |")
    print(f"| `parts` and `slow`, a slow request | {share(['parts', 'slow'], 'slow'):.1f} |")
    print(f"| `episodes`, `episode_causes`, `evidence`, an episode | {share(['episodes', 'episode_causes', 'evidence'], 'episodes'):.0f} |")
    print(f"| `spans`, a span | {share(['spans'], 'spans'):.1f} |")
    print(f"| the smallest files of {', '.join(f'`{name}`' for name in LEAST)}, together | {sum(min(b for _, b in files[name]) for name in LEAST):,} |")
    print("\n| table | rows | bytes | bytes per row |\n|---|---|---|---|")
    for name in sorted(files):
        print(f"| {name} | {rows[name]:,} | {size[name]:,} | {size[name] / max(rows[name], 1):.1f} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
