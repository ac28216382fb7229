#!/usr/bin/env bash
# `make readme-figures`: measures what README's table has, and writes the part of README.md between its two marks anew. Each
# point has $ROUNDS (5) rounds of $EACH (1) seconds under cubic and, where the kernel has them, under bbr with an fq queue and
# without one: ten to fifteen minutes. Root is needed for the network namespaces in which congestion controls are set, and for
# Debian 13's nginx. $CACHE is a folder that `linerate bench setup` has filled; results stay in target/readme-figures. The machine
# has to be quiet: the program does not know whether it was.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/rust.sh
scripts/packages.sh peers || echo "some peers are missing: their columns will be" >&2
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

target=${CARGO_TARGET_DIR:-target}
results=$target/readme-figures
cargo build --release --package linerate
rm -rf "$results"

bench() {
    "$target/release/linerate" bench run "$1" --output "$results/$1" ${CACHE:+--cache "$CACHE"} "${@:2}" "${short[@]}"
}
short=(--rounds "${ROUNDS:-5}" --set "measured_s=${EACH:-1}" --set warmup_s=0.5)
bench in-step --set connections=8 --set congestion_control=cubic,bbr+fq,bbr
bench keep-alive --set file_bytes=10000,100000,1000000 --set congestion_control=cubic,bbr+fq,bbr
bench full-handshakes --set certificate=ecdsa --set congestion_control=cubic,bbr+fq,bbr
# Memory takes time to settle, and does not change from round to round.
short=(--rounds 2)
bench idle --set connections=5000 --set congestion_control=cubic

cargo run --release --package xtask -- readme-figures "$results"
echo "README.md: read what changed (git diff README.md); docs/MEASUREMENTS.md has the same table with its spread"
