#!/usr/bin/env bash
# Makes the OCI image of the program that the tests built, twice, and looks at it; then podman runs it: read-only, as a user
# without any capability. What cannot be had here is skipped by name.
#
#   scripts/check-image.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
if [ "${1:-}" = --again ]; then program=$3; else program=${1:-$target/debug/linerate}; fi
if [ ! -x "$program" ]; then
    cargo build --package linerate
fi
# Python's tomllib.
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "SKIPPED: OCI image: python3 is missing, or older than 3.11"
    exit 77
fi

# As root podman runs in a mount namespace of this script's own, for two reasons: crun 1.8 gives the container's user whatever
# it has as standard input, and that would be this machine's /dev/null; and it does not run where both kinds of control groups
# are mounted.
if [ "$(id -u)" = 0 ] && [ "${1:-}" != --again ] && command -v podman >/dev/null; then
    null=$(mktemp --dry-run)
    if ! mknod --mode=666 "$null" c 1 3 || ! unshare --mount true; then
        echo "SKIPPED: OCI image, run by podman: root without namespaces and device nodes of its own"
        rm -f "$null"
        exit 77
    fi
    # shellcheck disable=SC2016 # the inner shell's
    exec unshare --mount --propagation private bash -c '
        mount --bind "$1" /dev/null || exit 1
        if [ "$(stat --file-system --format=%T /sys/fs/cgroup)" != cgroup2fs ]; then
            umount --lazy /sys/fs/cgroup
            mount -t cgroup2 none /sys/fs/cgroup
        fi
        exec "$2" --again "$1" "$3" </dev/null' _ "$null" "$0" "$program"
fi

room=$(mktemp --directory)
storage=(--root "$room/storage" --runroot "$room/run" --storage-driver vfs --cgroup-manager cgroupfs)
finish() {
    if command -v podman >/dev/null; then
        podman "${storage[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
    fi
    # Without root the image's files belong to users of podman's own.
    if [ "$(id -u)" != 0 ] && [ -d "$room/storage" ]; then podman unshare rm -rf "$room/storage"; fi
    rm -rf "$room"
    if [ "${1:-}" = --again ]; then rm -f "$2"; fi
}
trap 'finish "$@"' EXIT
fault() {
    printf '%s\n' "$*" >&2
    if [ -e "$room/said" ]; then cat "$room/said" >&2; fi
    exit 1
}

# Stripped once, and for both: what is compared is the packing.
strip -o "$room/linerate" "$program"
python3 scripts/sbom.py --program "$room/linerate" "$room/sbom.json"
read -r archive digest < <(python3 scripts/image.py --binary "$room/linerate" --output "$room/first" --sbom "$room/sbom.json")
read -r again digest_again < <(python3 scripts/image.py --binary "$room/linerate" --output "$room/second" --sbom "$room/sbom.json")
cmp "$archive" "$again" || fault "the same program was packed twice, into two different images"
[ "$digest" = "$digest_again" ] || fault "two digests: $digest, $digest_again"

# The tree holds the program, its libraries, and no program beside it.
mkdir "$room/tree"
python3 scripts/image-tree.py "$archive" "$room/tree" || fault "the image is not what it says"
if find "$room/tree" -type f -perm /111 -not -path '*/usr/bin/linerate' -not -name '*.so*' | grep .; then
    fault "there are programs beside linerate"
fi
find "$room/tree" -perm /6000 | grep . && fault "there are files that change the user"

if ! command -v podman >/dev/null; then
    echo "SKIPPED: podman: it is not installed, and the OCI image was not run"
    exit 77
fi
if ! podman "${storage[@]}" load --input "$archive" >"$room/said" 2>&1; then
    fault "podman does not load the image"
fi
# Neither limits that are raised nor control groups: a container in which this runs may have neither.
# A machine in which podman runs nothing at all says nothing about the image: the program alone is the measure.
run=(podman "${storage[@]}" run --read-only --cap-drop all --security-opt no-new-privileges --network host --cgroups disabled
    --ulimit nofile=1024:4096 --ulimit nproc=1024:4096)
image=localhost/linerate:$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
if ! "${run[@]}" --rm --entrypoint /usr/bin/linerate "$image" --version >"$room/said" 2>&1; then
    # Without podman's isolation the tree still has to be complete.
    chroot "$room/tree" /usr/bin/linerate --version || fault "the image's program does not start, not even in a chroot"
    echo "SKIPPED: OCI image, run by podman: podman runs no container here: $(tail -n 1 "$room/said")"
    exit 77
fi

# As it is meant to be run: content read-only, the state in a volume that is made for it.
mkdir "$room/content"
head --bytes 3000000 /dev/urandom >"$room/content/file"
chmod -R a+rX "$room" "$room/content"
"${run[@]}" --detach --name served --volume "$room/content:/srv:ro" \
    --health-cmd '["/usr/bin/linerate", "load", "http://127.0.0.1:9443/healthz", "--requests", "1", "--connections", "1"]' \
    "$image" serve /srv --listen 127.0.0.1:0 --admin 0 >"$room/said" 2>&1 || fault "the image does not start"
logs() { podman "${storage[@]}" logs served 2>&1; }
for ((tries = 0; tries < 300; tries++)); do
    if logs | grep --quiet '/  admin'; then break; fi
    if [ "$(podman "${storage[@]}" inspect --format '{{.State.Running}}' served)" != true ]; then break; fi
    sleep 0.1
done
logs >"$room/said"
url() { sed -nE "s|.*($1://127.0.0.1:[0-9]+/).*|\1|p" "$room/said" | head -n 1; }
https=$(url https) admin=$(url http)
[ -n "$admin" ] || fault "the image does not serve"
curl --silent --show-error --insecure --output "$room/got" "${https}file"
cmp "$room/got" "$room/content/file" || fault "the image served other bytes than the file's"

process=$(podman "${storage[@]}" inspect --format '{{.State.Pid}}' served)
# Without root podman gives the container's users other numbers outside.
if [ "$(id -u)" = 0 ]; then user=65532; else user='(?!'$(id -u)'\t)\d+'; fi
grep --quiet --perl-regexp "^Uid:\t$user\t" "/proc/$process/status" || fault "the server does not run as 65532"
grep --quiet --perl-regexp '^CapEff:\t0+$' "/proc/$process/status" || fault "the server has capabilities"
grep --quiet --perl-regexp '^\S+ \S+ \S+ \S+ / ro[ ,]' "/proc/$process/mountinfo" || fault "the root can be written to"
if podman "${storage[@]}" exec served /bin/sh -c true >"$room/said" 2>&1; then
    fault "there is a shell"
fi

# The health check's command: well while it serves, not when nothing answers.
health=(podman "${storage[@]}" exec served /usr/bin/linerate load --requests 1 --connections 1)
"${health[@]}" "${admin}healthz" >"$room/said" 2>&1 || fault "the health check fails while the server is well"
if "${health[@]}" http://127.0.0.1:9/healthz >"$room/said" 2>&1; then
    fault "the health check does not fail where nothing listens"
fi

# QUIT, which is what `podman stop` sends, drains and ends without a fault.
podman "${storage[@]}" stop --time 60 served >"$room/said" 2>&1 || fault "the container does not stop"
[ "$(podman "${storage[@]}" inspect --format '{{.State.ExitCode}}' served)" = 0 ] || fault "the server did not end well: $(logs | tail -n 3)"
logs | grep --quiet 'draining' || fault "it was not told to drain"
echo "$(basename "$archive"): $(stat --format=%s "$archive") bytes, $digest, run by podman"
