#!/usr/bin/env bash
# `make conformance TLSFUZZER=DIR`: tlsfuzzer's scripts, from a checkout of its repository, against the built server, held
# against the list of what is expected to fail (docs/CONFORMANCE.md). ONLY chooses scripts by a pattern, FAMILY is 4 or 6.
# Exits 1 where the list does not hold, 77 without a checkout or Python's libraries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${TLSFUZZER:-}" ]; then
    echo "SKIPPED: tlsfuzzer: TLSFUZZER=DIR names a checkout of its repository (github.com/tlsfuzzer/tlsfuzzer)"
    exit 77
fi
scripts/packages.sh build
scripts/packages.sh test
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
target=${CARGO_TARGET_DIR:-target}
if ! python=$(scripts/python-environment.sh); then
    echo "SKIPPED: tlsfuzzer: its Python environment cannot be made (see above)"
    exit 77
fi
cargo build --package linerate
arguments=(--tlsfuzzer "$TLSFUZZER" --server "$(realpath "$target")/debug/linerate" --work "$target/conformance/tlsfuzzer")
if [ -n "${ONLY:-}" ]; then arguments+=(--only "$ONLY"); fi
if [ -n "${FAMILY:-}" ]; then arguments+=(--family "$FAMILY"); fi
exec "$python" tests/conformance/fuzzer/run.py "${arguments[@]}"
