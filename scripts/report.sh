#!/usr/bin/env bash
# `make report`: runs $EXPERIMENT (engines unless told) with a release build, and puts its report where the documents link
# it: docs/reports/EXPERIMENT/ with report.html, the figures and result.json. What follows on the command line goes to
# `linerate bench run`: `make report ARGS=--quick`. Programs and files are in a folder of their own meanwhile, so that a
# report that is committed names no folder of anybody's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/rust.sh
scripts/packages.sh peers || echo "some peers are missing: the report will say which" >&2
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

experiment=${EXPERIMENT:-engines}
work=${TMPDIR:-/tmp}/linerate-report
place=docs/reports/$experiment

cargo build --release --package linerate
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
install -m 755 "${CARGO_TARGET_DIR:-target}/release/linerate" "$work/linerate"
(cd "$work" && ./linerate bench run "$experiment" --output result --cache cache "$@")

rm -rf "$place"
mkdir -p "$place"
cp "$work"/result/{report.html,result.json,*.svg} "$place/"
echo "$place/report.html: read it, look at its commit (docs/MEASUREMENTS.md names one), and commit the folder"
