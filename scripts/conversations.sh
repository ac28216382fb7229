#!/usr/bin/env bash
# Conversations of our own on tlslite-ng with the built server (docs/CONFORMANCE.md), over IPv4 and IPv6. Arguments are
# parts of tests' names. Exits 77 where the library cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
target=${CARGO_TARGET_DIR:-target}
if ! python=$(scripts/python-environment.sh); then
    echo "SKIPPED: conversations on tlslite-ng: its Python environment cannot be made (see above)"
    exit 77
fi
if ! command -v openssl >/dev/null; then
    echo "SKIPPED: conversations on tlslite-ng: openssl is not installed, which makes their certificates"
    exit 77
fi
cargo build --package linerate
exec "$python" tests/conformance/conversations/run.py \
    "$(realpath "$target")/debug/linerate" "$target/conformance/conversations" "$@"
