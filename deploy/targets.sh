#!/usr/bin/env bash
# Type-checks what is meant for other machines than this one, warnings denied, and the features of the client on this one:
#   wasm32-unknown-unknown     the client's library without `local` and `ssh`
#   x86_64-pc-windows-gnu      the same
#   aarch64-apple-darwin       engine and client, all of it
#   aarch64-unknown-linux-gnu  service and client, all of it
# Nothing is linked or run, so no C is compiled: a program that does nothing stands in for the C compilers. That the C
# parts build for aarch64 Linux shows `release.sh`; for macOS nothing here shows it.
#   deploy/targets.sh          needs what `rust-web.sh` needs, and dlltool of binutils-mingw-w64-x86-64
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/rust-web.sh

features() {
    printf 'client, features: %s\n' "${1:-none}"
    cargo clippy --quiet --locked --package filectx-client --lib --tests --no-default-features \
        --features "$1" -- -D warnings
}
features ""
features local
features ssh
# Where no host can be connected, it says so.
cargo test --quiet --locked --package filectx-client --lib --no-default-features hosts >/dev/null

if ! rust_web_unpack; then
    echo "Debian's Rust (rustc-web) cannot be had here: nothing is checked for other machines"
    case " ${TESTS_REQUIRE:-} " in *" all "* | *" rust-web "*) exit 1 ;; *) exit 0 ;; esac
fi

# What runs on this machine meanwhile need not be quick.
check() (
    printf '%s:%s\n' "$1" "$(printf ' %s' "${@:2}")"
    name=${1//-/_}
    export "CC_$name=true" "CXX_$name=true" "AR_$name=true" SDKROOT=/
    rust_web check --quiet -Zwarnings --config 'build.warnings="deny"' \
        --config 'profile.dev.package."*".opt-level=0' --target "$@"
)
check wasm32-unknown-unknown --package filectx-client --lib --no-default-features
check x86_64-pc-windows-gnu --package filectx-client --lib --no-default-features
check aarch64-apple-darwin --package filectx-files --package filectx-client --lib --bins
check aarch64-unknown-linux-gnu --package filectx-service --package filectx-client --lib --bins
