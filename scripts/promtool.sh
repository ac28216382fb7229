#!/usr/bin/env bash
# Prints the path of promtool: the one that is installed, or else that of Debian's package `prometheus`, unpacked below the
# target folder (installing it would start a Prometheus). Exits 77 where it cannot be had, with the reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$(realpath "${CARGO_TARGET_DIR:-target}")/tools
for found in "$(command -v promtool || true)" "$tools/prometheus/usr/bin/promtool"; do
    if [ -x "$found" ]; then
        echo "$found"
        exit
    fi
done
if ! command -v apt-get >/dev/null; then
    echo "promtool is not installed, and this machine has no apt to fetch it by" >&2
    exit 77
fi
room=$(mktemp --directory)
trap 'rm -rf "$room"' EXIT
if ! (cd "$room" && apt-get download -qq -o APT::Sandbox::User=root prometheus) >"$room/log" 2>&1; then
    cat "$room/log" >&2
    echo "promtool is not installed, and Debian's package prometheus cannot be had" >&2
    exit 77
fi
mkdir -p "$tools/prometheus"
dpkg-deb --fsys-tarfile "$room"/prometheus_*.deb | tar --extract --directory "$tools/prometheus" ./usr/bin/promtool
echo "$tools/prometheus/usr/bin/promtool"
