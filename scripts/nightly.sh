# shellcheck shell=bash
# To be sourced: what a script that needs nightly Rust begins with. Exits 3 where that is missing, and says what it is for: $1.
scripts/packages.sh build
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "missing: nightly Rust, $1. Install it with: rustup toolchain install nightly" >&2
    exit 3
fi
