#!/usr/bin/env bash
# Prints the path of a cargo tool: the one that is installed, or else the version named here, which is built below the
# target folder. Exits 77 where it cannot be had (no network), with the reason.
#
#   scripts/cargo-tool.sh NAME VERSION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=$1 version=$2
target=${CARGO_TARGET_DIR:-target}
root=$target/tools

for found in "$(command -v "$name" || true)" "$root/bin/$name"; do
    if [ -x "$found" ]; then
        echo "$found"
        exit
    fi
done
mkdir -p "$root"
# The tool runs for seconds, so it is built to be there soon: 50 s on two cores instead of many minutes.
if ! CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
    CARGO_TARGET_DIR="$target/tools/build" \
    cargo install "$name" --version "$version" --locked --root "$root" >"$root/$name.log" 2>&1; then
    tail -n 20 "$root/$name.log" >&2
    echo "$name $version cannot be installed; log: $root/$name.log" >&2
    exit 77
fi
rm -rf "$target/tools/build"
echo "$root/bin/$name"
