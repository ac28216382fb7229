#!/usr/bin/env bash
# Runs shellcheck over the shell scripts; exits 77 where it is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts=(.ci/run scripts/*.sh guest/common.sh guest/apt.sh guest/setup guest/headers guest/nfs-tree guest/run guest/test guest/init guest/command nic/build
    deploy/deb/linerate-before-253 deploy/deb/linerate.postinst deploy/deb/linerate.prerm deploy/deb/linerate.postrm)
for script in "${scripts[@]}"; do bash -n "$script"; done
if ! command -v shellcheck >/dev/null; then
    echo "SKIPPED: shell scripts: shellcheck is not installed (only their syntax was checked)"
    exit 77
fi
shellcheck --external-sources "${scripts[@]}"
