#!/usr/bin/env bash
# The dashboard and the alert rules in deploy/ name only what a server exports, and the rules fire when they should
# (promtool). What cannot be had here is skipped by name.
#
#   scripts/check-monitoring.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
program=${1:-$target/debug/linerate}
rules=deploy/prometheus/linerate.rules.yml
if [ ! -x "$program" ]; then
    cargo build --package linerate
fi

room=$(mktemp --directory)
server=
trap 'if [ -n "$server" ]; then kill "$server"; fi; rm -rf "$room"' EXIT
mkdir "$room/content" "$room/state"
echo content >"$room/content/file"
STATE_DIRECTORY=$room/state "$program" serve "$room/content" --listen 127.0.0.1:0 --admin 0 2>"$room/messages" &
server=$!
# Its notes name the ports that it got.
for ((tries = 0; tries < 300; tries++)); do
    if grep --quiet '/  admin' "$room/messages"; then break; fi
    kill -0 "$server" || break
    sleep 0.1
done
url() { sed -nE "s|.*($1://127.0.0.1:[0-9]+/).*|\1|p" "$room/messages" | head -n 1; }
https=$(url https) admin=$(url http)
if [ -z "$https" ] || [ -z "$admin" ]; then
    cat "$room/messages" >&2
    exit 1
fi
# One response and one failed handshake: some families show only what occurred.
curl --silent --show-error --insecure --output "$room/got" "${https}file"
cmp "$room/got" "$room/content/file"
curl --silent --output /dev/null "http${https#https}" || true
curl --silent --show-error --output "$room/metrics" "${admin}metrics"

python3 scripts/check-monitoring.py "$room/metrics" deploy/grafana/linerate.json "$rules"
# What it finds is found: a rule about something that nobody exports.
sed 's/linerate_panics_total/linerate_panic_total/; s/"descriptors"/"descriptor"/; s/|descriptors/|descriptor/' "$rules" >"$room/wrong.yml"
if python3 scripts/check-monitoring.py "$room/metrics" deploy/grafana/linerate.json "$room/wrong.yml" >"$room/said" ||
    ! grep --quiet 'nothing is called linerate_panic_total' "$room/said" || ! grep --quiet 'no reason="descriptor"' "$room/said"; then
    echo "a rule about what nobody exports was not found:"
    cat "$room/said"
    exit 1
fi

status=0
promtool=$(scripts/promtool.sh) || status=$?
if [ "$status" = 77 ]; then
    echo "SKIPPED: alert rules, their tests: promtool cannot be had"
    exit 77
elif [ "$status" != 0 ]; then
    exit "$status"
fi
python3 scripts/check-monitoring.py --rules deploy/grafana/linerate.json >"$room/dashboard.yml"
"$promtool" check rules "$rules" "$room/dashboard.yml"
"$promtool" test rules deploy/prometheus/linerate.rules.test.yml
