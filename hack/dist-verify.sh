#!/bin/bash
# Makes the parts of a distribution that take minutes, from two clones in two folders and with two caches of Go's, and compares them byte by byte.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
for n in first another/folder/second; do
	git clone -q . "$dir/$n"
	(cd "$dir/$n" && GOCACHE="$dir/cache-${n##*/}" go run -trimpath ./hack/dist -out "$dir/$n/dist" -parts "${DIST_PARTS:-archives,chart,manifests,krew,sbom,checksums}")
done
diff -r "$dir/first/dist" "$dir/another/folder/second/dist"
echo "both are the same:"
cat "$dir/first/dist/SHA256SUMS"
