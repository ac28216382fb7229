#!/usr/bin/env bash
# systemd's own opinion of the units in deploy/: no mistake in them, and a sandbox that stays as tight as it is. Exits
# 77 where systemd-analyze is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exposure_limit=1.9

if ! command -v systemd-analyze >/dev/null; then
    echo "SKIPPED: systemd units: systemd-analyze is not installed"
    exit 77
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# The program need not be installed where the units are checked.
for unit in deploy/linerate.service deploy/linerate.socket; do
    sed 's|/usr/local/bin/linerate|/bin/true|' "$unit" >"$copy/${unit##*/}"
done

complaints=$(systemd-analyze verify --man=no "$copy/linerate.service" "$copy/linerate.socket" 2>&1) || true
version=$(systemd-analyze --version | sed -nE '1s/^systemd ([0-9]+).*/\1/p')
if [ "$version" -lt 253 ]; then
    # The unit asks for notify-reload, and says why an older systemd may ignore that line.
    complaints=$(grep -v 'Failed to parse service type, ignoring: notify-reload' <<<"$complaints" || true)
fi
# Units of the machine itself are none of our business.
complaints=$(grep linerate <<<"$complaints" || true)
if [ -n "$complaints" ]; then
    echo "$complaints"
    exit 1
fi
systemd-analyze security --offline=true --threshold="${exposure_limit/./}" --no-pager "$copy/linerate.service" 2>/dev/null | tail -n 1
