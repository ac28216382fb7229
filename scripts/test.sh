#!/usr/bin/env bash
# `make test`: everything that must hold before a change lands. Every step runs even where one before it failed; the
# summary at the end says what ran, what was skipped and why. With LINERATE_TEST_ALL set (`make test-all`) the long tests
# run, too, for which a short one stands otherwise: hours. Exits 1 if anything failed, 3 if it could not begin. With
# CI=true a skip that scripts/allowed-skips.txt does not name is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/packages.sh build
scripts/rust.sh fmt clippy
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"
scripts/packages.sh test

logs=${CARGO_TARGET_DIR:-target}/test-logs
rm -rf "$logs"
mkdir -p "$logs"
summary=() skipped=() failures=() failed=0

# In CI a dependency that Cargo.lock does not know is a mistake; at a desk it is work in progress.
locked=()
if [ "${CI:-}" = true ]; then locked=(--locked); fi

# step NAME COMMAND...: runs it, shows and keeps its output. A command that exits 77 skipped itself and said why in a
# line `SKIPPED: name: reason`; any step may print such lines for parts of itself.
step() {
    local name=$1 log status=0 result=passed line
    shift
    log="$logs/${name// /-}.log"
    printf '\n== %s\n' "$name"
    SECONDS=0
    "$@" 2>&1 </dev/null | tee "$log" || status=${PIPESTATUS[0]}
    case $status in
    0) ;;
    77)
        result=skipped
        if ! grep --quiet --text SKIPPED "$log"; then skipped+=("$name: it gave no reason"); fi
        ;;
    *) result=FAILED failed=1 failures+=("$(told "$name" "$log")") ;;
    esac
    summary+=("$(printf '%-8s %5s s  %s%s' "$result" "$SECONDS" "$name" "$(counted "$log")")")
    # Cargo captures nothing here (--nocapture), and tests run side by side: the mark may stand behind other words.
    while IFS= read -r line; do
        skipped+=("$line")
    done < <(grep --only-matching --text --extended-regexp 'SKIPPED:? .*' "$log" | sed -E 's/^SKIPPED:? //' | sort --unique)
}

# How many tests the log of cargo test reports.
counted() {
    awk '/^test result:/ { programs++; passed += $4; failed += $6; ignored += $8 }
         END { if (programs) printf ": %d passed, %d failed, %d ignored", passed, failed, ignored }' "$1"
}

# What failed in a step: the tests by name, each with what it said when it failed; of another program its last lines.
told() {
    local tests name
    printf '== %s\n' "$1"
    mapfile -t tests < <(awk '/^failures:/ { listed = 1; next } /^test result:/ { listed = 0 }
                              listed && /^    [^ ]+$/ { print $1 }' "$2" | sort --unique)
    if [ ${#tests[@]} = 0 ]; then
        tail -n 20 "$2"
    fi
    for name in "${tests[@]}"; do
        printf '%s\n' "$name"
        grep --text --fixed-strings --after-context=3 "thread '$name'" "$2" | grep --text --invert-match 'stack backtrace' | head -n 12 || true
    done
}

cargo_test() {
    cargo test "${locked[@]}" --workspace --no-fail-fast "$@"
}

step "format" scripts/check-format.sh
step "shell scripts" scripts/check-shell.sh
step "list of allowed skips" scripts/unlisted-skips.sh --check
step "clippy" cargo clippy "${locked[@]}" --workspace --all-targets -- -D warnings
step "version" scripts/check-version.sh
step "dependencies are documented" scripts/check-dependencies.sh
step "licences, bans, sources" scripts/check-deny.sh bans licenses sources
step "advisories" scripts/check-deny.sh advisories
step "systemd units" scripts/check-units.sh
step "FreeBSD" scripts/check-freebsd.sh
step "unit tests" cargo_test --lib --bins -- --nocapture
step "documentation tests" cargo_test --doc
step "integration and interop tests" \
    cargo_test --exclude linerate-fuzz-targets --exclude linerate-guest-tests --test '*' -- --nocapture
step "Debian package" scripts/check-deb.sh
step "OCI image" scripts/check-image.sh
step "Helm chart" scripts/check-chart.sh
step "dashboard and alert rules" scripts/check-monitoring.sh
step "conversations on tlslite-ng" timeout 600 scripts/conversations.sh
if [ -n "${LINERATE_TEST_ALL:-}" ]; then guests_take_seconds=21600; else guests_take_seconds=2700; fi
step "kernel TLS, in guests" timeout "$guests_take_seconds" scripts/guest-test.sh
# The whole of it is half an hour. What differs most between machines: the record layer, the engines, the system calls.
if [ -n "${LINERATE_TEST_ALL:-}" ]; then on_arm=(); else on_arm=(--package linerate-record --package linerate-engine --package linerate-os); fi
step "64-bit ARM, in a guest" timeout 3600 scripts/test-aarch64.sh "${on_arm[@]}"
step "fuzz smoke" cargo_test --test fuzz_smoke -- --nocapture
if [ -n "${LINERATE_TEST_ALL:-}" ]; then
    step "fault programs, their long form" scripts/hostile.sh
    step "Debian package, installed in Debian 12 and 13" scripts/deb-trees.sh
fi

printf '\n== summary (logs in %s)\n' "$logs"
printf '%s\n' "${summary[@]}"
if [ ${#skipped[@]} -gt 0 ]; then
    printf '\nskipped on this machine:\n'
    printf '  %s\n' "${skipped[@]}"
    if [ "${CI:-}" = true ] && ! unlisted=$(printf '%s\n' "${skipped[@]}" | scripts/unlisted-skips.sh scripts/allowed-skips.txt); then
        failed=1 failures+=("$(printf '== skipped, and not on scripts/allowed-skips.txt\n%s' "$unlisted")")
    fi
fi
if [ "$failed" = 1 ]; then
    printf '\n%s\n' "${failures[@]}"
    printf '\nFAILED\n'
    exit 1
fi
printf '\nall that ran passed\n'
