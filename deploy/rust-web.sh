# Debian's own Rust, with the source of its standard library: with that it builds for targets whose library rustup did not
# bring. Its packages conflict with rustup's, so they are unpacked below the target directory, not installed.
#   . deploy/rust-web.sh; rust_web_unpack; rust_web CARGO-ARGUMENTS...
# Needs Debian 12 with its security updates and cargo; 860 MiB of disk.

rust_web_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")/targets
rust_web_root=$rust_web_dir/rust-web

# Unpacks the packages, if they are not there yet. The libraries of their names' versions follow the compiler's.
rust_web_unpack() {
    [ -f "$rust_web_root/unpacked" ] && return
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return
    local new=$rust_web_root.new package packages
    rm -rf "$new" "$rust_web_root"
    mkdir -p "$new/packages"
    packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances rustc-web | grep -xE 'libstd-rust-web-(dev|[0-9.]+)|libllvm[0-9]+')
    # shellcheck disable=SC2086 # Several names.
    (cd "$new/packages" && apt-get download -q rustc-web rust-web-src $packages >/dev/null 2>&1) || return
    for package in "$new"/packages/*.deb; do
        dpkg -x "$package" "$new" || return
    done
    rm -r "$new/packages"
    touch "$new/unpacked"
    mv "$new" "$rust_web_root"
    rust_web_rustc --version >/dev/null
}

rust_web_rustc() {
    LD_LIBRARY_PATH=$rust_web_root/usr/lib/x86_64-linux-gnu "$rust_web_root/usr/bin/rustc" "$@"
}

# The usual cargo with that compiler, which builds the standard library, too.
rust_web() {
    LD_LIBRARY_PATH=$rust_web_root/usr/lib/x86_64-linux-gnu RUSTC=$rust_web_root/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
        CARGO_TARGET_DIR=$rust_web_dir cargo "$1" -Zbuild-std=std,panic_abort --locked "${@:2}"
}
