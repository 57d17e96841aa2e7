#!/usr/bin/env bash
# What lies beside the programs of a release: manual pages and completions that the programs write themselves, units for
# systemd, the script that installs, what makes images for containers, and the checksums of all of it.
#   deploy/extras.sh DIRECTORY FILECTX FILECTXD
set -euo pipefail
out=$1 filectx=$2 filectxd=$3
deploy=$(dirname "$0")

mkdir -p "$out/man" "$out/completions" "$out/systemd"
"$filectx" man "$out/man"
"$filectxd" man >"$out/man/filectxd.1"
for shell in bash zsh fish; do
    "$filectx" completions "$shell" >"$out/completions/filectx.$shell"
    "$filectxd" completions "$shell" >"$out/completions/filectxd.$shell"
done
cp "$deploy"/systemd/user/* "$out/systemd/"
install -m 755 "$deploy/install.sh" "$out/install.sh"
cp -R "$deploy/Containerfile" "$deploy/compose.yaml" "$deploy/containers" "$out/"
cd "$out"
find . -type f ! -name SHA256SUMS -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS
