#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the archive that this script is in, or removes it. Nothing outside the prefix changes without --service. Needs only
# what any Linux has, because the archive is for hosts that have nothing else.
#
#   ./install.sh [--prefix DIR]              below /usr/local or DIR
#   ./install.sh [--prefix DIR] --service    also the service forktail-record: account, /etc/forktail/record.toml, systemd unit; not started
#   ./install.sh [--prefix DIR] --remove     removes both; recordings, the account and a changed record.toml stay
#
# Exit status: 0 done, 2 wrong usage, 3 failed, with one sentence that explains why.
set -eu
fail() {
	printf 'install.sh: %s\n' "$1" >&2
	exit "${2:-3}"
}
prefix=/usr/local remove='' service=''
while [ $# -gt 0 ]; do
	case "$1" in
	--prefix)
		[ -n "${2:-}" ] || fail "--prefix needs a directory" 2
		case "$2" in /*) prefix=${2%/} ;; *) prefix=$PWD/${2%/} ;; esac
		shift
		;;
	--prefix=/*) prefix=${1#--prefix=} ;;
	--service) service=yes ;;
	--remove) remove=yes ;;
	-h | --help)
		sed -n '6,8s/^# *//p' "$0"
		exit
		;;
	*) fail "unknown option '$1'. Options: --prefix DIR, --service, --remove" 2 ;;
	esac
	shift
done
cd "$(dirname "$0")"
umask 022
own=$prefix/share/forktail
unit=/etc/systemd/system/forktail-record.service
config=/etc/forktail/record.toml

# Removes the files of the version that is installed here, if any, and directories that are then empty.
remove_files() {
	while read -r file; do
		case "$file" in /*) rm -f "$file" ;; *) rm -f "$prefix/$file" ;; esac || fail "cannot remove $file from $prefix"
	done <"$own/installed"
	rm -f "$own/installed" "$own/tree"
	for directory in lib/forktail share/forktail share/doc/forktail; do
		[ ! -d "$prefix/$directory" ] || find "$prefix/$directory" -name '*.pyc' -exec rm -f {} +
		[ ! -d "$prefix/$directory" ] || find "$prefix/$directory" -depth -type d -exec rmdir {} + 2>/dev/null || :
	done
}
# Whether the service's unit starts the programs in this prefix.
has_service() {
	[ -f "$unit" ] && grep -q "^ExecStart=$prefix/bin/forktail " "$unit"
}

if [ -n "$remove" ]; then
	[ -f "$own/installed" ] || fail "nothing is installed in $prefix"
	if has_service; then
		! command -v systemctl >/dev/null || systemctl disable --now forktail-record >/dev/null 2>&1 || :
		rm -f "$unit"
		! cmp -s "$own/record.toml" "$config" || rm -f "$config"
	fi
	remove_files
	printf 'forktail is removed from %s\n' "$prefix"
	exit
fi

bin/forktail --version >/dev/null 2>&1 ||
	fail "the programs do not run here: this archive is for $(cat share/forktail/machine), and this machine is $(uname -m)"
[ -z "$service" ] || [ "$(id -u)" -eq 0 ] || fail "--service must run as root"
mkdir -p "$own" 2>/dev/null || :
[ -w "$own" ] || fail "cannot write to $prefix. Run it as root, or choose another directory with --prefix"
[ ! -f "$own/installed" ] || remove_files # of another version
find bin lib share -type d | while read -r directory; do
	mkdir -p "$prefix/$directory" || exit 1
done || fail "cannot make directories in $prefix (see above)"
find bin lib share ! -type d | sort >"$own/installed"
while read -r file; do
	# A program that runs cannot be written to. It can be replaced.
	{ rm -f "$prefix/$file" && cp -p "$file" "$prefix/$file"; } || fail "cannot write $prefix/$file (see above)"
done <"$own/installed"

if [ -n "$service" ]; then
	grep -q '^forktail:' /etc/passwd ||
		useradd --system --user-group --no-create-home --home-dir /var/lib/forktail --shell "$(command -v nologin || echo /bin/false)" forktail ||
		fail "cannot make the account forktail (see above)"
	mkdir -p /etc/forktail "$(dirname "$unit")"
	[ -e "$config" ] || cp "$own/record.toml" "$config"
	sed "s|/usr/bin/forktail|$prefix/bin/forktail|; s|file:///usr/|file://$prefix/|" "$own/forktail-record.service" >"$unit"
	! command -v systemctl >/dev/null || systemctl daemon-reload 2>/dev/null || :
	printf 'The service is installed and not started. Edit %s, then run: systemctl enable --now forktail-record\n' "$config"
fi
printf '%s is installed in %s/bin\n' "$("$prefix/bin/forktail" --version)" "$prefix"
# shellcheck disable=SC2016 # for the reader's shell
case ":$PATH:" in
*":$prefix/bin:"*) ;;
*) printf 'This directory is not in PATH. Run: PATH="%s/bin:$PATH"\n' "$prefix" ;;
esac
