#!/usr/bin/env bash
# Makes a small directory to serve, with something of each kind: text, a picture, a large file, names that need
# encoding, a text with its precompressed sibling. What is there already is left alone.
#
#   scripts/sample-directory.sh DIRECTORY
set -euo pipefail
sample=$1
if [ -e "$sample/README.txt" ]; then exit; fi
mkdir -p "$sample/music and films/Überraschung"

cat >"$sample/drawing.svg" <<'SVG'
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 200" role="img" aria-label="bytes on a line">
  <rect width="640" height="200" fill="#10202c"/>
  <path d="M20 100 H620" stroke="#4fc3b0" stroke-width="6" stroke-linecap="round"/>
  <g fill="#ffd166">
    <rect x="60" y="82" width="36" height="36" rx="6"/><rect x="150" y="82" width="36" height="36" rx="6"/>
    <rect x="240" y="82" width="36" height="36" rx="6"/><rect x="330" y="82" width="36" height="36" rx="6"/>
    <rect x="420" y="82" width="36" height="36" rx="6"/><rect x="510" y="82" width="36" height="36" rx="6"/>
  </g>
</svg>
SVG

# Eight megabytes that no compression shrinks, the same on every machine.
head --bytes 8388608 /dev/zero |
    openssl enc -aes-128-ctr -K 00000000000000000000000000000000 -iv 00000000000000000000000000000000 \
        -out "$sample/random-8-MiB.bin" 2>/dev/null ||
    head --bytes 8388608 /dev/urandom >"$sample/random-8-MiB.bin"

seq --format 'Line %05.0f of a text that compresses well.' 20000 >"$sample/long-text.txt"
gzip --keep --force -9 "$sample/long-text.txt"
if command -v zstd >/dev/null; then zstd --quiet --force -19 "$sample/long-text.txt"; fi
if command -v brotli >/dev/null; then brotli --force --keep "$sample/long-text.txt"; fi

echo 'A name with umlaut and spaces.' >"$sample/music and films/Überraschung/a note.txt"

# Last: its presence says that the rest is whole.
cat >"$sample/README.txt" <<'TEXT'
This directory was made by `make serve`. Your own: make serve DIR=/srv/media

To try (-k, because the certificate is for development):
  curl -k https://localhost:8443/README.txt
  curl -k -r 100-199 -o part https://localhost:8443/random-8-MiB.bin
  curl -k --compressed -v -o /dev/null https://localhost:8443/long-text.txt
TEXT
