# Starts $program as the service of these fences, unless another session was quicker; one session at a time.
said=$(mkdir -p "$runtime" 2>&1) || fail runtime "$said"
ours || fail runtime "$runtime is not a directory of this user alone (0700)"
state=$runtime/ssh-${program##*/}-$fences
lock=$state.lock
tries=0
until mkdir "$lock" 2>/dev/null; do
    holder=$(cat "$lock/pid" 2>/dev/null)
    tries=$((tries + 1))
    # Who was killed lets nothing go: a lock without a living holder is nobody's.
    if [ -n "$holder" ]; then kill -0 "$holder" 2>/dev/null; else [ "$tries" -lt 20 ]; fi || rm -rf "$lock"
    [ "$tries" -lt 200 ] || fail lock "$lock is held by process ${holder:-?}"
    sleep 0.1 2>/dev/null || sleep 1
done
trap '[ -z "$listening" ] || kill "$listening" 2>/dev/null; rm -rf "$lock"' EXIT
trap 'exit 1' HUP INT TERM
listening=
echo $$ >"$lock/pid" || fail runtime "$lock cannot be written"
running "$program" && exit 0
said=$(mkfifo "$lock/ready" "$lock/log" 2>&1) || fail runtime "$said"
# Its log is heard while it starts. Later lines find no reader and are dropped: a file would grow for ever.
cat <"$lock/log" >"$lock/said" 2>/dev/null &
listening=$!
# A session of its own, so that no hang-up of this one reaches it; with the user's mask, as it makes files of the user's.
setsid=$(command -v setsid)
[ -n "$setsid" ] || trap '' HUP
{
    umask "$mask"
    exec $setsid "$program" --ready-json --listen 127.0.0.1:0 --also-socket "$runtime/$id.sock" \
        --token-file "$runtime/$id.token" --idle-timeout "$idle" "$@"
} </dev/null >"$lock/ready" 2>"$lock/log" &
IFS= read -r ready <"$lock/ready" || { wait "$listening"; fail ended "$(tail -n 5 "$lock/said" 2>&1)"; }
{ printf '%s\n%s\n' "$id" "$ready" >"$state.new" && mv -f "$state.new" "$state"; } || fail runtime "$state cannot be written"
say ready "$ready"
say token "$(cat "$runtime/$id.token")"
