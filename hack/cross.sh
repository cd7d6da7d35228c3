#!/usr/bin/env bash
# Type-checks the CLI for all systems that it is made for; "hypershift local" alone needs Linux.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tools"
go run ./crosscheck -dir .. -platforms "${PLATFORMS:-darwin/amd64,darwin/arm64,linux/amd64,linux/arm64,windows/amd64,windows/arm64}" ./cmd/hypershift ./cmd/kubectl-plugin
