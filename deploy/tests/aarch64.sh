#!/usr/bin/env bash
# Runs a service for aarch64 on this machine, emulated: it says its version and answers a batch over loopback. The emulator
# knows no `openat2`, so the roots are kept step by step here.
#   deploy/tests/aarch64.sh FILECTXD FILECTX      FILECTX: of this machine. Needs qemu-aarch64-static.
set -euo pipefail
filectxd=$(realpath "$1") filectx=$(realpath "$2")
dir=$(mktemp -d)
service=
trap '[ -z "$service" ] || kill "$service" || true; rm -rf "$dir"' EXIT

fail() {
    echo "aarch64: $*" >&2
    exit 1
}

[ "$(od -An -tx1 -j18 -N2 "$filectxd")" = " b7 00" ] || fail "$filectxd is for another machine"
version=$(qemu-aarch64-static "$filectxd" --version)
[ "$version" = "$("$filectx" --version | sed 's/^filectx /filectxd /')" ] || fail "it says that it is $version"

mkdir -p "$dir/root" "$dir/run"
printf 'one\ntwo\nthree\n' >"$dir/root/text"
printf 'secret\n' >"$dir/outside"
ln -s ../outside "$dir/root/leaves"
mkfifo "$dir/ready"
XDG_RUNTIME_DIR=$dir/run qemu-aarch64-static "$filectxd" --ready-json --idle-timeout 120 --root "$dir/root" \
    --token-file "$dir/token" >"$dir/ready" 2>"$dir/log" &
service=$!
read -r -t 60 ready <"$dir/ready" || fail "it does not say that it is ready: $(cat "$dir/log")"
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' <<<"$ready")

status=0
"$filectx" read --url "$url" --token-file "$dir/token" --cwd "$dir/root" text:2-3 leaves none \
    >"$dir/out" 2>"$dir/err" || status=$?
[ "$status" = 1 ] || fail "status $status: $(cat "$dir/out" "$dir/err")"
grep -q two "$dir/out" || fail "the text is not in $(cat "$dir/out")"
! grep -q secret "$dir/out" || fail "a link led out of the root"
grep -q outside_roots "$dir/err" && grep -q not_found "$dir/err" || fail "refusals are not in $(cat "$dir/err")"
"$filectx" write --url "$url" --token-file "$dir/token" --cwd "$dir/root" new <"$dir/root/text" >/dev/null
cmp "$dir/root/text" "$dir/root/new"
echo "$version for aarch64: serves, emulated"
