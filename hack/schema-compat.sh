#!/usr/bin/env bash
# Fails when definitions refuse, or no longer keep, what those of the previous release took. With -write it makes today's
# definitions the ones to compare with; that is done when a release is made.
set -euo pipefail
cd "$(dirname "$0")/../tools"

config=../config
allowed=(-allowed schemacompat/allowed.tsv)
if [ "${1:-}" = -write ]; then
	allowed=()
	printf '# Differences to the previous release that are meant: set, kind, path, fact, and why stored objects stay usable.\n' >schemacompat/allowed.tsv
fi
go run ./schemacompat "$@" -baseline schemacompat/baseline.tsv "${allowed[@]}" default="$config/crd/default" techpreview="$config/crd/techpreview" \
	hosted="$config/crd/hosted" packageoperator="$config/packageoperator"
