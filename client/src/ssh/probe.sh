# What the host is, which programs of this version it has, and which of them run.
say os "$(uname -s)"
say arch "$(uname -m)"
say dir "$dir"
for program in "$dir/filectxd-$version-"*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    say installed "$(($(wc -c <"$program"))) $program"
    running "$program"
done
exit 0
