#!/usr/bin/env bash
# Draws the diagrams of the handbook that have no picture yet, with mermaid as published on npm, at a pinned version, in Chromium. Only who changes a
# diagram needs it: the pictures are in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
version=11.17.2
sum=57a2b70bc101744b0f1595d228c25eea9a50384371b87011afd1af1d7e21878ee501b84c443f6a7f8a042bb2e869143150b31af34feab798073bbdda0a578106
folder=$PWD/.cache/mermaid/$version
if [ ! -e "$folder/mermaid.min.js" ]; then
  hack/install-deps.sh chromium
  mkdir -p "$folder"
  curl -fsSL --retry 3 -o "$folder/mermaid.tgz" "${NPM_REGISTRY:-https://registry.npmjs.org}/mermaid/-/mermaid-$version.tgz"
  echo "$sum  $folder/mermaid.tgz" | sha512sum --check --quiet
  tar -xzf "$folder/mermaid.tgz" -C "$folder" --strip-components=2 package/dist/mermaid.min.js
  rm "$folder/mermaid.tgz"
fi
cd tools && go run ./site -draw "$folder/mermaid.min.js"
