#!/usr/bin/env bash
# Prints the path of a Python that has the libraries of a list, tests/conformance/requirements.txt or the one that is given, in
# an environment of its own below the target folder. Exits 77 where it cannot be had (no Python 3.11, no package index), with
# the reason.
#
#   scripts/python-environment.sh [FOLDER/requirements.txt]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=${1:-tests/conformance/requirements.txt}
environment=${CARGO_TARGET_DIR:-target}/$(basename "$(dirname "$requirements")")/python
python=$environment/bin/python

# It is whole once the list that it was made by lies in it.
if ! cmp --silent "$requirements" "$environment/requirements.txt"; then
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "python3 is missing, or older than 3.11" >&2
        exit 77
    fi
    mkdir -p "$(dirname "$environment")"
    log=$environment.log
    rm -rf "$environment"
    if ! python3 -m venv "$environment" >"$log" 2>&1 ||
        ! "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
            --requirement "$requirements" >>"$log" 2>&1; then
        tail -n 5 "$log" >&2
        echo "the libraries of $requirements cannot be had; log: $log" >&2
        exit 77
    fi
    cp "$requirements" "$environment/requirements.txt"
fi
realpath --no-symlinks "$python"
