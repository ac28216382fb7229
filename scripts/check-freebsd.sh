#!/usr/bin/env bash
# Whether the workspace builds for FreeBSD (x86-64, 14 and later), on Linux. The short form type-checks all of it, tests
# included, without a compiler for C: what C code the cryptographic library has is not looked at. Numbers and structures that the
# kernel is given are held against FreeBSD's headers, which zig has. With LINERATE_TEST_ALL everything is compiled and linked
# by zig, which has the symbols of FreeBSD's libraries, too, and the program is looked at: which libraries it wants, of which
# version. Nothing of it is run: there is no FreeBSD here.
#
# Programs about Linux alone are left out: fault programs (mounts, FUSE, control groups) and what runs in guests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
triple=x86_64-unknown-freebsd
target=$(realpath --no-symlinks "${CARGO_TARGET_DIR:-target}")
room=$target/freebsd
packages=(--workspace --exclude linerate-hostile --exclude linerate-guest-tests)
mkdir -p "$room"
locked=()
if [ "${CI:-}" = true ]; then locked=(--locked); fi

if ! scripts/rust-target.sh "$triple"; then
    echo "SKIPPED: FreeBSD: Rust's library for $triple cannot be had (above)"
    exit 77
fi

# In place of a compiler and an archiver: they make what they are asked for, with nothing in it. Type-checking reads none of it.
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$room/$1"
    chmod +x "$room/$1"
}
# shellcheck disable=SC2016 # the stand-ins' own
stand_in cc 'while [ $# -gt 0 ]; do case $1 in -o) : >"$2"; exit ;; esac; shift; done'
# shellcheck disable=SC2016
stand_in ar 'for file in "$@"; do case $file in *.a) : >"$file" ;; esac; done'
env "CC_${triple//-/_}=$room/cc" "AR_${triple//-/_}=$room/ar" AWS_LC_SYS_CMAKE_BUILDER=0 \
    cargo check "${locked[@]}" "${packages[@]}" --tests --target "$triple"
echo "all but the programs about Linux is right by type for $triple"

status=0
python=$(scripts/python-environment.sh scripts/freebsd/requirements.txt) || status=$?
if [ "$status" = 77 ]; then
    echo "SKIPPED: FreeBSD, by its headers: zig and cargo-zigbuild cannot be had"
    exit 77
elif [ "$status" != 0 ]; then
    exit "$status"
fi
# Numbers and structures by FreeBSD's headers. That the code has the same ones is a test of crates/os.
"$python" -m ziglang cc -target x86_64-freebsd -c crates/os/src/freebsd/kernel_tls/layout.c -o "$room/layout.o"
echo "layout.c is right by FreeBSD's headers"

if [ -z "${LINERATE_TEST_ALL:-}" ]; then exit; fi
PATH=$(dirname "$python"):$PATH
export PATH CARGO_TARGET_DIR=$room/linked
cargo zigbuild "${locked[@]}" "${packages[@]}" --tests --target "$triple"
cargo zigbuild "${locked[@]}" --package linerate --release --target "$triple"
program=$CARGO_TARGET_DIR/$triple/release/linerate

# FreeBSD 14 has these libraries, and their symbols up to this version.
libraries='libc.so.7 libm.so.5 libthr.so.3'
wanted=$(readelf --wide --dynamic "$program" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | sort | tr '\n' ' ')
newest=$(readelf --wide --version-info "$program" | grep --only-matching --extended-regexp 'FBSD_1\.[0-9]+' | sort --version-sort --unique | tail -n 1)
system=$(readelf --wide --file-header "$program" | sed -nE 's/.*OS\/ABI: *//p')
echo "$program wants $wanted(symbols up to $newest), for $system"
for library in $wanted; do
    case " $libraries " in
    *" $library "*) ;;
    *)
        echo "it wants $library, which a FreeBSD without packages does not have" >&2
        status=1
        ;;
    esac
done
if [ "$(printf '%s\n' "$newest" FBSD_1.7 | sort --version-sort | tail -n 1)" != FBSD_1.7 ]; then
    echo "it wants symbols of $newest: newer than FreeBSD 14's" >&2
    status=1
fi
exit "$status"
