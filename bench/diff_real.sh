#!/bin/bash
# SPDX-License-Identifier: MIT
# How often `forktail diff` is right on real runs: on random pairings of identical runs, and on regressions made on
# purpose.
#
#   bench/diff_real.sh [RUNS] [PAIRINGS] [SECONDS] [DIR] [PAIRS]      default 40 1000 60, a new directory, 8
#
# Needs root, redis-server, openssl and an idle machine. The runs are those of diff_real.toml. The script first prints
# how many of the pairings of 8 against 8 identical runs are called worse. Then it prints diff's output for five
# regressions, with PAIRS pairs each, and whether the expected words are in it: a larger data set (its fork takes
# longer), an AOF that is synced at each write, 50 % more load, TLS, and a slower disk under an AOF that both sides
# sync. A disk is a file on a loop device, limited by the blkio controller (cgroup v1). Without that controller the disk
# case is skipped with a message. Existing runs are reused.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
forktail=${FORKTAIL:-$here/build/bin/forktail} scenario=$here/bench/diff_real.toml
runs=${1:-40} pairings=${2:-1000} seconds=${3:-60} dir=${4:-$(mktemp -d)} pairs=${5:-8}
common=(--scale 1 --set "seconds=$seconds" --resume)
work=$(mktemp -d)
loops=()

clean() {
	for loop in "${loops[@]}"; do
		echo "$(stat -Lc '%Hr:%Lr' "$loop") 0" >/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device || true
		umount "$loop" || true
		losetup --detach "$loop" || true
	done
	rm -rf "$work"
}
trap clean EXIT

# report NAME WORDS...: print diff's output for the pairs, and whether any of the words is in it.
report() {
	local name=$1 output
	shift
	output=$("$forktail" diff "$dir/$name") || true
	echo "== $name"
	sed -n '1,/^Latency/p' <<<"$output"
	for word in "$@"; do
		if grep -q -- "$word" <<<"$output"; then
			echo "-- named: $word"
			return
		fi
	done
	echo "-- NOT named: none of $*"
}

# disk NAME: make a separate file system at $work/NAME, and an empty redis-server at $work/NAME.redis that stores its
# data there.
disk() {
	local loop
	truncate -s 2G "$work/$1.image"
	loop=$(losetup --find --show "$work/$1.image") || return 1
	loops+=("$loop")
	mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$loop" || return 1
	mkdir "$work/$1"
	mount "$loop" "$work/$1" || return 1
	cat >"$work/$1.redis" <<-END
		#!/bin/sh
		[ "\$1" = --version ] && exec redis-server --version
		rm -rf "$work/$1/"*
		exec redis-server "\$@" --dir "$work/$1"
	END
	chmod +x "$work/$1.redis"
}

# Half of the runs are of each kind, so that each pair has one of both.
half=$(((runs + 1) / 2))
"$forktail" lab pairs "$scenario" "${common[@]}" --pairs $half -o "$dir/identical"
"$here/build/bin/diff_honesty" --runs "$dir/identical" --comparisons "$pairings"

made() { # NAME SETTING WORDS...
	"$forktail" lab pairs "$scenario" "${common[@]}" --new "$2" --pairs "$pairs" -o "$dir/$1"
	report "$1" "${@:3}"
}
made larger size_mb=1024 'fork +'
made always fsync=always 'fsync +' 'with appendfsync'
made load rate=7500 'rate'

# The key is generated for each invocation. The port is one that is free now.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/tls.key" -out "$work/tls.pem" \
	-subj /CN=localhost -days 2 2>/dev/null
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p "$dir"
ln -sf "$work/tls.key" "$work/tls.pem" "$dir"
port=$(cat "$dir/tls.port" 2>/dev/null || echo "$port" | tee "$dir/tls.port") # the first invocation's port, to resume
made tls "words='--tls --insecure -p $port' tls-port=$port tls-cert-file=$dir/tls.pem tls-key-file=$dir/tls.key tls-auth-clients=no" 'tls'

if [ -w /sys/fs/cgroup/blkio/blkio.throttle.write_iops_device ] && disk fast && disk slow; then
	echo "$(stat -Lc '%Hr:%Lr' "${loops[1]}") 300" >/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device
	ln -sf "$work/fast.redis" "$dir/fast.redis"
	ln -sf "$work/slow.redis" "$dir/slow.redis"
	"$forktail" lab pairs "$scenario" "${common[@]}" --set fsync=always --set rate=200 --set size_mb=16 \
		--base "$dir/fast.redis" --new "$dir/slow.redis" --pairs "$pairs" -o "$dir/disk"
	report disk 'fsync +' 'block-io +' 'file-write +'
else
	echo "== disk: skipped: this host cannot limit disks (cgroup v1, blkio)"
fi
echo "runs: $dir"
