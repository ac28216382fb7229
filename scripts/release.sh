#!/usr/bin/env bash
# `make release`: everything that is published of a version, into target/dist: the Debian package, the OCI image, a static
# program (musl), the Helm chart, lists of parts (CycloneDX) and checksums. Of a clean checkout, so that the commit says what it
# is made of. Exits 1 if a part cannot be made.
#
#   scripts/release.sh [PART...]     deb, image, static, chart, and arm64 (deb and image for 64-bit ARM); all of them unless told
#                                    otherwise. And freebsd, where it is asked for: a program that was never run there
#                                    (docs/FREEBSD.md)
#
# Before: `make version VERSION=X.Y.Z`, commit, tag vX.Y.Z. The workflow .github/workflows/release.yml runs this for a tag.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
parts=("$@")
if [ ${#parts[@]} = 0 ]; then parts=(deb image arm64 static chart); fi
target=${CARGO_TARGET_DIR:-target}
output=$target/dist

fail() {
    echo "release: $*" >&2
    exit 1
}
version=$(scripts/version.sh) || fail "the version differs between files: make version VERSION=X.Y.Z"
if [ -n "$(git status --porcelain)" ]; then fail "the checkout has changes that are in no commit"; fi
tag=$(git describe --exact-match --tags --match 'v*' 2>/dev/null || true)
if [ -n "$tag" ] && [ "$tag" != "v$version" ]; then fail "the tag is $tag and the version $version"; fi
if [ -n "$tag" ] && ! grep --quiet --fixed-strings "## [$version]" CHANGELOG.md; then fail "CHANGELOG.md has no section $version"; fi
[ "$(uname -m)" = x86_64 ] || fail "releases are made on x86-64"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$output"
mkdir -p "$output"

is_wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }
for part in "${parts[@]}"; do
    case $part in
    deb | image | arm64 | static | chart | freebsd) ;;
    *) fail "there is no part $part; there are deb, image, arm64, static, chart, freebsd" ;;
    esac
done

if is_wanted deb || is_wanted image || is_wanted arm64; then
    cargo build --release --locked --package linerate
    program=$target/release/linerate
    python3 scripts/sbom.py --program "$program" "$output/linerate-$version.cdx.json"
fi
if is_wanted deb; then
    scripts/deb.sh --binary "$program" --output "$output"
    rm -f "$output/debhelper.log"
fi
if is_wanted image; then
    python3 scripts/image.py --binary "$program" --output "$output" --sbom "$output/linerate-$version.cdx.json"
fi
if is_wanted arm64; then
    triple=aarch64-unknown-linux-gnu
    command -v aarch64-linux-gnu-gcc >/dev/null || fail "arm64: the cross compiler is missing (scripts/packages.sh aarch64)"
    scripts/rust-target.sh "$triple" || fail "arm64: Rust cannot build for $triple (above)"
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        cargo build --release --locked --package linerate --target "$triple"
    libraries=$(scripts/arm64-libraries.sh) || fail "arm64: its C library cannot be had"
    list=$output/linerate-$version-arm64.cdx.json
    python3 scripts/sbom.py --target "$triple" --packages "$libraries/packages" "$list"
    program_arm64=$target/$triple/release/linerate
    scripts/deb.sh --binary "$program_arm64" --output "$output" --architecture arm64 --libraries "$libraries" --says "$program"
    rm -f "$output/debhelper.log"
    python3 scripts/image.py --binary "$program_arm64" --output "$output" --sbom "$list" --sysroot "$libraries"
fi
if is_wanted static; then
    triple=x86_64-unknown-linux-musl
    command -v musl-gcc >/dev/null || fail "static: musl-gcc is missing (package musl-tools)"
    scripts/rust-target.sh "$triple" || fail "static: Rust cannot build for $triple (above)"
    # Lines for backtraces are not in it: they are more than the program.
    CARGO_PROFILE_RELEASE_DEBUG=0 CC_x86_64_unknown_linux_musl=musl-gcc cargo build --release --locked --package linerate --target "$triple"
    python3 scripts/sbom.py --target "$triple" "$output/linerate-$version-static.cdx.json"
    folder=linerate-$version-x86_64-linux-static
    room=$(mktemp --directory)
    trap 'rm -rf "$room"' EXIT
    mkdir -p "$room/$folder/completions"
    strip -o "$room/$folder/linerate" "$target/$triple/release/linerate"
    if readelf --dynamic "$room/$folder/linerate" | grep NEEDED; then fail "the static program needs libraries"; fi
    "$room/$folder/linerate" man >"$room/$folder/linerate.1"
    for shell in bash zsh fish; do "$room/$folder/linerate" completions "$shell" >"$room/$folder/completions/linerate.$shell"; done
    cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$room/$folder/"
    mkdir "$room/$folder/deploy"
    cp deploy/README.md deploy/linerate.* deploy/systemd-before-253.conf "$room/$folder/deploy/"
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$room" "$folder" | gzip --no-name --best >"$output/$folder.tar.gz"
fi
if is_wanted freebsd; then
    triple=x86_64-unknown-freebsd
    scripts/rust-target.sh "$triple" || fail "freebsd: Rust cannot build for $triple (above)"
    python=$(scripts/python-environment.sh scripts/freebsd/requirements.txt) || fail "freebsd: zig and cargo-zigbuild cannot be had"
    PATH=$(dirname "$python"):$PATH CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_TARGET_DIR=$target/freebsd/linked \
        cargo zigbuild --release --locked --package linerate --target "$triple"
    python3 scripts/sbom.py --target "$triple" "$output/linerate-$version-freebsd.cdx.json"
    folder=linerate-$version-x86_64-freebsd14
    freebsd_room=$(mktemp --directory)
    mkdir "$freebsd_room/$folder"
    cp "$target/freebsd/linked/$triple/release/linerate" README.md CHANGELOG.md docs/FREEBSD.md LICENSE-APACHE LICENSE-MIT "$freebsd_room/$folder/"
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$freebsd_room" "$folder" | gzip --no-name --best >"$output/$folder.tar.gz"
    rm -rf "$freebsd_room"
fi
if is_wanted chart; then
    helm=$(scripts/go-tool.sh helm helm.sh/helm/v3/cmd/helm v3.22.0) || fail "chart: helm cannot be had"
    "$helm" package deploy/helm/linerate --destination "$output" 2>/dev/null
fi
(cd "$output" && sha256sum -- * >SHA256SUMS)
# What the page of the release says: the changelog's section of this version, or what is unreleased.
awk -v wanted="## [$version]" 'index($0, "## [") == 1 { inside = index($0, wanted) == 1 } inside' CHANGELOG.md >"$target/release-notes.md"
ls -l "$output"
