#!/usr/bin/env bash
# `make test-aarch64 [ARGS="--package linerate-record"]`: the tests of the crates, and those of kernel TLS, on 64-bit ARM. Debian's
# cross compiler builds them here; they run in an emulated machine with Debian's kernel and C library for arm64 (guest/README.md).
# An image of the program serves there, too. What is on the command line chooses packages and tests, as for cargo test. Exits 1 if a
# test failed, and 77, with the reason, where this machine has not the means.
#
# Left out unless they are named: what tests the program from outside beside other programs (tests/end-to-end, tests/hostile);
# xtask, which is for the machine that builds; and what is hours of arithmetic there (fuzz targets, and simulations: linerate-plan,
# short_of_set_ups).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/packages.sh guest
scripts/packages.sh aarch64
scripts/rust.sh
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"
triple=aarch64-unknown-linux-gnu
limit_s=7200
room=$(realpath --no-symlinks "${CARGO_TARGET_DIR:-target}")/aarch64
mkdir -p "$room"

skip() {
    echo "SKIPPED: aarch64: $1"
    exit 77
}
command -v aarch64-linux-gnu-gcc >/dev/null || skip "its compiler is not installed (package gcc-aarch64-linux-gnu)"
scripts/rust-target.sh "$triple" || skip "Rust's library for $triple cannot be had (above)"
export LINERATE_GUEST_MACHINE=aarch64
status=0
guest/setup || status=$?
if [ "$status" = 77 ]; then skip "the guest cannot be set up (above)"; fi
[ "$status" = 0 ] || exit "$status"

# In place of running a program, cargo notes it: the folder it belongs in, and its path.
notes=$room/programs
rm -f "$notes"
# shellcheck disable=SC2016 # the runner's own
printf '#!/bin/sh\nprintf "%%s\\t%%s\\n" "$PWD" "$1" >>%q\n' "$notes" >"$room/note"
chmod +x "$room/note"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$room/note
locked=()
if [ "${CI:-}" = true ]; then locked=(--locked); fi
selected=("$@")
if [ $# = 0 ]; then
    selected=(--workspace --exclude linerate-end-to-end --exclude linerate-hostile --exclude xtask --exclude linerate-fuzz-targets
        --exclude linerate-plan --lib --bins --test '*')
fi
cargo test "${locked[@]}" "${selected[@]}" --target "$triple" --target-dir "$room"
[ -s "$notes" ] || { echo "test-aarch64: cargo has no tests for: ${selected[*]}" >&2 && exit 1; }

if [ $# = 0 ] || grep --quiet '/kernel_tls-[0-9a-f]*$' "$notes"; then
    cargo build "${locked[@]}" --package linerate --bin linerate --target "$triple" --target-dir "$room"
fi

# leave_out SUITE: takes it from the notes. Fails where it was not there.
leave_out() {
    grep --quiet "/$1-[0-9a-f]*\$" "$notes" && sed --in-place "\\|/$1-[0-9a-f]*\$|d" "$notes"
}
# Without other machines' modules and programs these suites would skip each of their tests.
for suite in software_nic nfs; do
    if leave_out "$suite"; then echo "SKIPPED: $suite on aarch64: its module and its clients are those of x86-64"; fi
done
if [ $# = 0 ]; then
    leave_out short_of_set_ups || { echo "test-aarch64: there are no tests short_of_set_ups to leave out" >&2 && exit 1; }
fi

share=$room/results
rm -rf "$share"
mkdir -p "$share"
cp "$notes" "$share/programs"
if [ $# = 0 ]; then
    libraries=$(scripts/arm64-libraries.sh)
    read -r archive _ < <(python3 scripts/image.py --binary "$room/$triple/debug/linerate" --output "$room/image" --sysroot "$libraries")
    mkdir "$share/image"
    python3 scripts/image-tree.py "$archive" "$share/image"
fi
# shellcheck disable=SC2016 # the guest's own
in_guest='
failed=0
while IFS=$(printf "\t") read -r folder program; do
    cd "$folder" || exit 125
    printf "\n-- %s\n" "$(basename "$program")"
    "$program" --nocapture </dev/null || { failed=1; echo "FAILED on aarch64: $program"; }
done <"$GUEST_SHARE/programs"
if [ -d "$GUEST_SHARE/image" ]; then
    printf "\n-- the image\n"
    tree=$TMPDIR/image
    cp -a "$GUEST_SHARE/image" "$tree"
    head -c 3000001 /dev/urandom >"$tree/srv/file"
    inside=(chroot --userspec 65532:65532 "$tree" /usr/bin/linerate)
    STATE_DIRECTORY=/var/lib/linerate "${inside[@]}" serve /srv --listen 127.0.0.1:8443 --admin 9443 &
    for _ in $(seq 100); do
        if "${inside[@]}" load http://127.0.0.1:9443/healthz --requests 1 --connections 1 >/dev/null 2>&1; then break; fi
        sleep 0.2
    done
    said=$("${inside[@]}" load https://127.0.0.1:8443/file --insecure --requests 5 --connections 2 --verify /srv/file) || failed=1
    echo "$said"
    grep -q "every byte is its source" <<<"$said" || { failed=1; echo "FAILED on aarch64: the image"; }
    kill -QUIT $! && wait $! || { failed=1; echo "FAILED on aarch64: the image does not end"; }
fi
exit "$failed"'
guest/run --timeout "$limit_s" --share "$share" --memory 3072 -- \
    env "LINERATE_BINARY=$room/$triple/debug/linerate" ${LINERATE_TEST_ALL:+"LINERATE_TEST_ALL=$LINERATE_TEST_ALL"} bash -c "$in_guest" 2>&1
