#!/usr/bin/env bash
# The C library of this machine's Debian for arm64, unpacked into target/aarch64/libraries: what an image of the cross-compiled
# program has beside it. The cross compiler's own will not do: they get no security updates. Prints the folder. Exits 77 where the
# packages cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=guest/common.sh
. guest/common.sh
# shellcheck source=guest/apt.sh
. guest/apt.sh
guest_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")/aarch64
prepare_own_apt arm64
fetch_tree "$guest_dir/libraries" libc6 libgcc-s1 || skip "this Debian's C library for arm64 cannot be fetched"
echo "$guest_dir/libraries"
