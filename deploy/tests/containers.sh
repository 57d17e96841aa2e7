#!/usr/bin/env bash
# The whole way between machines' worth of isolation: an agent and three hosts in containers on a network of their own, reached
# by SSH alone. Makes everything that it needs from Debian's packages, and takes all of it away again; only the bases stay.
#   deploy/tests/containers.sh RELEASE      the directory that deploy/release.sh made
# Needs Linux, root, mmdebstrap, iproute2, Pillow for Python, and podman or docker with its compose (FILECTX_ENGINE names one).
set -euo pipefail
release=$(cd "$1" && pwd)
own=$(cd "$(dirname "$0")/containers" && pwd)
cache=${CARGO_TARGET_DIR:-$own/../../../target}/containers
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

engine=${FILECTX_ENGINE:-$(command -v podman || command -v docker || true)}
[ -n "$engine" ] || { echo "deploy/tests/containers.sh: there is neither podman nor docker" >&2; exit 1; }
case $engine in
*podman)
    # For machines on which no systemd runs, and where a container may not raise what it was given.
    if [ -z "${CONTAINERS_CONF:-}" ]; then
        export CONTAINERS_CONF=$cache/containers.conf
        cat >"$CONTAINERS_CONF" <<'CONF'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
CONF
    fi
    # The format that holds health checks.
    export BUILDAH_FORMAT=docker
    compose=(podman-compose)
    ;;
*) compose=(docker compose) ;;
esac

export FILECTX_BASE=localhost/filectx-test-debian
project=filectx-test-$$
compose+=(--project-name "$project" -f "$release/compose.yaml" -f "$own/compose.yaml")
log=$cache/log
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }
take_away() {
    "${compose[@]}" down --volumes --timeout 0 >/dev/null 2>&1 || true
    "$engine" rm --force --volumes "$project-alone" >/dev/null 2>&1 || true
    "$engine" rmi --force localhost/filectx-{host,agent,scratch,test-minimal,test-debian} >/dev/null 2>&1 || true
}
trap take_away EXIT

"$own/bases.sh" "$cache"
for base in debian minimal; do
    quietly "$engine" import "$cache/$base.tar" "localhost/filectx-test-$base"
done
for target in host agent scratch; do
    quietly "$engine" build --pull=never --build-arg "BASE=$FILECTX_BASE" --target "$target" -t "localhost/filectx-$target" "$release"
done
echo "images:"
"$engine" images --format '{{.Repository}} {{.Size}}' | sed -n 's|^localhost/filectx-|  |p' | sort
quietly "${compose[@]}" up --detach --no-build
/usr/bin/python3 "$own/scenarios.py" "$engine" "$project" "$release"
