#!/usr/bin/env bash
# `make fuzz`: runs libFuzzer on $TARGET, or on every target in turn, for $TIME seconds each (60 unless told). Needs
# nightly Rust; exits 3 where that is missing. What it finds is left below fuzz/libfuzzer/artifacts: put the input into
# fuzz/seeds/TARGET once the fault is mended, and `make test` tries it ever after.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/nightly.sh "for the fuzzers alone"
fuzz=$(scripts/cargo-tool.sh cargo-fuzz 0.13.2)

targets=()
for file in fuzz/libfuzzer/fuzz_targets/*.rs; do
    name=$(basename "$file" .rs)
    if [ "${TARGET:-$name}" = "$name" ]; then targets+=("$name"); fi
done
if [ ${#targets[@]} = 0 ]; then
    echo "TARGET=$TARGET: there is no such target in fuzz/libfuzzer/fuzz_targets" >&2
    exit 2
fi

failed=()
for name in "${targets[@]}"; do
    printf '\n== %s, %s s\n' "$name" "${TIME:-60}"
    corpus=fuzz/libfuzzer/corpus/$name
    mkdir -p "$corpus"
    RUSTUP_TOOLCHAIN=nightly "$fuzz" run --fuzz-dir fuzz/libfuzzer --target-dir "${CARGO_TARGET_DIR:-target}/fuzz" \
        "$name" "$corpus" "fuzz/seeds/$name" -- -max_total_time="${TIME:-60}" -timeout=10 || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED: %s (inputs in fuzz/libfuzzer/artifacts)\n' "${failed[*]}"
    exit 1
fi
