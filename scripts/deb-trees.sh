#!/usr/bin/env bash
# Installs, runs, upgrades, removes and purges the Debian package in Debian 12 and 13: trees made by debootstrap, below the
# target folder, in which systemd runs as the first process of namespaces of its own. Part of `make test-all`. Exits 77
# where that cannot be done, with the reason.
#
#   scripts/deb-trees.sh [SUITE...]      bookworm and trixie unless told otherwise
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=guest/apt.sh
. guest/apt.sh
export PATH="$PATH:/usr/sbin:/sbin"
trees=$(realpath "${CARGO_TARGET_DIR:-target}")/deb-trees

skip() {
    echo "SKIPPED: Debian package in trees: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root, for debootstrap and namespaces"
for tool in debootstrap unshare nsenter curl dh; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done

# A tree of a suite, made once. It is never written to: each test has a layer of its own above it.
tree() {
    local suite=$1 mirror
    if [ -d "$trees/$suite" ]; then return; fi
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || skip "apt on this machine knows no Debian archive"
    mkdir -p "$trees"
    rm -rf "$trees/$suite.new"
    echo "making the tree of $suite"
    debootstrap --variant=minbase --include=init,systemd,logrotate,procps "$suite" "$trees/$suite.new" "$mirror" \
        >"$trees/$suite.log" 2>&1 || skip "debootstrap $suite failed; log: $trees/$suite.log"
    mv "$trees/$suite.new" "$trees/$suite"
}

# Boots systemd in a copy-on-write layer of the tree. Sets `leader`, the systemd's process, and `root`.
boot() {
    mkdir -p "$room"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$trees/$1,upperdir=$room/upper,workdir=$room/work" "$room/root"
    root=$room/root
    cp "$first" "$second" "$root/root/"
    cat >"$room/first-process" <<'END'
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t cgroup2 none "$1/sys/fs/cgroup"
for folder in run tmp dev; do mount -t tmpfs tmpfs "$1/$folder"; done
for node in null zero full random urandom tty; do
    touch "$1/dev/$node"
    mount --bind "/dev/$node" "$1/dev/$node"
done
# systemd's PrivateDevices= asks for it.
ln -s pts/ptmx "$1/dev/ptmx"
ip link set lo up
mkdir -p "$1/host"
cd "$1"
pivot_root . host
umount -l /host
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
END
    unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup \
        bash "$room/first-process" "$root" >"$room/boot.log" 2>&1 &
    unshare=$!
    wait_until "systemd to boot" booted || { tail -n 20 "$room/boot.log" >&2; return 1; }
}

booted() {
    leader=$(ps -o pid= --ppid "$unshare" | tr -d ' ')
    [ -n "$leader" ] && [ "$(cat "/proc/$leader/comm")" = systemd ] &&
        { inside systemctl is-system-running || true; } 2>/dev/null | grep --quiet -E 'running|degraded'
}

# Runs a command in the tree.
inside() {
    nsenter --target "$leader" --mount --pid --net --uts --ipc --cgroup --root --wd \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# Runs a command of this machine in the tree's network.
beside() { nsenter --target "$leader" --net "$@"; }

# wait_until WHAT COMMAND...: a minute at most, which only a fault reaches.
wait_until() {
    local what=$1 tries
    shift
    for ((tries = 0; tries < 600; tries++)); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "$suite: waited in vain for $what" >&2
    return 1
}

# expect WHAT COMMAND...; what it prints is kept for `said`.
expect() {
    local what=$1
    shift
    if [ -e "$room/said" ]; then mv "$room/said" "$room/last"; fi
    if ! "$@" >"$room/said" 2>&1; then
        echo "$suite: not so: $what" >&2
        cat "$room/said" >&2
        inside journalctl --no-pager -u linerate -n 20 >&2 || true
        return 1
    fi
    echo "$suite: $what"
}
# What the command of the expectation before this one printed.
said() { grep --quiet -- "$1" "$room/last"; }
refuse() { ! "$@"; }

get() { beside curl --silent --show-error --insecure --max-time 60 "$@"; }
log_of_a_request() { get https://localhost/ && test -s "$root/var/log/linerate/access.log"; }
is_stopping() { inside systemctl show --property SubState --value linerate | grep --quiet '^stop-sig'; }
main_process() { inside systemctl show --property MainPID --value linerate; }
journal_says() { inside journalctl --no-pager -o cat -u linerate | grep --quiet -- "$1"; }

# begin_transfer: a client that takes the beginning of the file, and the rest once told to by `end_transfer`, which says
# whether it got the file as it is.
begin_transfer() {
    rm -f "$room/go" "$room/began"
    (get --max-time 600 https://localhost/big | {
        head --bytes 1000000 >"$room/got"
        touch "$room/began"
        while [ ! -e "$room/go" ]; do sleep 0.1; done
        cat >>"$room/got"
    }) &
    transfer=$!
    wait_until "a transfer to begin" test -e "$room/began"
}
end_transfer() {
    touch "$room/go"
    wait "$transfer" && cmp "$room/got" "$root/srv/www/big"
}

files() { (cd "$root" && find . -xdev -path ./var/cache -prune -o -path ./var/log/journal -prune -o \( -type f -o -type l \) -printf '%P\n' | sort); }

try() {
    local first_process
    boot "$suite"
    files >"$room/before"

    # Installed: nothing runs, and what is missing is told.
    expect "installs" inside apt-get install -y --no-install-recommends "/root/${first##*/}"
    expect "has its user" inside id linerate
    expect "is not started" refuse inside systemctl is-active --quiet linerate
    expect "is not enabled" refuse inside systemctl is-enabled --quiet linerate
    expect "check refuses the sample" refuse inside linerate check --config /etc/linerate/linerate.toml
    cp "$room/said" "$room/checked"
    expect "because its folders are missing" grep '/srv/www cannot be served' "$room/checked"
    expect "and not because its log cannot be written" refuse grep 'access log' "$room/checked"
    expect "logrotate takes its file" inside logrotate --debug /etc/logrotate.d/linerate

    # As an operator would set it up, with a certificate made for development. A client that waits must not be cut for it.
    mkdir -p "$root/srv/www"
    head --bytes 67108864 /dev/urandom >"$root/srv/www/big"
    echo hello >"$root/srv/www/index.html"
    cat >"$root/etc/linerate/linerate.toml" <<'END'
listen = ["*:443"]
admin = "127.0.0.1:9443"
access_log = "/var/log/linerate/access.log"
limits = { least_rate = "0B" }
timeouts = { write_progress = "10m", drain = "10m" }
[[site]]
root = "/srv/www"
END
    expect "starts" inside systemctl enable --now linerate
    expect "serves" get https://localhost/
    expect "its sandbox is as tight as it was" inside systemd-analyze security --threshold=18 --no-pager linerate.service
    tail -n 1 "$room/said"
    expect "reloads" inside systemctl reload linerate
    wait_until "the new configuration" journal_says 'linerate: reloaded$'
    expect "resolves paths by openat2 inside its sandbox" refuse journal_says 'no openat2'

    # An upgrade: the server goes on as it is, and so does what it sends.
    first_process=$(main_process)
    begin_transfer
    expect "upgrades" inside apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confdef "/root/${second##*/}"
    expect "says that the old one runs" said 'still version'
    expect "the configuration stays" grep --quiet 'write_progress = "10m"' "$root/etc/linerate/linerate.toml"
    expect "the same process runs after the upgrade" test "$(main_process)" = "$first_process"
    expect "reloads after the upgrade" inside systemctl reload linerate
    expect "a transfer goes on through an upgrade" end_transfer
    wait_until "the line of the log" grep --quiet '/big' "$root/var/log/linerate/access.log"

    # A restart: the old one drains, and only then the new one serves.
    begin_transfer
    inside systemctl --no-block restart linerate
    wait_until "the old server to drain" journal_says 'linerate: draining'
    # It says so before its workers have closed their listeners.
    wait_until "newcomers to be refused" refuse get https://localhost/
    expect "a transfer goes on through a restart" end_transfer
    wait_until "the new server" inside systemctl is-active --quiet linerate
    wait_until "the new server to serve" get https://localhost/
    expect "another process runs after a restart" test "$(main_process)" != "$first_process"

    # With the socket the newcomer waits instead.
    inside systemctl stop linerate
    sed 's/0.0.0.0:80\|\[::\]:80/&80/' "$root/usr/lib/systemd/system/linerate.socket" | grep -v ':8080' >"$room/socket"
    mkdir -p "$root/etc/systemd/system"
    cp "$room/socket" "$root/etc/systemd/system/linerate.socket"
    inside systemctl daemon-reload
    expect "starts with its socket" inside systemctl enable --now linerate.socket linerate
    begin_transfer
    inside systemctl --no-block restart linerate
    wait_until "the old server to drain" is_stopping
    get https://localhost/ >"$room/waited" &
    newcomer=$!
    expect "a transfer goes on through a restart with the socket" end_transfer
    expect "who came meanwhile is served by the new server" wait "$newcomer"
    expect "and whole" test "$(cat "$room/waited")" = hello
    inside systemctl disable --now --quiet linerate.socket linerate
    rm "$root/etc/systemd/system/linerate.socket"
    inside systemctl daemon-reload
    inside systemctl enable --now --quiet linerate

    # Logs are rotated, and the server writes to the new file.
    expect "rotates its log" inside logrotate --force /etc/logrotate.d/linerate
    # It may write to the old one until it has taken the signal.
    wait_until "a line in the new log" log_of_a_request

    # Gone: with `remove` what the operator wrote stays, with `purge` only the user does.
    expect "is removed" inside apt-get remove -y linerate
    expect "does not run" refuse get https://localhost/
    expect "its configuration stays" test -e "$root/etc/linerate/linerate.toml"
    echo key >"$root/etc/linerate/key.pem"
    expect "is purged" inside apt-get purge -y linerate
    rm -r "$root/srv/www"
    files >"$room/after"
    # dpkg and systemd keep notes of their own; the operator's key stays.
    expect "nothing is left but the operator's key" diff \
        <(comm -13 "$room/before" "$room/after" | grep -vE '^(var/lib/(dpkg|apt|systemd|logrotate)/|var/log/(apt|dpkg|alternatives|btmp|wtmp|lastlog)|etc/(passwd|group|shadow|gshadow)-|etc/\.pwd\.lock|etc/machine-id|root/)') \
        <(echo etc/linerate/key.pem)
    expect "its user stays" inside id linerate
}

# Ends what `try` began, also where it broke off: systemd's end is the end of all its processes.
clean() {
    touch "$room/go"
    if [ -n "$leader" ]; then kill -KILL "$leader" || true; fi
    wait
    umount "$room/root"
    rm -rf "$room"
}

suites=("$@")
if [ ${#suites[@]} = 0 ]; then suites=(bookworm trixie); fi
for suite in "${suites[@]}"; do tree "$suite"; done
cargo build --release --package linerate
first=$(scripts/deb.sh --output "$trees/packages")
base=${first##*/linerate_} base=${base%%_*}
second=$(scripts/deb.sh --output "$trees/packages" --version "${base%-*}-2")
for suite in "${suites[@]}"; do
    room=$(mktemp --directory "$trees/room-$suite.XXXX") leader=
    trap clean EXIT
    try "$suite"
    trap - EXIT
    clean
done
