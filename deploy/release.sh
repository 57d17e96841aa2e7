#!/usr/bin/env bash
# Builds what is given to others: programs that need no C library, manual pages, completions, units, checksums.
#   deploy/release.sh [DIRECTORY]     default: dist
# `filectx` looks beside itself for `filectxd-OS-ARCH`, which it brings to hosts; so all of them lie in one directory.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
target=${CARGO_TARGET_DIR:-target}
rm -rf "$out"
mkdir -p "$out"

# `--target` is needed, or procedural macros would be linked statically, too, and fail.
build() {
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target "$1-unknown-linux-gnu" "${@:2}"
}

build x86_64 --package filectx-service --package filectx-client --bins
built=$target/x86_64-unknown-linux-gnu/release
install -m 755 "$built/filectx" "$out/filectx"
install -m 755 "$built/filectxd" "$out/filectxd-linux-x86_64"

sysroot=$(rustc --print sysroot)
if [ -d "$sysroot/lib/rustlib/aarch64-unknown-linux-gnu" ] && command -v aarch64-linux-gnu-gcc >/dev/null; then
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    build aarch64 --package filectx-service --bins
    install -m 755 "$target/aarch64-unknown-linux-gnu/release/filectxd" "$out/filectxd-linux-aarch64"
else
    echo "no filectxd-linux-aarch64: it needs the Rust target aarch64-unknown-linux-gnu and aarch64-linux-gnu-gcc"
fi

deploy/extras.sh "$out" "$built/filectx" "$built/filectxd"
echo "released in $out:"
ls -l "$out"
