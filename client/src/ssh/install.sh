# Takes a program of $size bytes and hash $sum on standard input, and puts it in its place as $name.
said=$(umask 022 && mkdir -p "$dir" 2>&1) || fail directory "$said"
# What lies in $dir itself, not below it, by name and days.
old() { find "$dir/." ! -name . -prune -type f -name "$1" ! -name "$name" -mtime "+$2" -exec rm -f {} + 2>/dev/null; }
old '.filectxd.*.new' 0
new=$dir/.filectxd.$$.new
trap 'rm -f "$new"' EXIT
trap 'exit 1' HUP INT TERM
said=$({ cat >"$new"; } 2>&1) || fail write "$said"
got=$(($(wc -c <"$new")))
[ "$got" = "$size" ] || fail short "$got of $size bytes arrived"
got=$({ sha256sum <"$new" || shasum -a 256 <"$new" || openssl dgst -sha256 -r <"$new"; } 2>/dev/null | cut -d ' ' -f 1)
case $got in '' | "$sum") ;; *) fail checksum "$got arrived instead of $sum" ;; esac
said=$(chmod 755 "$new" 2>&1) || fail write "$said"
said=$("$new" --version </dev/null 2>&1) || fail run "$said"
said=$(mv -f "$new" "$dir/$name" 2>&1) || fail write "$said"
# What was brought a month ago or earlier and is still wanted comes again; else each version would stay for ever. A service that
# runs keeps its program.
old 'filectxd-[0-9]*-????????????' 30
say program "$dir/$name"
