#!/bin/bash
# hack/before.sh COMMIT FOLDER: makes the images and the programs of an earlier commit there, as the version before this one.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$1 folder=$2 root=$PWD
if [ "$(cat "$folder/.made" 2>/dev/null)" = "$(git rev-parse "$commit")" ]; then exit; fi
rm -rf "$folder"
git clone -q --no-checkout . "$folder"
git -C "$folder" checkout -q "$commit"
echo 0.0.9 >"$folder/internal/version/VERSION"
mkdir -p "$folder/.cache" "$folder/bin" .cache/debian
ln -s "$root/.cache/debian" "$folder/.cache/debian"
arch=$(go env GOARCH)
cd "$folder"
CGO_ENABLED=0 go run -trimpath ./hack/dist -parts images -architectures "$arch" -releases 1.36.3
ln -s "dist/linux_$arch/hypershift" bin/hypershift
git rev-parse "$commit" >.made
