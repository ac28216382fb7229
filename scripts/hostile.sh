#!/usr/bin/env bash
# `make hostile`: every fault program in its long form against a release build of linerate and against nginx, over IPv4 and
# IPv6, and a table of what each did. What follows on the command line goes to `linerate-hostile table`:
# `make hostile ARGS="logs disks --ipv4"`. Exits 1 where something that is expected of linerate does not hold.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/rust.sh
scripts/packages.sh hostile || echo "without nginx the table has linerate alone" >&2
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

target=${CARGO_TARGET_DIR:-target}
cargo build --release --package linerate --package linerate-hostile
# A client is a descriptor here, and one of the server.
ulimit -n "$(ulimit -H -n)"
echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), Linux $(uname -r), $(nproc) CPUs," \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
status=0
"$target/release/linerate-hostile" table --long --output "$target/hostile.md" "$@" || status=$?
echo "the table is in $target/hostile.md"
exit "$status"
