#!/usr/bin/env bash
# The version is the same wherever it stands, and scripts/version.sh changes it everywhere, in a copy of those files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(scripts/version.sh)
room=$(mktemp --directory)
trap 'rm -rf "$room"' EXIT
cp --parents Cargo.toml Cargo.lock CHANGELOG.md deploy/helm/linerate/Chart.yaml "$room"
export LINERATE_ROOT=$room
# The changelog of a release may have nothing new yet.
grep --quiet '^- ' <(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md) || sed -i 's/^## \[Unreleased\]/&\n\n- Something./' "$room/CHANGELOG.md"

fault() {
    echo "$*" >&2
    exit 1
}
for wrong in 1.2 v1.2.3 01.2.3 1.2.3-rc ''; do
    if scripts/version.sh --set "$wrong" 2>/dev/null; then fault "\"$wrong\" was taken for a version"; fi
done
members=$(grep --count --line-regexp "version = \"$version\"" "$room/Cargo.lock")
[ "$(scripts/version.sh --set 97.98.99)" = 97.98.99 ] || fault "the version was not set"
[ "$(grep --count '^version = "97.98.99"$' "$room/Cargo.toml")" = 1 ] || fault "Cargo.toml was not changed"
grep --quiet '^## \[97.98.99\] - 20' "$room/CHANGELOG.md" || fault "the changelog was not changed"
grep --quiet '^appVersion: "97.98.99"$' "$room/deploy/helm/linerate/Chart.yaml" || fault "the chart was not changed"
changed=$(grep --count '^version = "97.98.99"$' "$room/Cargo.lock")
if [ "$changed" -lt 20 ] || [ "$changed" -gt "$members" ]; then fault "$changed of $members packages were changed in Cargo.lock"; fi
foreign() { grep --before-context=2 '^source' "$1"; }
diff <(foreign Cargo.lock) <(foreign "$room/Cargo.lock") || fault "another's crate was changed in Cargo.lock"
if scripts/version.sh --set 97.98.99 2>/dev/null; then fault "a version was released twice"; fi
sed -i 's/^version: .*/version: 1.1.1/' "$room/deploy/helm/linerate/Chart.yaml"
if scripts/version.sh >/dev/null 2>&1; then fault "two versions went unnoticed"; fi
echo "version $version, in all places"
