#!/bin/bash
# SPDX-License-Identifier: MIT
# How honest `forktail diff` is on real runs: identical ones in random pairings, and regressions that were made.
#
#   tests/bench/diff_real.sh [RUNS] [PAIRINGS] [SECONDS] [DIR]      default 40 1000 60, and a new directory
#
# Root, redis-server and a calm machine. Runs are the lab's demo. First how many of the pairings of 8 against 8
# identical runs are called worse; then what is said of a larger data set, of an AOF that is synced at each write,
# and of a server under a load half as large again, in 8 pairs each.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
forktail=${FORKTAIL:-$here/build/bin/forktail}
runs=${1:-40} pairings=${2:-1000} seconds=${3:-60} dir=${4:-$(mktemp -d)}
common=(--scale 1 --set "seconds=$seconds" --set rate=5000 --set size_mb=128 --resume)
# Half of them each, so that a pair is two of them.
half=$(((runs + 1) / 2))
"$forktail" lab pairs demo "${common[@]}" --pairs $half -o "$dir/identical"
"$here/build/bin/diff_honesty" --runs "$dir/identical" --comparisons "$pairings"
for new in "size_mb=1024" "appendfsync=always" "rate=7500"; do
	"$forktail" lab pairs demo "${common[@]}" --new "$new" --pairs 8 -o "$dir/$new"
	echo "== $new"
	"$forktail" diff "$dir/$new" | sed -n '1,/^Latency/p' || true
done
echo "runs: $dir"
