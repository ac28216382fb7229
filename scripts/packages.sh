#!/usr/bin/env bash
# Sees to it that the system's programs for a purpose are there:
#
#   scripts/packages.sh make     make itself
#   scripts/packages.sh build    what the compiler needs; exits 3 where that cannot be had
#   scripts/packages.sh test     what tests use; where one cannot be had, its tests are skipped by name
#   scripts/packages.sh guest    what boots a kernel with kernel TLS (guest/); without it those tests are skipped
#   scripts/packages.sh aarch64  what compiles for 64-bit ARM; without it the tests there are skipped
#   scripts/packages.sh hostile  what `make hostile` compares with; without it linerate is alone in its table
#   scripts/packages.sh peers    what `linerate bench` compares with and measures by
#
# What is missing is installed with apt-get where that is permitted: as root, or by a sudo that asks for no password.
# SETUP=no forbids it. Otherwise the command to run is printed.
set -euo pipefail

# One line a program: how it may be called (any of these), its Debian package, what it is for. `python3:MODULE` is a
# module of Python's.
programs_for() {
    case $1 in
    make) echo 'make|make|the commands of the project' ;;
    build) echo 'cc|gcc libc6-dev|the compiler and linker for aws-lc' ;;
    test)
        echo 'curl|curl|HTTP tests with a real client'
        echo 'openssl|openssl|TLS tests with a second implementation'
        echo "chromium chromium-browser google-chrome|$(browser_package)|the browser test"
        echo 'ss|iproute2|the tests of measurements, in network namespaces'
        echo 'systemd-analyze|systemd|checks of the units, socket activation'
        echo 'python3:ensurepip|python3 python3-venv|the conversations on a TLS library in Python'
        echo 'man|man-db|the test of the manual page'
        echo 'sshd|openssh-server|the test of load from other machines'
        echo 'ip|iproute2|the same test, which asks for an address'
        echo 'h2o|h2o|the test of h2o as a peer'
        echo 'caddy|caddy|the test of Caddy as a peer'
        echo 'shellcheck|shellcheck|the check of these scripts'
        echo 'podman|podman crun catatonit|the tests of the image and the chart'
        # Only where packages of this kind are used: elsewhere neither is of any help.
        if command -v dpkg >/dev/null; then
            echo 'dh|debhelper|the Debian package'
            echo 'lintian|lintian|its check'
        fi ;;
    guest)
        # The kernels are Debian's, for x86-64: nothing is installed where they could not be had anyway.
        if ! grep -qs '^ID=debian' /etc/os-release || [ "$(uname -m)" != x86_64 ]; then return; fi
        echo 'qemu-system-x86_64|qemu-system-x86|the machine that boots a kernel with kernel TLS'
        echo "/usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd|$(virtiofsd_package)|sharing files with it"
        echo 'busybox|busybox-static|its first process'
        echo 'cpio|cpio|its initial RAM disk'
        echo 'modprobe|kmod|its modules'
        echo 'xz|xz-utils|unpacking kernels'
        echo 'zstd|zstd|unpacking kernels'
        echo 'lz4|lz4|unpacking kernels'
        echo 'mkfs.ext4|e2fsprogs|its file system'
        echo 'nginx|nginx|the peer that uses kernel TLS, too'
        echo 'make|make|the software adapter (nic/)'
        echo 'cc|gcc libc6-dev|the same'
        echo 'ip|iproute2|its tests, in network namespaces'
        echo 'ethtool|ethtool|its counters' ;;
    aarch64)
        if ! grep -qs '^ID=debian' /etc/os-release || [ "$(uname -m)" != x86_64 ]; then return; fi
        echo 'aarch64-linux-gnu-gcc|gcc-aarch64-linux-gnu libc6-dev-arm64-cross|the compiler and linker for 64-bit ARM' ;;
    hostile) echo 'nginx|nginx|the server beside it' ;;
    peers)
        echo 'nginx|nginx|the server to compare with'
        echo 'wrk|wrk|the client that measures requests'
        echo 'ip|iproute2|the network namespace'
        echo 'debootstrap|debootstrap|nginx on a newer OpenSSL' ;;
    *)
        echo "usage: $0 make|build|test|guest|aarch64|hostile|peers" >&2
        exit 2 ;;
    esac
}

# Ubuntu's package of Chromium is only a pointer to a snap, which a container or CI cannot run.
browser_package() {
    if grep -qs '^ID=ubuntu' /etc/os-release; then echo; else echo chromium; fi
}

# Until QEMU 8 it was a part of QEMU.
virtiofsd_package() {
    if grep -qs '^VERSION_ID="12"' /etc/os-release; then echo qemu-system-common; else echo virtiofsd; fi
}

is_installed() {
    local name
    for name in $1; do
        if [ "${name%%:*}" = python3 ]; then
            if python3 -c "import ${name#*:}" 2>/dev/null; then return; fi
            continue
        fi
        # Debian keeps servers in sbin, which is not on everybody's path.
        if PATH="$PATH:/usr/sbin:/sbin" command -v "$name" >/dev/null; then return; fi
    done
    return 1
}

# The word before a command that makes it run as root; fails where that is not permitted.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif command -v sudo >/dev/null && sudo --non-interactive true 2>/dev/null; then
        echo sudo
    else
        return 1
    fi
}

# Installs packages without letting them start a service: nginx would take port 80 of this machine, now and after
# every boot.
install_packages() {
    local root=$1 policy=/usr/sbin/policy-rc.d made_policy=no package
    shift
    if [ ! -e "$policy" ]; then
        made_policy=yes
        printf '#!/bin/sh\nexit 101\n' | "$root" tee "$policy" >/dev/null
        "$root" chmod 755 "$policy"
    fi
    "$root" apt-get update -qq >&2 || true
    # All at once, or else one by one: a package that cannot be had must not keep the others away.
    if ! apt_install "$root" "$@"; then
        for package in "$@"; do apt_install "$root" "$package" || true; done
    fi
    if [ "$made_policy" = yes ]; then "$root" rm -f "$policy"; fi
    if [ -d /run/systemd/system ]; then
        for package in nginx openssh-server h2o caddy; do
            if [[ " $* " == *" $package "* ]]; then
                "$root" systemctl disable --quiet "${package/openssh-server/ssh}.service" || true
            fi
        done
    fi
}

apt_install() {
    local root=$1
    shift
    "$root" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends --no-remove "$@" </dev/null >&2
}

purpose=${1:-}
missing=() packages=()
# Through a file, not a pipe: an unknown purpose then ends the script.
wanted=$(programs_for "$purpose")
if [ -z "$wanted" ]; then exit 0; fi
while IFS='|' read -r names package why; do
    if ! is_installed "$names"; then
        missing+=("${names%% *}|${package}|${why}")
        # shellcheck disable=SC2206 # a line may name several packages
        packages+=($package)
    fi
done <<<"$wanted"
if [ ${#missing[@]} = 0 ]; then exit 0; fi

if [ ${#packages[@]} -gt 0 ] && [ "${SETUP:-}" != no ] && command -v apt-get >/dev/null && root=$(as_root); then
    echo "installing: ${packages[*]} (SETUP=no forbids it)" >&2
    install_packages "$root" "${packages[@]}"
    still_missing=()
    for entry in "${missing[@]}"; do
        is_installed "${entry%%|*}" || still_missing+=("$entry")
    done
    missing=(${still_missing[@]+"${still_missing[@]}"})
fi
if [ ${#missing[@]} = 0 ]; then exit 0; fi

{
    echo "missing on this machine:"
    for entry in "${missing[@]}"; do
        IFS='|' read -r name package why <<<"$entry"
        echo "  $name: $why${package:+ (package $package)}"
    done
    if [ ${#packages[@]} -gt 0 ]; then
        echo "to install: sudo apt-get install --no-install-recommends ${packages[*]}"
    fi
} >&2
case $purpose in
test | guest | aarch64 | hostile) ;;
*) exit 3 ;;
esac
