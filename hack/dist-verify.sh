#!/bin/bash
# Makes a distribution twice, from two clones in two folders, and compares them byte by byte: without images unless DIST_PARTS names them. Each clone has
# a cache of Go's of its own, unless SHARED_CACHE=1 saves the time of compiling everything anew. DIST_FLAGS are those of make dist.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
root=$PWD
mkdir -p .cache/debian
for n in first another/folder/second; do
	git clone -q . "$dir/$n"
	mkdir -p "$dir/$n/.cache"
	ln -s "$root/.cache/debian" "$dir/$n/.cache/debian" # the packages of one day
	(
		cd "$dir/$n"
		[ -n "${SHARED_CACHE:-}" ] || export GOCACHE="$dir/cache-${n##*/}"
		# shellcheck disable=SC2086 # several flags
		CGO_ENABLED=0 go run -trimpath ./hack/dist -out "$dir/$n/dist" -parts "${DIST_PARTS:-archives,chart,manifests,krew,sbom,checksums}" -architectures "${DIST_ARCHS:-amd64,arm64}" ${DIST_FLAGS:-}
		rm -rf bin # which takes gigabytes
	)
done
diff -r "$dir/first/dist" "$dir/another/folder/second/dist"
echo "both are the same:"
cat "$dir/first/dist/SHA256SUMS" 2>/dev/null || (cd "$dir/first/dist" && find . -type f | wc -l)
