# What guest/setup and guest/run both need to know. Sourced, by bash.
# shellcheck shell=bash

guest_sources=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

# Where kernels and the like are kept: LINERATE_GUEST_DIR, or target/guest of the checkout.
guest_dir=$(realpath -m "${LINERATE_GUEST_DIR:-$guest_sources/../target/guest}")

# The labels of the kernels that are set up, oldest first: 6.1, 6.12, …
guest_kernels() {
    find "$guest_dir/kernels" -mindepth 2 -maxdepth 2 -name release -printf '%h\n' 2>/dev/null |
        sed 's|.*/||' | sort --version-sort
}

# The major version of a QEMU; 0 where it cannot be run.
qemu_major() {
    local version
    version=$("$1" --version 2>/dev/null) || version=0
    sed -nE '1s/[^0-9]*([0-9]+).*/\1/p' <<<"$version"
}

# The program that shares the host's files with the guest: QEMU's own until version 7.2, its successor in Rust since.
find_virtiofsd() {
    local path
    for path in /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd; do
        if [ -x "$path" ]; then
            echo "$path"
            return
        fi
    done
    return 1
}

# Ends a script that this machine has not the means for.
skip() {
    echo "SKIPPED: guest: $1" >&2
    exit 77
}
