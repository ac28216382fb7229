#!/usr/bin/env bash
# Every direct dependency of the workspace is named in docs/DEPENDENCIES.md as `name`, in the first column of a table,
# and nothing is named there that is no dependency any more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

document=docs/DEPENDENCIES.md

# cargo tree writes "1name vX.Y.Z ...", one line for each direct dependency.
direct() {
    cargo tree --workspace --target all --all-features --edges normal,build,dev --depth 1 --no-dedupe --prefix depth |
        sed -nE 's/^1([^ ]+) v[^ ]+.*/\1/p'
    # A workspace of its own, which cargo could not read without network where it was never built.
    sed -nE '/^\[dependencies\]/,/^$/s/^([a-z0-9_-]+) = .*/\1/p' fuzz/libfuzzer/Cargo.toml
}

used=$(direct | grep -v '^linerate' | sort --unique)
# shellcheck disable=SC2016 # the backquotes are those of the document
named=$(sed -nE 's/^\| `([^`]+)` .*/\1/p' "$document" | sort --unique)

status=0
while IFS= read -r name; do
    echo "$document does not say why \`$name\` is a dependency" >&2
    status=1
done < <(comm -23 <(echo "$used") <(echo "$named"))
while IFS= read -r name; do
    echo "$document names \`$name\`, which is no direct dependency" >&2
    status=1
done < <(comm -13 <(echo "$used") <(echo "$named"))
if [ "$status" = 0 ]; then echo "$(wc -l <<<"$used") direct dependencies, all in $document"; fi
exit "$status"
