# Fetches Debian's packages without installing them, by an apt that is told where to keep its things. Sourced, by bash,
# after common.sh.
# shellcheck shell=bash disable=SC2154 # guest_dir is common.sh's

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The host's own mirror of Debian.
debian_mirror() {
    # shellcheck disable=SC2016 # apt's variables, not the shell's
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CREATED_BY)' |
        awk '$3 == "Packages" && $2 !~ /-(security|updates|backports)$/ { print $1; exit }'
}

# prepare_apt SUITE...: an apt of our own. It reads these suites from the host's mirror and keeps its lists and
# packages in guest_dir.
prepare_apt() {
    local mirror suite
    grep -qs '^ID=debian' /etc/os-release || skip "the kernels are Debian's, and this machine's apt is not set up for its archive"
    [ -r "$keyring" ] || skip "$keyring is missing (package debian-archive-keyring)"
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || skip "apt on this machine knows no Debian archive"
    mkdir -p "$guest_dir"/apt/{lists,cache/archives}/partial "$guest_dir/apt/packages"
    for suite in "$@"; do
        echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main"
    done >"$guest_dir/apt/sources.list"
    apt_options=(-o "Dir::Etc::SourceList=$guest_dir/apt/sources.list" -o Dir::Etc::SourceParts=-
        -o "Dir::State::Lists=$guest_dir/apt/lists" -o "Dir::Cache=$guest_dir/apt/cache"
        -o APT::Sandbox::User=root -o Acquire::Languages=none)
    # A suite that the mirror has not, or whose key the keyring has not, must not keep the others away.
    apt-get "${apt_options[@]}" update -qq || true
}

# fetch FOLDER PACKAGE...: downloads and unpacks packages.
fetch() {
    local folder=$1 package
    shift
    mkdir -p "$folder"
    rm -f "$guest_dir"/apt/packages/*.deb
    (cd "$guest_dir/apt/packages" && apt-get "${apt_options[@]}" download -qq "$@") || return
    for package in "$guest_dir"/apt/packages/*.deb; do dpkg-deb --extract "$package" "$folder" || return; done
    rm -f "$guest_dir"/apt/packages/*.deb
}
