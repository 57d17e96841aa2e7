#!/usr/bin/env bash
# Holds the systemd units: they are read without a complaint, and the system unit is shut as far as it says.
#   deploy/tests/units.sh DIRECTORY     where filectxd was built
set -euo pipefail
programs=$(cd "$1" && pwd)
units=$(cd "$(dirname "$0")/../systemd" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# systemd looks whether the program is there: each unit names where it will be.
for kind in user system; do
    mkdir -p "$place/$kind"
    for unit in "$units/$kind"/*; do
        name=$(basename "$unit" | sed 's/@\./@daemon./')
        sed -E "s|^ExecStart=\S+/filectxd|ExecStart=$programs/filectxd|" "$unit" >"$place/$kind/$name"
    done
done

said=$(XDG_RUNTIME_DIR="$place" systemd-analyze --user verify --man=no "$place"/user/*.s* 2>&1 || echo "exit status $?")
said+=$(systemd-analyze verify --man=no "$place"/system/*.s* 2>&1 || echo "exit status $?")
if [ -n "$(grep -E 'filectxd|exit status' <<<"$said" || true)" ]; then
    echo "systemd-analyze verify says: $said"
    exit 1
fi

# In tenths, as the threshold is compared.
systemd-analyze security --offline=true --threshold=29 "$place/system/filectxd@daemon.service" --no-pager | tail -1
echo "the units are as they should be"
