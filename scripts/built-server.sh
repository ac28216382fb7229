#!/usr/bin/env bash
# Prints the path of the server that tests from a checkout of others' are run against: LINERATE, if that names one, or the debug
# build, which is made.
set -euo pipefail
if [ -n "${LINERATE:-}" ]; then
    echo "$LINERATE"
    exit
fi
scripts/rust.sh
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin" cargo build --package linerate
echo "$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/linerate"
