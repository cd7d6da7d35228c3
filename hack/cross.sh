#!/usr/bin/env bash
# Compiles the CLI for the systems that people have on their desks, without linking it. Each takes two minutes at first, then seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for platform in ${PLATFORMS:-darwin/arm64}; do
  echo "compiling hypershift for $platform" >&2
  GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 go build -trimpath -o /dev/null ./cmd/hypershift
done
