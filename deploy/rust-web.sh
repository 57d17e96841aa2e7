# Debian's own Rust, with the source of its standard library: with that it builds for targets whose library rustup did not
# bring. Its packages conflict with rustup's, so they are unpacked below the target directory, not installed.
#   . deploy/rust-web.sh; rust_web_unpack; rust_web CARGO-ARGUMENTS...
# Needs Debian 12 with its security updates and cargo; 860 MiB of disk.

rust_web_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")/targets
rust_web_root=$rust_web_dir/rust-web

# Unpacks the packages, if they are not there yet, and sees whether the compiler runs.
rust_web_unpack() {
    [ -f "$rust_web_root/unpacked" ] && return
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return
    local package
    rm -rf "$rust_web_root"
    mkdir -p "$rust_web_root/packages"
    # The lists of packages may be old.
    rust_web_download || { [ "$(id -u)" = 0 ] && apt-get update -q >/dev/null && rust_web_download; } || return
    for package in "$rust_web_root"/packages/*.deb; do
        dpkg -x "$package" "$rust_web_root" || return
    done
    rm -r "$rust_web_root/packages"
    LD_LIBRARY_PATH=$rust_web_root/usr/lib/x86_64-linux-gnu "$rust_web_root/usr/bin/rustc" --version >/dev/null || return
    touch "$rust_web_root/unpacked"
}

# The names of the compiler's libraries hold versions, which follow the compiler's.
rust_web_download() {
    local libraries
    libraries=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances rustc-web 2>/dev/null | grep -xE 'libstd-rust-web-(dev|[0-9.]+)|libllvm[0-9]+') || return
    # shellcheck disable=SC2086 # Several names.
    (cd "$rust_web_root/packages" && apt-get download -q rustc-web rust-web-src $libraries >/dev/null 2>&1)
}

# The usual cargo with that compiler, which builds the standard library, too.
rust_web() {
    LD_LIBRARY_PATH=$rust_web_root/usr/lib/x86_64-linux-gnu RUSTC=$rust_web_root/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
        CARGO_TARGET_DIR=$rust_web_dir cargo "$1" -Zbuild-std=std,panic_abort --locked "${@:2}"
}
