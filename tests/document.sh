#!/usr/bin/env bash
# Holds the document to what other people's tools make of it: a linter reads it, schemathesis asks a running service
# whatever it allows and forbids, and a client that is generated of it reads a batch.
#   tests/document.sh DIRECTORY     where filectxd was built
#   DOCUMENT_EXAMPLES=300           how many requests are made up for each operation
set -euo pipefail
programs=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
here=$PWD/tests/document
mkdir -p "${CARGO_TARGET_DIR:-target}/document"
cache=$(cd "${CARGO_TARGET_DIR:-target}/document" && pwd)
place=$(mktemp -d)
service=
end() {
    [ -z "$service" ] || kill "$service" 2>/dev/null || true
    rm -rf "$place"
}
trap end EXIT

# Tools, as their lock files have them; kept until those change.
tools() { # NAME LOCK COMMAND...
    local kept=$cache/$1.lock lock=$2
    shift 2
    cmp -s "$lock" "$kept" && return
    rm -f "$kept"
    "$@"
    cp "$lock" "$kept"
}
node_tools() {
    cp "$here"/package.json "$here"/package-lock.json "$cache"/
    npm ci --prefix "$cache" --ignore-scripts --no-audit --no-fund --silent
}
python_tools() {
    rm -rf "$cache/venv"
    /usr/bin/python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
}
tools node "$here/package-lock.json" node_tools
tools python "$here/requirements.txt" python_tools
bin=$cache/venv/bin
# The generator puts its code in form with a tool of its own.
export PATH=$bin:$PATH

# A service that can touch nothing but a directory of its own.
mkdir -p "$place/root/directory" "$place/run"
printf 'one\ntwo\nthree\n' >"$place/root/text.txt"
printf 'one\r\ntwo\r\n' >"$place/root/crlf.txt"
head -c 1000 /dev/zero >"$place/root/binary"
printf 'P6 2 1 255\n\1\2\3\4\5\6' >"$place/root/picture.ppm"
ln -s text.txt "$place/root/link"
mkfifo "$place/ready"
XDG_RUNTIME_DIR=$place/run "$programs/filectxd" --ready-json --root "$place/root" --token-file "$place/token" \
    --limit max_write_bytes=1000000 >"$place/ready" 2>"$place/log" &
service=$!
read -r -t 60 ready <"$place/ready" || { cat "$place/log"; exit 1; }
url=$(sed -E 's/.*"url":"([^"]+)".*/\1/' <<<"$ready")
token=$(cat "$place/token")

echo "-- redocly"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
"$cache/node_modules/.bin/redocly" lint openapi/openapi.json
"$cache/node_modules/.bin/redocly" lint "$url/openapi.json"

echo "-- openapi-python-client"
mkdir "$place/client"
"$bin/openapi-python-client" generate --url "$url/openapi.json" --output-path "$place/client/filectx_client" --meta none \
    --fail-on-warning
PYTHONPATH=$place/client "$bin/python" "$here/read_batch.py" "$url" "$place/token" "$place/root"

echo "-- schemathesis"
export DOCUMENT_ROOT=$place/root PYTHONHASHSEED=0 SCHEMATHESIS_HOOKS=hooks PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
cd "$place"
"$bin/schemathesis" --config-file "$here/schemathesis.toml" run "$url/openapi.json" --header "Authorization: Bearer $token" \
    --max-examples "${DOCUMENT_EXAMPLES:-300}"
