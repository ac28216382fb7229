#!/usr/bin/env bash
# rustfmt over the workspace and the fuzzer's own one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo fmt --manifest-path fuzz/libfuzzer/Cargo.toml --check
