#!/usr/bin/env bash
# Sees to it that Rust's library for a target is here: scripts/rust-target.sh TRIPLE. Where it is not and cannot be had it says so
# and exits 77.
set -euo pipefail
triple=$1
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
# Without rustup, too, it may be there: a distribution's own package.
if [ -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]; then exit; fi
if ! said=$(rustup target add "$triple" 2>&1); then
    printf '%s\n' "$said" >&2
    echo "Rust's library for $triple is not installed and cannot be had" >&2
    exit 77
fi
