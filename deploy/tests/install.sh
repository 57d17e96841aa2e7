#!/usr/bin/env bash
# Holds the release's extras and install.sh: everything comes, runs, is refused when it was changed, and goes again.
#   deploy/tests/install.sh RELEASE     the directory that deploy/release.sh made
set -euo pipefail
deploy=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

fail() {
    echo "deploy/tests/install.sh: $*" >&2
    exit 1
}

release=$place/release prefix="$place/a prefix"
cp -R "$1" "$release"

"$release/install.sh" --prefix "$prefix" >/dev/null
[ "$("$prefix/bin/filectxd" --version)" = "$("$release/filectxd-linux-$(uname -m)" --version)" ] || fail "another filectxd"
[ "$("$prefix/bin/filectx" read --raw "$release/SHA256SUMS")" = "$(cat "$release/SHA256SUMS")" ] || fail "filectx reads wrong"
for file in share/man/man1/filectx-read.1 share/man/man1/filectxd.1 share/bash-completion/completions/filectx \
    share/zsh/site-functions/_filectxd share/fish/vendor_completions.d/filectx.fish share/systemd/user/filectxd.socket; do
    [ -s "$prefix/$file" ] || fail "$file did not come"
done
bash -n "$prefix/share/bash-completion/completions/filectx"
# As roff writes it.
grep -qF -e '\-\-save\-dir' "$prefix/share/man/man1/filectx-read.1" || fail "the manual page lacks a flag"
[ "$(find "$prefix" -name '*.new')" = "" ] || fail "something half-done stays"

# Again over itself, then away.
"$release/install.sh" --prefix "$prefix" >/dev/null
"$release/install.sh" --uninstall --prefix "$prefix" >/dev/null
[ "$(find "$prefix" -type f)" = "" ] || fail "something stays: $(find "$prefix" -type f)"
! "$release/install.sh" --uninstall --prefix "$prefix" 2>/dev/null || fail "there was nothing to take away"

echo >>"$release/man/filectxd.1"
! "$release/install.sh" --prefix "$prefix" >/dev/null 2>&1 || fail "a changed file was installed"
[ "$(find "$prefix" -type f)" = "" ] || fail "a refused release left something"

# A release whose service is for this machine and whose filectx is not; its sums are right.
printf '\177ELF' >"$release/filectx"
(cd "$release" && cut -c 67- SHA256SUMS | xargs -d '\n' sha256sum >SUMS && mv SUMS SHA256SUMS)
said=$("$release/install.sh" --prefix "$prefix" 2>&1) && fail "a program of another machine was installed"
case $said in *"does not run on this machine"*) ;; *) fail "refused for another reason: $said" ;; esac
[ "$(find "$prefix" -type f)" = "" ] || fail "a refused release left something"

# What is no release is not taken away for one, and an unfinished one is not installed.
mkdir "$place/other"
echo mine >"$place/other/file"
! "$deploy/release.sh" "$place/other" 2>/dev/null || fail "a release was made over other files"
[ "$(cat "$place/other/file")" = mine ] || fail "other files were taken away"
: >"$release/SHA256SUMS"
! "$release/install.sh" --prefix "$prefix" >/dev/null 2>&1 || fail "an unfinished release was installed"
[ "$(find "$prefix" -type f)" = "" ] || fail "an unfinished release left something"
echo "install.sh does what it says"
