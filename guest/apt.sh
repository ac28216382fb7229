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

# prepare_apt ARCHITECTURE SUITE...: an apt of our own, for packages of this architecture. It reads these suites from the host's
# mirror and keeps its lists and packages in guest_dir.
prepare_apt() {
    local architecture=$1 mirror suite
    shift
    check_archive
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || skip "apt on this machine knows no Debian archive"
    for suite in "$@"; do echo "$mirror $suite"; done | read_suites "$architecture"
    set_apt_options "$architecture"
}

# prepare_own_apt ARCHITECTURE: the same with all that this host's apt reads, security updates too.
prepare_own_apt() {
    check_archive
    # shellcheck disable=SC2016 # apt's variables, not the shell's
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CREATED_BY)' |
        awk '$3 == "Packages" && !seen[$1, $2]++ { print $1, $2 }' | read_suites "$1"
    set_apt_options "$1"
}

# Whether this is a Debian, whose apt knows where its packages are and whose keys they are signed with.
check_archive() {
    grep -qs '^ID=debian' /etc/os-release || skip "the packages are Debian's, and this machine's apt is not set up for its archive"
    [ -r "$keyring" ] || skip "$keyring is missing (package debian-archive-keyring)"
}

# read_suites ARCHITECTURE: writes the list of sources from lines of a mirror and a suite.
read_suites() {
    local mirror suite
    mkdir -p "$guest_dir"/apt/{lists,cache/archives}/partial "$guest_dir/apt/packages"
    while read -r mirror suite; do
        echo "deb [arch=$1 signed-by=$keyring] $mirror $suite main"
    done >"$guest_dir/apt/sources.list"
}

# set_apt_options ARCHITECTURE: sets apt_options, and reads the lists.
set_apt_options() {
    apt_options=(-o "Dir::Etc::SourceList=$guest_dir/apt/sources.list" -o Dir::Etc::SourceParts=-
        -o "Dir::State::Lists=$guest_dir/apt/lists" -o "Dir::Cache=$guest_dir/apt/cache"
        -o APT::Sandbox::User=root -o Acquire::Languages=none
        -o "APT::Architecture=$1" -o "APT::Architectures::=$1")
    # A suite that the mirror has not, or whose key the keyring has not, must not keep the others away.
    apt-get "${apt_options[@]}" update -qq || true
}

# fetch_tree FOLDER PACKAGE...: downloads and unpacks packages and all that they need, for chroot, with a list of them (`packages`),
# and of the symbols of their libraries where dpkg-shlibdeps looks for it. Fails where one cannot be had.
fetch_tree() {
    local folder=$1 room=$guest_dir/tree-apt package
    shift
    rm -rf "$folder" "$room"
    mkdir -p "$folder/DEBIAN" "$room/archives/partial"
    # With nothing installed apt fetches the C library and all else.
    : >"$room/status"
    apt-get "${apt_options[@]}" -o "Dir::State::status=$room/status" -o "Dir::Cache::archives=$room/archives" \
        -o APT::Install-Recommends=false -o Debug::NoLocking=true \
        install --yes --download-only -qq "$@" >"$room/log" 2>&1 || return
    for package in "$room"/archives/*.deb; do
        dpkg-deb --extract "$package" "$folder" || return
        # shellcheck disable=SC2016 # dpkg's own
        dpkg-deb --show --showformat='${Package}\t${Version}\t${Architecture}\n' "$package" >>"$folder/packages"
        dpkg-deb --info "$package" symbols >>"$folder/DEBIAN/symbols" 2>/dev/null || true
    done
    # What base-files would do.
    for package in bin sbin lib lib64; do [ -e "$folder/$package" ] || ln -s "usr/$package" "$folder/$package"; done
    rm -rf "$room"
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
