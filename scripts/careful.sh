#!/usr/bin/env bash
# `make careful`: the tests of the crate that holds all `unsafe` code, and of the record layer that works on its memory, under
# the checks that nightly Rust has: AddressSanitizer with leak detection, and stricter checks of initialisation and constants.
# Needs nightly Rust; exits 3 where that is missing. What else there is, and why it is not here: docs/CONFORMANCE.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/nightly.sh "for these checks alone"
target=${CARGO_TARGET_DIR:-target}/careful
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
packages=(--package linerate-os --package linerate-record)

# With a target named, build scripts and macros are left alone.
RUSTFLAGS="-Zsanitizer=address -Zstrict-init-checks -Zextra-const-ub-checks" \
    cargo +nightly test "${packages[@]}" --lib --tests --target "$host" --target-dir "$target"
