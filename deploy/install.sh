#!/bin/sh
# Installs a release of filectx for this user, or takes it away again. Needs no root and nothing but POSIX tools.
#   install.sh [--from DIR] [--prefix DIR]       DIR of the release: where this script lies; prefix: ~/.local
#   install.sh --uninstall [--prefix DIR]
set -eu

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

from=$(cd "$(dirname "$0")" && pwd)
prefix=${HOME:?}/.local
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
    --from) from=$(cd "${2:?--from needs a directory}" && pwd) && shift 2 ;;
    --prefix) prefix=${2:?--prefix needs a directory} && shift 2 ;;
    --uninstall) uninstall=yes && shift ;;
    -h | --help) sed -n '2,4s/^# //p' "$0" && exit 0 ;;
    *) fail "$1: unknown; see --help" ;;
    esac
done
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
list=$prefix/share/filectx/installed

if [ -n "$uninstall" ]; then
    [ -f "$list" ] || fail "nothing is installed in $prefix ($list is not there)"
    while IFS= read -r file; do
        rm -f "$prefix/$file"
    done <"$list"
    rm -f "$list"
    rmdir "$prefix/share/filectx" 2>/dev/null || true
    echo "taken away from $prefix"
    exit 0
fi

cd "$from"
[ -f SHA256SUMS ] || fail "$from holds no release (no SHA256SUMS); name one with --from"
sha256sum -c SHA256SUMS >/dev/null || fail "$from: a file is not what the release holds; nothing was installed"
arch=$(uname -m)
case $arch in amd64) arch=x86_64 ;; arm64) arch=aarch64 ;; esac
own=filectxd-$(uname -s | tr '[:upper:]' '[:lower:]')-$arch
[ -f "$own" ] || fail "the release holds no $own for this machine"
./filectx --version >/dev/null 2>&1 ||
    fail "the release's filectx does not run on this machine; $own is for hosts that another machine's filectx goes to"

mkdir -p "$prefix/share/filectx"
: >"$list.new"
# Each file comes by a rename: a program that runs keeps its own.
put() {
    mkdir -p "$(dirname "$prefix/$2")"
    cp "$1" "$prefix/$2.new"
    chmod "$3" "$prefix/$2.new"
    mv -f "$prefix/$2.new" "$prefix/$2"
    echo "$2" >>"$list.new"
}

put filectx bin/filectx 755
put "$own" bin/filectxd 755
for program in filectxd-*; do
    put "$program" "bin/$program" 755
done
for page in man/*.1; do
    put "$page" "share/man/man1/${page#man/}" 644
done
for name in filectx filectxd; do
    put "completions/$name.bash" "share/bash-completion/completions/$name" 644
    put "completions/$name.zsh" "share/zsh/site-functions/_$name" 644
    put "completions/$name.fish" "share/fish/vendor_completions.d/$name.fish" 644
done
for unit in systemd/*; do
    put "$unit" "share/systemd/user/${unit#systemd/}" 644
done
mv -f "$list.new" "$list"
echo "installed in $prefix; install.sh --uninstall takes it away"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "$prefix/bin is not in PATH: add it to run filectx by its name" ;;
esac
