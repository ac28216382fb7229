#!/usr/bin/env bash
# Packs the program that the tests built, and looks at the package: lintian finds nothing, its files are those that are
# meant, what they name is in it, the program is stripped, and the same input gives the same bytes. Exits 77 where
# debhelper or lintian is missing. What the package does when it is installed: scripts/deb-trees.sh.
#
#   scripts/check-deb.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
program=${1:-$target/debug/linerate}
for tool in dh:debhelper lintian:lintian; do
    if ! command -v "${tool%:*}" >/dev/null; then
        echo "SKIPPED: Debian package: ${tool#*:} is not installed"
        exit 77
    fi
done
if [ ! -x "$program" ]; then
    cargo build --package linerate
fi
output=$target/deb/check
rm -rf "$output"
# Stripped once: a development build is many times what is packed, and each tool would read it anew.
mkdir -p "$output/program"
strip --output-target="$(objdump -f "$program" | sed -n 's/.*file format //p')" -o "$output/program/linerate" "$program"
# Little compression: how small it gets is the release's concern.
export LINERATE_DEB_OPTIONS='-Zxz -z0'

failed=0
fault() {
    printf '%s\n' "$*" >&2
    failed=1
}
first=$(scripts/deb.sh --binary "$output/program/linerate" --output "$output/first")
second=$(scripts/deb.sh --binary "$output/program/linerate" --output "$output/second")
cmp "$first" "$second" || fault "the same program was packed twice, into two different packages"

root=$output/root
dpkg-deb --raw-extract "$first" "$root"
expected='etc/linerate/linerate.toml
etc/logrotate.d/linerate
usr/bin/linerate
usr/lib/modules-load.d/linerate.conf
usr/lib/systemd/system-generators/linerate-before-253
usr/lib/systemd/system/linerate.service
usr/lib/systemd/system/linerate.socket
usr/lib/sysusers.d/linerate.conf
usr/share/bash-completion/completions/linerate
usr/share/doc/linerate/README.Debian
usr/share/doc/linerate/README.md.gz
usr/share/doc/linerate/changelog.Debian.gz
usr/share/doc/linerate/changelog.gz
usr/share/doc/linerate/copyright
usr/share/fish/vendor_completions.d/linerate.fish
usr/share/lintian/overrides/linerate
usr/share/man/man1/linerate.1.gz
usr/share/zsh/vendor-completions/_linerate'
diff <(echo "$expected") <(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort) ||
    fault "the package has not the files that it should have (< expected, > found)"
diff <(printf '%s\n' /etc/linerate/linerate.toml /etc/logrotate.d/linerate) <(sort "$root/DEBIAN/conffiles") ||
    fault "the configuration files are not those that dpkg keeps from being overwritten"

# Every program that the units name is in the package; a path of a self-made installation is not.
mapfile -t named < <(sed -nE 's/^Exec[A-Za-z]*=([^ ]+).*/\1/p' "$root/usr/lib/systemd/system/linerate.service" | sort --unique)
[ ${#named[@]} -gt 0 ] || fault "the unit starts nothing"
for path in "${named[@]}"; do
    [ -x "$root$path" ] || fault "the unit starts $path, which the package does not have"
done
if grep --recursive --files-with-matches /usr/local "$root/usr/lib" "$root/etc"; then
    fault "these files name /usr/local"
fi
if readelf --sections --wide "$root/usr/bin/linerate" | grep --quiet '\.symtab'; then
    fault "the program is not stripped"
fi
# Neither enabled nor started by the installation, and not restarted by an upgrade.
if grep --extended-regexp 'deb-systemd-invoke.*(start|restart)|systemctl.*(start|restart)' "$root/DEBIAN/postinst"; then
    fault "the installation starts the service"
fi
grep --quiet 'deb-systemd-invoke stop linerate.socket linerate.service' "$root/DEBIAN/prerm" || fault "removal does not stop the service"
diff <("$output/program/linerate" man) <(zcat "$root/usr/share/man/man1/linerate.1.gz") >/dev/null || fault "the manual page is not the program's"
"$output/program/linerate" check --keys >/dev/null

# The generator, with each systemd that there is to be.
for version in 252:yes 253:no 257:no; do
    mkdir -p "$output/bin" "$output/units-${version%:*}"
    printf '#!/bin/sh\necho "systemd %s (%s.38-1~deb12u1)"\n' "${version%:*}" "${version%:*}" >"$output/bin/systemctl"
    chmod 755 "$output/bin/systemctl"
    PATH="$output/bin:$PATH" "$root/usr/lib/systemd/system-generators/linerate-before-253" "$output/units-${version%:*}" - -
    made=no
    # shellcheck disable=SC2016 # systemd's variable
    if grep --quiet --no-messages --line-regexp --fixed-strings 'ExecReload=/bin/kill -HUP $MAINPID' "$output/units-${version%:*}/linerate.service.d/reload.conf"; then
        made=yes
    fi
    [ "$made" = "${version#*:}" ] || fault "systemd ${version%:*}: a reload of its own: $made"
done

# --allow-root: continuous integration has no other user.
lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$first" ||
    fault "lintian found something"
if [ "$failed" = 0 ]; then
    echo "$(basename "$first"): $(stat --format=%s "$root/usr/bin/linerate") bytes of program, lintian has nothing to say"
    rm -rf "$output"
fi
exit "$failed"
