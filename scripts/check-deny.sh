#!/usr/bin/env bash
# cargo-deny's checks, as deny.toml sets them. `advisories` needs the advisory database: exits 77 where that cannot be
# fetched. The others need nothing but the crates.
#
#   scripts/check-deny.sh CHECK...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
deny=$(scripts/cargo-tool.sh cargo-deny 0.20.2) || status=$?
if [ "$status" = 77 ]; then
    echo "SKIPPED: cargo-deny $*: cargo-deny is not installed and could not be built"
    exit 77
elif [ "$status" != 0 ]; then
    exit "$status"
fi

if [ "$*" = advisories ] && ! timeout 120 "$deny" fetch db; then
    echo "SKIPPED: advisories: the advisory database (github.com/rustsec/advisory-db) can't be fetched from here"
    exit 77
fi
"$deny" --workspace --all-features check --hide-inclusion-graph "$@"
