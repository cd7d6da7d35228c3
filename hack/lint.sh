#!/usr/bin/env bash
# Runs golangci-lint at the version that the repository pins, with its configuration. The program is built once per version
# (five minutes on two cores) and kept in bin/tools. It is not in tools/go.mod: its 200 modules would bend those of the other tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=v2.15.0
tool=bin/tools/golangci-lint-$version
if [ ! -x "$tool" ]; then
  mkdir -p bin/tools
  echo "building golangci-lint $version" >&2
  GOBIN="$PWD/bin/tools/build" go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
  mv bin/tools/build/golangci-lint "$tool"
  rmdir bin/tools/build
fi
for module in . api tools; do
  (cd "$module" && "$OLDPWD/$tool" run --config "$OLDPWD/.golangci.yml" "$@")
done
