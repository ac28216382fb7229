# What guest/setup and guest/run both need to know. Sourced, by bash.
# shellcheck shell=bash

guest_sources=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

# Which machine the guest is. x86_64 sees the host's files; aarch64, LINERATE_GUEST_MACHINE says so, has programs of its own.
guest_machine=${LINERATE_GUEST_MACHINE:-x86_64}

# Where kernels and the like are kept: LINERATE_GUEST_DIR, or target/guest of the checkout.
guest_dir=$(realpath -m "${LINERATE_GUEST_DIR:-$guest_sources/../target/guest}")

# What differs between the machines: Debian's name for it, its board, processor and console in QEMU, and the package of its QEMU.
#
# cx16: an emulated cmpxchg16b of QEMU 7.2 kills Linux 6.12. erms, fsrm: QEMU does `rep movs` and `rep stos` one step
# at a time, and with these flags Linux takes steps of a single byte: starting a program took twice as long. Where instructions are
# counted, they would hide a copy in a single one. The TSC is the host's, and a busy host spoils its calibration: the
# guest's clock then runs at any speed. The HPET is slow to read, and right. pauth-impdef: the architecture's own algorithm for
# signing pointers takes longer than what is between two of them.
# shellcheck disable=SC2034 # used where this is sourced
case $guest_machine in
x86_64)
    debian_architecture=amd64 board=q35 processor=max,-cx16,-erms,-fsrm console=ttyS0 clock="tsc=unstable clocksource=hpet"
    qemu_package=qemu-system-x86 ;;
aarch64)
    debian_architecture=arm64 board=virt processor=max,pauth-impdef=on console=ttyAMA0 clock=''
    qemu_package=qemu-system-arm guest_dir=$guest_dir/aarch64 ;;
*)
    echo "guest: LINERATE_GUEST_MACHINE is '$guest_machine'; guests are x86_64 or aarch64" >&2
    exit 2 ;;
esac

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
