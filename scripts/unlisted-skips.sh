#!/usr/bin/env bash
# unlisted-skips.sh LIST: reads what was skipped, `NAME: reason` a line, and prints the lines whose NAME the list does
# not have (scripts/allowed-skips.txt says how it is written). Exits 1 if there are any.
#
# unlisted-skips.sh --check: whether this script tells one from the other, and whether each name on the list still stands in
# the code.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

patterns() { sed -nE 's/^([^#][^:]*):.*/\1/p' "$1"; }

unlisted() {
    local patterns line pattern status=0
    mapfile -t patterns < <(patterns "$1")
    while IFS= read -r line; do
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2053 # a pattern it is
            if [[ ${line%%: *} == $pattern ]]; then continue 2; fi
        done
        printf '%s\n' "$line"
        status=1
    done
    return "$status"
}

check() {
    local list=$here/allowed-skips.txt given expected seen name status=0
    given=$(mktemp)
    # shellcheck disable=SC2064 # its name now
    trap "rm -f '$given'" EXIT
    printf '%s\n' '# no_name: x' 'one: known' 'the rest of two: known' 'three on *: known' >"$given"
    expected=$'ones: x\non: x\ntwo: x\nno_name: x\nunnamed'
    seen=$(printf '%s\n' 'one: x' 'ones: x' 'on: x' 'the rest of two: x: y' 'two: x' 'three on Linux 7: x' 'no_name: x' unnamed |
        unlisted "$given") && status=1
    if [ "$status" = 1 ] || [ "$seen" != "$expected" ]; then
        printf 'unlisted skips were to be\n%s\nand were\n%s\n' "$expected" "$seen"
        return 1
    fi
    if ! printf 'one: x\n' | unlisted "$given" || ! unlisted "$given" </dev/null; then
        echo "a skip that is listed, or none, was not taken for allowed"
        return 1
    fi
    cd "$here/.."
    while IFS= read -r name; do
        name=${name#the rest of } name=${name%\*} name=${name#\*}
        grep --recursive --quiet --fixed-strings --include='*.rs' --include='*.sh' --include=test \
            --exclude=unlisted-skips.sh -- "$name" crates tests guest scripts xtask || {
            echo "scripts/allowed-skips.txt: nothing is called \"$name\""
            status=1
        }
    done < <(patterns "$list")
    return "$status"
}

if [ "${1:-}" = --check ]; then check; else unlisted "$1"; fi
