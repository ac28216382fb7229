#!/usr/bin/env bash
# Packs a program that cargo has built into a Debian package, and prints the package's path. Exits 77 where debhelper
# cannot be had. The same program, commit and debhelper give the same bytes.
#
#   scripts/deb.sh [--binary FILE] [--output FOLDER] [--version VERSION] [--architecture NAME --libraries FOLDER --says FILE]
#
# FILE is target/release/linerate unless told otherwise, FOLDER target/deb, VERSION the workspace's with -1. A program for another
# architecture than this machine's (NAME, as Debian calls it) is linked with the libraries in FOLDER (scripts/arm64-libraries.sh), and
# does not run here: --says is one that does, and prints the manual page and completions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
binary=$target/release/linerate output=$target/deb version='' architecture='' libraries='' says=''
while [ $# -gt 0 ]; do
    case $1 in
    --binary) binary=$2 ;;
    --output) output=$2 ;;
    --version) version=$2 ;;
    --architecture) architecture=$2 ;;
    --libraries) libraries=$(realpath "$2") ;;
    --says) says=$2 ;;
    *)
        echo "usage: $0 [--binary FILE] [--output FOLDER] [--version VERSION] [--architecture NAME --libraries FOLDER --says FILE]" >&2
        exit 2 ;;
    esac
    shift 2
done
if ! command -v dh >/dev/null; then
    echo "SKIPPED: Debian package: debhelper is not installed" >&2
    exit 77
fi
if [ ! -x "$binary" ]; then
    echo "$binary is missing: cargo build --release --package linerate" >&2
    exit 2
fi
mkdir -p "$output"
binary=$(realpath "$binary") output=$(realpath "$output")
if [ -z "$version" ]; then
    version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)-1
fi
# What makes two builds of one commit differ: the time, and who may read what a build writes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y Cargo.toml)}
export SOURCE_DATE_EPOCH
umask 022

room=$output/room
rm -rf "$room"
mkdir -p "$room/completions"
cp -r deploy/deb "$room/debian"
install -m 755 "$binary" "$room/linerate"
cp README.md CHANGELOG.md "$room/"
cp deploy/linerate.toml.example "$room/linerate.toml"
cp deploy/linerate.modules-load "$room/linerate.conf"
mv "$room/debian/linerate-before-253" "$room/"
for kind in service socket sysusers logrotate; do
    sed 's|/usr/local/bin/linerate|/usr/bin/linerate|; s|/etc/\(sysusers.d/linerate.conf\)|/usr/lib/\1|' \
        "deploy/linerate.$kind" >"$room/debian/linerate.$kind"
done
sed -i 's|/etc/\(modules-load.d\)|/usr/lib/\1|' "$room/linerate.conf"
says=$(realpath "${says:-$binary}")
"$says" man >"$room/linerate.1"
"$says" completions bash >"$room/completions/linerate"
"$says" completions zsh >"$room/completions/_linerate"
"$says" completions fish >"$room/completions/linerate.fish"
cat >"$room/debian/changelog" <<END
linerate ($version) unstable; urgency=medium

  * What changed: changelog.gz beside this file, which is the project's own.

 -- The linerate authors <linerate@example.org>  $(LC_ALL=C date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END

log=$output/debhelper.log
if [ -z "$architecture" ]; then architecture=$(dpkg-architecture --query DEB_HOST_ARCH); fi
if ! (cd "$room" && LINERATE_LIBRARIES=$libraries dpkg-architecture --host-arch "$architecture" --command debian/rules binary) >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "the package was not made; log: $log" >&2
    exit 1
fi
package=linerate_${version}_$architecture.deb
rm -rf "$room"
echo "$output/$package"
