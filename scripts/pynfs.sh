#!/usr/bin/env bash
# `make pynfs PYNFS=DIR`: pynfs' tests of servers for NFS 4.1 and 4.2, from a checkout in which `./setup.py build` was run, against
# the built server, held against the list of those that fail (tests/conformance/pynfs/expected.txt). PYTHON is a Python that has
# the library ply, and from 3.13 on xdrlib3. LINERATE names another binary. Four minutes, most of which a test waits for a lease.
# Exits 1 where the list does not hold, 77 without a checkout or without root, which makes device nodes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${PYNFS:-}" ]; then
    echo "SKIPPED: pynfs: PYNFS=DIR names a checkout of its repository (github.com/kofemann/pynfs), built by ./setup.py build"
    exit 77
fi
if [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: pynfs: its tree has device nodes, which only root makes"
    exit 77
fi
python=$(command -v "${PYTHON:-python3}")
if ! "$python" -c 'import ply'; then
    echo "SKIPPED: pynfs: $python has no library ply (PYTHON=... names another)"
    exit 77
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
LINERATE=$(scripts/built-server.sh)

# pynfs knows no other port.
address=127.77.0.1
work=$target/conformance/pynfs
rm -rf "$work"
mkdir -p "$work/root/tmp" "$work/root/tree/dir"
echo "This is the file test data." >"$work/root/tree/file"
ln -s /etc/X11 "$work/root/tree/link"
mkfifo "$work/root/tree/fifo"
mknod "$work/root/tree/block" b 1 2
mknod "$work/root/tree/char" c 1 2
# A socket's path has to be short.
(cd "$work/root/tree" && "$python" -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")')

"$LINERATE" nfs "$work/root" --listen "$address:2049" --tls off >"$work/server.log" 2>&1 &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 100); do
    if (: >"/dev/tcp/$address/2049") 2>"$work/connect.log"; then break; fi
    sleep 0.1
done

status=0
for minor in 1 2; do
    log=$work/minor-$minor.log
    (cd "$PYNFS/nfs4.1" && "$python" testserver.py "$address:/" --minorversion=$minor --hidepass all) >"$log" 2>&1 || true
    if ! grep "^Of those:" "$log" | sed "s/^/4.$minor: /"; then
        tail -n 5 "$log"
        exit 1
    fi
    awk '/ : FAILURE$/ {print $1}' "$log" | sort -u >"$work/failed-$minor"
    awk -v minor=$minor '!/^#/ && NF && index($1, minor) {for (i = 3; i <= NF; i++) print $i}' \
        tests/conformance/pynfs/expected.txt | sort -u >"$work/expected-$minor"
    if ! cmp -s "$work/failed-$minor" "$work/expected-$minor"; then
        comm -23 "$work/failed-$minor" "$work/expected-$minor" | sed "s/.*/4.$minor: & fails, and is not listed/"
        comm -13 "$work/failed-$minor" "$work/expected-$minor" | sed "s/.*/4.$minor: & passes, and is listed/"
        status=1
    fi
done
exit $status
