#!/usr/bin/env bash
# Builds what is given to others: programs that need no C library, manual pages, completions, units, checksums.
#   deploy/release.sh [DIRECTORY]     default: dist of this repository; an earlier release there is taken away
#   RELEASE_MACHINES=""               leaves out what is for other machines (default: aarch64; 5 minutes on 2 cores)
# `filectx` looks beside itself for `filectxd-OS-ARCH`, which it brings to hosts; so all of them lie in one directory.
set -euo pipefail
out=${1:+$(realpath -m -- "$1")}
cd "$(dirname "$0")/.."
out=${out:-dist}
target=${CARGO_TARGET_DIR:-target}
# Only an earlier release is taken away, also one that was not finished.
if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ ! -f "$out/SHA256SUMS" ]; then
    echo "deploy/release.sh: $out is not empty and holds no release; name another directory, or remove it" >&2
    exit 1
fi
rm -rf "$out"
mkdir -p "$out"
: >"$out/SHA256SUMS"

# `--target` is needed, or procedural macros would be linked statically, too, and fail.
build() {
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target "$1-unknown-linux-gnu" "${@:2}"
}

build x86_64 --package filectx-service --package filectx-client --bins
built=$target/x86_64-unknown-linux-gnu/release
install -m 755 "$built/filectx" "$out/filectx"
install -m 755 "$built/filectxd" "$out/filectxd-linux-x86_64"

# The service for hosts of another machine, by Debian's Rust and C compiler: rustup's Rust has no library for it here.
. deploy/rust-web.sh
if [ "${RELEASE_MACHINES-aarch64}" = "" ]; then
    echo "no filectxd-linux-aarch64: RELEASE_MACHINES is empty"
elif command -v aarch64-linux-gnu-gcc >/dev/null && rust_web_unpack; then
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
    rust_web build --release --target aarch64-unknown-linux-gnu --package filectx-service --bins
    install -m 755 "$rust_web_dir/aarch64-unknown-linux-gnu/release/filectxd" "$out/filectxd-linux-aarch64"
else
    echo "no filectxd-linux-aarch64: it needs Debian's rustc-web, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross"
fi

deploy/extras.sh "$out" "$built/filectx" "$built/filectxd"
echo "released in $out:"
ls -l "$out"
