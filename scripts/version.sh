#!/usr/bin/env bash
# The version, which stands in Cargo.toml, Cargo.lock, the Helm chart and the changelog.
#
#   scripts/version.sh             prints it; exits 1 if these places do not agree
#   scripts/version.sh --set X.Y.Z writes it to all of them: what the changelog has under [Unreleased] becomes that version's
set -euo pipefail
if [ -n "${LINERATE_ROOT:-}" ]; then cd "$LINERATE_ROOT"; else cd "$(dirname "${BASH_SOURCE[0]}")/.."; fi
chart=deploy/helm/linerate/Chart.yaml

current=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
if [ "${1:-}" = --set ]; then
    new=${2:-}
    if ! grep --quiet --extended-regexp '^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$' <<<"$new"; then
        echo "\"$new\" is no version; one looks like 0.2.0" >&2
        exit 2
    fi
    if grep --quiet --fixed-strings "## [$new]" CHANGELOG.md; then
        echo "CHANGELOG.md has a version $new already" >&2
        exit 1
    fi
    # No pipe: grep ends with the first line, and sed would fail for want of a reader.
    if ! grep --quiet '^- ' < <(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md); then
        echo "CHANGELOG.md has nothing under [Unreleased]: what is released?" >&2
        exit 1
    fi
    # Only the members of the workspace, which have no source: a crate of another's may have the same version.
    awk -v old="version = \"$current\"" -v new="version = \"$new\"" '
        /^\[\[package\]\]/ { flush() }
        { block[++lines] = $0; if (/^source = /) foreign = 1 }
        function flush(  i) {
            for (i = 1; i <= lines; i++) { if (!foreign && block[i] == old) block[i] = new; print block[i] }
            lines = 0; foreign = 0
        }
        END { flush() }' Cargo.lock >Cargo.lock.new
    mv Cargo.lock.new Cargo.lock
    sed -i "/^\[workspace.package\]/,/^\$/s/^version = .*/version = \"$new\"/" Cargo.toml
    sed -i "s/^version: .*/version: $new/; s/^appVersion: .*/appVersion: \"$new\"/" "$chart"
    sed -i "s/^## \[Unreleased\]/&\n\n## [$new] - $(date --utc +%F)/" CHANGELOG.md
    # The sentence that stands there until the first release.
    sed -i '/^What will be [0-9.]*\.$/,+1d' CHANGELOG.md
    current=$new
fi

status=0
differs() {
    echo "$1 has version \"$2\", Cargo.toml $current" >&2
    status=1
}
while IFS= read -r found; do
    [ "$found" = "$current" ] || differs "$chart" "$found"
done < <(sed -nE 's/^(version|appVersion): "?([^"]*)"?$/\2/p' "$chart")
locked=$(awk '/^name = "linerate"$/ { getline; gsub(/^version = "|"$/, ""); print }' Cargo.lock)
[ "$locked" = "$current" ] || differs Cargo.lock "$locked"
echo "$current"
exit "$status"
