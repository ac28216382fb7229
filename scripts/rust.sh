#!/usr/bin/env bash
# Sees to it that cargo works here, with the components named (clippy, rustfmt). Exits 3 where it cannot.
#
#   scripts/rust.sh [COMPONENT...]
#
# The scripts call it, then add ~/.cargo/bin to their own path as it does: CI's shells often lack it.
set -euo pipefail
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

if ! cargo --version >/dev/null 2>&1; then
    echo "missing: Rust's toolchain (cargo). Install it as https://rustup.rs says, then run this again." >&2
    exit 3
fi
for component in "$@"; do
    case $component in
    rustfmt) program=cargo-fmt ;;
    *) program=cargo-$component ;;
    esac
    # rustup leaves a program in place for a component that is not installed: only running it tells.
    if "$program" --version >/dev/null 2>&1; then continue; fi
    if [ "${SETUP:-}" != no ] && command -v rustup >/dev/null; then
        rustup component add "$component" >&2
    fi
    if ! "$program" --version >/dev/null 2>&1; then
        echo "missing: $component. Install it with: rustup component add $component" >&2
        exit 3
    fi
done
