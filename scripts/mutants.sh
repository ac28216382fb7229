#!/usr/bin/env bash
# `make mutants [PACKAGE=record]`: changes a crate in one place after another (cargo-mutants) and runs the crate's own tests on
# each change. A change that no test notices survives. Without PACKAGE: record, placement, http and engine in turn.
# What follows on the command line goes to cargo-mutants: `make mutants PACKAGE=http ARGS="--file range.rs"`. Changes that
# are not tried are in .cargo/mutants.toml, with the reason; docs/CONFORMANCE.md has what came of it.
# Exits 1 where a change survives, 3 where the tool cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
tool=$(scripts/cargo-tool.sh cargo-mutants 27.1.0) || exit 3

packages=(record placement http engine)
if [ -n "${PACKAGE:-}" ]; then packages=("${PACKAGE#linerate-}"); fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# The code is compiled once for each change: what makes it fast, or good to debug, is left out.
export CARGO_TARGET_DIR=$target/mutants-build CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0

survived=()
for package in "${packages[@]}"; do
    printf '\n== %s\n' "$package"
    mkdir -p "$target/mutants/$package"
    status=0
    "$tool" mutants --package "linerate-$package" --output "$target/mutants/$package" "$@" || status=$?
    case $status in
    # 3: a change made the tests run for ever, and no other survived.
    0 | 3) ;;
    2) survived+=("$package") ;;
    *) exit "$status" ;;
    esac
done
echo "what became of each change is below $target/mutants"
if [ ${#survived[@]} -gt 0 ]; then
    echo "changes survive in: ${survived[*]} ($target/mutants/PACKAGE/mutants.out/missed.txt)" >&2
    exit 1
fi
