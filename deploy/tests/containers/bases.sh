#!/usr/bin/env bash
# Makes the bases of the tests' images from Debian's packages: nothing is pulled. Those that are there are kept.
#   bases.sh DIRECTORY       debian.tar: what debian:bookworm-slim and sshd are; minimal.tar: busybox and dropbear, no bash
set -euo pipefail
out=$1 own=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
make() {
    [ -f "$out/$1.tar" ] && return
    mmdebstrap --quiet --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/lib/x86_64-linux-gnu/gconv/*' \
        "${@:2}" bookworm "$out/$1.new.tar"
    mv "$out/$1.new.tar" "$out/$1.tar"
}
make debian --variant=minbase --include=openssh-server
# `extract` runs no package's scripts, which would want a bash: what they do is done here.
make minimal --variant=extract --include=busybox-static,dropbear-bin \
    --extract-hook='chroot "$1" /bin/busybox --install -s /bin' \
    --extract-hook="copy-in '$own/minimal/start' /bin" \
    --extract-hook='chroot "$1" /bin/busybox sh /bin/start prepare'
