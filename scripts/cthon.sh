#!/usr/bin/env bash
# `make cthon CTHON=DIR`: the Connectathon tests of NFS that need no writing, from a checkout of their repository, on mounts of Linux' own
# client in guests (6.12 and 7.3; NFS 4.2, 4.1 and 3, in the clear): look-ups across a mount point, reads of a file, room and files that are
# free. The file is written beneath the server, by the test that writes it. All other tests make or change files. LINERATE names another
# binary. Exits 1 if a test fails, 77 without a checkout or a guest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
skip() {
    echo "SKIPPED: cthon: $1"
    exit 77
}
if [ -z "${CTHON:-}" ]; then skip "CTHON=DIR names a checkout of the Connectathon tests (github.com/dkruchinin/cthon-nfs-tests)"; fi
if [ ! -e "$CTHON/basic/test5b.c" ]; then
    echo "CTHON=$CTHON: there is no basic/test5b.c in it, so it is no checkout of the Connectathon tests" >&2
    exit 2
fi
command -v gcc >/dev/null || skip "no compiler for C (package gcc)"
status=0
guest/setup || status=$?
if [ "$status" = 77 ]; then skip "the guest cannot be set up (above)"; fi
[ "$status" = 0 ] || exit "$status"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
LINERATE=$(scripts/built-server.sh)

room=$target/conformance/cthon
rm -rf "$room"
mkdir -p "$room"
# As their own tests.init has it for Linux. The code is of 1989, and what a compiler of today has to say about it is left unsaid.
flags=(-O1 -w -std=gnu89 -DLINUX -DSVR4 -DMMAP -DSTDARG)
for name in test3 test5a test5b test9; do
    gcc "${flags[@]}" -o "$room/$name" "$CTHON/basic/$name.c" "$CTHON/basic/subr.c"
done
gcc "${flags[@]}" -o "$room/fstat" "$CTHON/special/fstat.c"

# shellcheck disable=SC2016 # the guest's own
in_guest='
set -e
programs=$1 linerate=$2
modprobe -a nfs nfsv3 nfsv4
folder=$TMPDIR/export
mkdir -p "$folder" /run/mnt
NFSTESTDIR=$folder/cthon "$programs/test5a"
"$linerate" nfs "$folder" --listen 127.0.0.1:2049 --tls off &
for _ in $(seq 100); do
    if (: >/dev/tcp/127.0.0.1/2049) 2>/dev/null; then break; fi
    sleep 0.2
done
failed=0
for version in 4.2 4.1 3; do
    type=nfs4 options=vers=$version,addr=127.0.0.1,clientaddr=127.0.0.1
    if [ "$version" = 3 ]; then type=nfs options=vers=3,proto=tcp,port=2049,mountproto=tcp,mountport=2049,nolock,addr=127.0.0.1; fi
    mount --internal-only --types "$type" --options "$options" 127.0.0.1:/ /run/mnt
    export NFSTESTDIR=/run/mnt/cthon
    for test in "test3 -n" test5b "test9 -n" "fstat /run/mnt"; do
        echo "-- Linux $GUEST_KERNEL, NFS $version: $test"
        if [ "$test" = test5b ]; then
            # Read, it takes the file away, which the server has to refuse.
            said=$("$programs/test5b" 2>&1) || true
            echo "$said"
            grep -q "read 1048576 byte file 10 times" <<<"$said" &&
                grep -q "unlink .bigfile. : Read-only file system" <<<"$said" &&
                [ -s "$folder/cthon/bigfile" ]
        else
            # shellcheck disable=SC2086 # a program and its flags
            "$programs"/$test
        fi || {
            echo "FAILED: Linux $GUEST_KERNEL, NFS $version: $test"
            failed=1
        }
    done
    umount /run/mnt
done
exit $failed'
for kernel in 6.12 7.3; do
    guest/run --kernel "$kernel" --timeout 600 -- bash -c "$in_guest" _ "$room" "$LINERATE" || status=1
done
exit "$status"
