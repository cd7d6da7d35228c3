#!/usr/bin/env bash
# Looks up what we link in the public database of Go vulnerabilities, with govulncheck at a pinned version. Only what our code
# really calls is reported. It needs the network: the module proxy, and vuln.go.dev (or GOVULNDB).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=v1.7.0
for module in . api; do
  (cd "$module" && go run "golang.org/x/vuln/cmd/govulncheck@$version" ./...)
done
