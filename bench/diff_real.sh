#!/bin/bash
# SPDX-License-Identifier: MIT
# How honest `forktail diff` is on real runs: identical ones in random pairings, and regressions that were made.
#
#   bench/diff_real.sh [RUNS] [PAIRINGS] [SECONDS] [DIR] [PAIRS]      default 40 1000 60, a new directory, 8
#
# Root, redis-server, openssl and a calm machine. Runs are of diff_real.toml. First how many of the pairings of 8 against 8
# identical runs are called worse; then what is said of five regressions, in PAIRS pairs each, with the words that have to
# stand there: a larger data set (its fork is longer), an AOF that is synced at each write, half as much load again, TLS, and
# a slower disk under an AOF that both sides sync. A disk is a file behind a loop device that the blkio controller (cgroup v1)
# limits; where that can't be had, the disk is left out and that is said. What was made before is not made again.
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

# say NAME WORDS...: what diff says of the pairs, and whether any of the words stand in what changed.
say() {
	local name=$1 said
	shift
	said=$("$forktail" diff "$dir/$name") || true
	echo "== $name"
	sed -n '1,/^Latency/p' <<<"$said"
	for word in "$@"; do
		if grep -q -- "$word" <<<"$said"; then
			echo "-- named: $word"
			return
		fi
	done
	echo "-- NOT named: none of $*"
}

# disk NAME: a file system of its own at $work/NAME, and a redis-server at $work/NAME.redis that lives there, empty at its start.
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

# Half of them each, so that a pair is two of them.
half=$(((runs + 1) / 2))
"$forktail" lab pairs "$scenario" "${common[@]}" --pairs $half -o "$dir/identical"
"$here/build/bin/diff_honesty" --runs "$dir/identical" --comparisons "$pairings"

made() { # NAME SETTING WORDS...
	"$forktail" lab pairs "$scenario" "${common[@]}" --new "$2" --pairs "$pairs" -o "$dir/$1"
	say "$1" "${@:3}"
}
made larger size_mb=1024 'fork +'
made always fsync=always 'fsync +' 'with appendfsync'
made load rate=7500 'rate'

# The key is made anew each time; the port is one that is free now.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/tls.key" -out "$work/tls.pem" \
	-subj /CN=localhost -days 2 2>/dev/null
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p "$dir"
ln -sf "$work/tls.key" "$work/tls.pem" "$dir"
port=$(cat "$dir/tls.port" 2>/dev/null || echo "$port" | tee "$dir/tls.port") # as it was, to go on with
made tls "words='--tls --insecure -p $port' tls-port=$port tls-cert-file=$dir/tls.pem tls-key-file=$dir/tls.key tls-auth-clients=no" 'tls'

if [ -w /sys/fs/cgroup/blkio/blkio.throttle.write_iops_device ] && disk fast && disk slow; then
	echo "$(stat -Lc '%Hr:%Lr' "${loops[1]}") 300" >/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device
	ln -sf "$work/fast.redis" "$dir/fast.redis"
	ln -sf "$work/slow.redis" "$dir/slow.redis"
	"$forktail" lab pairs "$scenario" "${common[@]}" --set fsync=always --set rate=200 --set size_mb=16 \
		--base "$dir/fast.redis" --new "$dir/slow.redis" --pairs "$pairs" -o "$dir/disk"
	say disk 'fsync +' 'block-io +' 'file-write +'
else
	echo "== disk: left out, this host limits no disks (cgroup v1, blkio)"
fi
echo "runs: $dir"
