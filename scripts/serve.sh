#!/usr/bin/env bash
# `make serve`: builds the server as it is meant to run and serves $DIR, or a sample directory that it makes. What
# follows on the command line goes to `linerate serve`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

directory=${DIR:-}
if [ -z "$directory" ]; then
    directory=${CARGO_TARGET_DIR:-target}/sample
    scripts/sample-directory.sh "$directory"
elif [ ! -d "$directory" ]; then
    echo "DIR=$directory is not a directory" >&2
    exit 2
fi
cargo build --release --package linerate
exec "${CARGO_TARGET_DIR:-target}/release/linerate" serve "$directory" "$@"
