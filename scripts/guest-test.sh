#!/usr/bin/env bash
# `make guest-test`: what needs kernel TLS, in guests that have it (guest/README.md). Arguments are guest/test's. Exits
# 77 where this machine has not the means.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/packages.sh guest
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"
exec guest/test "$@"
