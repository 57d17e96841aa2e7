#!/usr/bin/env bash
# Fuzzes what reads untrusted bytes. Needs g++ (for libFuzzer) and no nightly compiler: the coverage that libFuzzer goes by
# is a pass that the stable one has. `cargo fuzz run image` does as well, with sanitizers.
# The first build takes some six minutes on two processors.
#   tests/fuzz/run.sh SECONDS [TARGET...]      so long each; inputs that crash lie in tests/fuzz/artifacts
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:?seconds of each target}
shift
[ $# -gt 0 ] || set -- image multipart

host=$(rustc -vV | sed -n 's/^host: //p')
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
passes="$passes -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# --target: what runs while building is built without coverage.
RUSTFLAGS="--cfg fuzzing $passes" cargo build --release --locked --quiet --target "$host" --target-dir target

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
# The corpus of the tests, where Pillow can make it; large inputs only make it slow.
if /usr/bin/python3 ../images/corpus.py "$made/image" 2>/dev/null; then
    find "$made/image" -type f \( -size +16k -o -name manifest.json \) -delete
fi

for target in "$@"; do
    mkdir -p "corpus/$target" "artifacts/$target" "$made/$target"
    seeds=("corpus/$target" "$made/$target")
    [ ! -d "seeds/$target" ] || seeds+=("seeds/$target")
    "target/$host/release/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=3000 -max_len=20000 \
        -artifact_prefix="artifacts/$target/" "${seeds[@]}"
done
