#!/usr/bin/env bash
# Prints the path of a program in Go: the one that is installed, or else the version named here, which is built below the
# target folder. Exits 77 where it cannot be had (no Go, no network), with the reason.
#
#   scripts/go-tool.sh NAME MODULE VERSION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=$1 module=$2 version=$3
tools=$(realpath "${CARGO_TARGET_DIR:-target}")/tools

for found in "$(command -v "$name" || true)" "$tools/bin/$name"; do
    if [ -x "$found" ]; then
        echo "$found"
        exit
    fi
done
if ! command -v go >/dev/null; then
    echo "$name is not installed, and there is no Go to build it with" >&2
    exit 77
fi
mkdir -p "$tools/bin"
if ! GOBIN=$tools/bin CGO_ENABLED=0 GOFLAGS=-buildvcs=false \
    go install "$module@$version" >"$tools/$name.log" 2>&1; then
    tail -n 20 "$tools/$name.log" >&2
    echo "$name $version cannot be installed; log: $tools/$name.log" >&2
    exit 77
fi
echo "$tools/bin/$name"
