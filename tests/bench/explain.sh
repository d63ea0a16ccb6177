#!/bin/sh
# SPDX-License-Identifier: MIT
# Times `forktail explain` on a made-up run, 10 million requests unless told otherwise:
#   tests/bench/explain.sh BUILD_DIR [MILLION_REQUESTS] [REQUESTS_PER_SECOND]
# Prints, for five runs with the file in the page cache, seconds of wall clock, seconds of CPU and peak memory.
set -eu
build=${1:?usage: tests/bench/explain.sh BUILD_DIR [MILLION_REQUESTS] [REQUESTS_PER_SECOND]}
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$build/bin/bench_explain_run" "$dir" "$@"
ls -l "$dir" | awk 'NR > 1 { printf "%s: %.1f MB\n", $9, $5 / 1e6 }'
"$build/bin/forktail" explain "$dir" | sed -n '1,12p'
for i in 1 2 3 4 5; do
	/usr/bin/time -f '%e s wall, %U s user, %S s system, %M kB peak' "$build/bin/forktail" explain "$dir" >"$dir/out"
done
