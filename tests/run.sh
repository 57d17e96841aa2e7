#!/usr/bin/env bash
# Installs what the tests need, then runs all of them. The only command that a fresh Debian machine with Rust needs.
#   tests/run.sh            everything
#   TESTS_REQUIRE="..."     which tools must be there (default with CI set: all); a test without its tool says so
#   TESTS_AARCH64=1         builds the service for aarch64, too, and runs it emulated (5 to 7 minutes)
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }
# A step that cannot be taken here says so; in CI it must be.
without() {
    echo "skipped: needs $*"
    [ -z "${CI:-}" ] || exit 1
}

step "tools from Debian"
packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need cc gcc
need g++ g++
need strip binutils
need patch patch
need rg ripgrep
need setfattr attr
need setfacl acl
need unshare util-linux
need systemd-analyze systemd
need script bsdutils
need ssh openssh-client
need chattr e2fsprogs
need podman podman
need runc runc
need podman-compose podman-compose
need mmdebstrap mmdebstrap
need ip iproute2
need iptables iptables
[ -x /usr/lib/podman/netavark ] || packages+=(netavark)
[ -x /usr/lib/podman/aardvark-dns ] || packages+=(aardvark-dns)
need x86_64-w64-mingw32-dlltool binutils-mingw-w64-x86-64
if [ -n "${TESTS_AARCH64:-}" ]; then
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    [ -e /usr/aarch64-linux-gnu/lib/libc.a ] || packages+=(libc6-dev-arm64-cross)
    need qemu-aarch64-static qemu-user-static
fi
for library in libz3.so.4:libz3-4 libedit.so.2:libedit2 libxml2.so.2:libxml2; do
    [ -e "/usr/lib/x86_64-linux-gnu/${library%:*}" ] || packages+=("${library#*:}")
done
need chromium chromium
need chromedriver chromium-driver
need node nodejs
need npm npm
[ -x /usr/sbin/sshd ] || packages+=(openssh-server)
/usr/bin/python3 -c 'import PIL' >/dev/null 2>&1 || packages+=(python3-pil)
/usr/bin/python3 -c 'import ensurepip' >/dev/null 2>&1 || packages+=(python3-venv)
if [ "${#packages[@]}" -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q >/dev/null
        apt-get install -y -q --no-install-recommends "${packages[@]}" >/dev/null
    else
        echo "not installed (needs root and apt-get): ${packages[*]}"
    fi
fi
if [ -n "${CI:-}" ]; then
    export TESTS_REQUIRE="${TESTS_REQUIRE:-all}"
fi

step "crates"
# All of them, also those of other systems: the test of licences looks at each.
cargo fetch --locked --quiet
cargo fetch --locked --quiet --manifest-path tests/fuzz/Cargo.toml
step "form"
cargo fmt --all --check
step "lints"
cargo clippy --workspace --all-targets --locked -- -D warnings
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
step "programs"
cargo build --locked --package filectx-service --package filectx-client --bins
export FILECTX_PROGRAMS="${CARGO_TARGET_DIR:-target}/debug"

step "tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --locked --no-fail-fast
else
    cargo test --workspace --locked --no-fail-fast
fi
step "other machines"
deploy/targets.sh
step "release"
release="${CARGO_TARGET_DIR:-target}/dist"
RELEASE_MACHINES=${TESTS_AARCH64:+aarch64} deploy/release.sh "$release"
if [ -n "${TESTS_AARCH64:-}" ]; then
    step "the service for aarch64, emulated"
    deploy/tests/aarch64.sh "$release/filectxd-linux-aarch64" "$release/filectx"
fi
step "installing"
deploy/tests/install.sh "$release"
step "systemd units"
if command -v systemd-analyze >/dev/null; then
    deploy/tests/units.sh "$FILECTX_PROGRAMS"
else
    without systemd-analyze
fi
step "containers"
if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null && { command -v podman || command -v docker; } >/dev/null; then
    deploy/tests/containers.sh "$release"
else
    without "root, mmdebstrap, and podman or docker"
fi
step "the document, as other people's tools read it"
if command -v npm >/dev/null && /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then
    tests/document.sh "$FILECTX_PROGRAMS" >"${CARGO_TARGET_DIR:-target}/document.log" 2>&1 \
        || { tail -100 "${CARGO_TARGET_DIR:-target}/document.log"; exit 1; }
    tail -1 "${CARGO_TARGET_DIR:-target}/document.log"
else
    without "npm and Python's venv"
fi
step "fuzzing, for a moment"
tests/fuzz/run.sh "${FUZZ_SECONDS:-15}" >"${CARGO_TARGET_DIR:-target}/fuzz.log" 2>&1 \
    || { tail -50 "${CARGO_TARGET_DIR:-target}/fuzz.log"; exit 1; }
step "examples in the documentation"
cargo test --workspace --locked --doc --quiet

step "all passed"
