#!/usr/bin/env bash
# Type-checks the CLI for the systems that people have on their desks; "hypershift local" alone needs Linux.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tools"
go run ./crosscheck -dir .. -platforms "${PLATFORMS:-darwin/arm64,windows/amd64}" ./cmd/hypershift
