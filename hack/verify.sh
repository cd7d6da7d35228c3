#!/usr/bin/env bash
# Fails when generated files are stale, when definitions refuse what those of the previous release took, or when code isn't
# formatted, tidy or vetted.
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(git status --porcelain)
hack/generate.sh
for module in . alerts api tools kubernetes capi capa conformance coredns flannel karpenter storage test/browser test/helm tools/gitops tools/typescript docs/examples/list; do
  (cd "$module" && go mod tidy)
done
(cd kubernetes && go mod tidy -modfile=v1.35.mod)
out=$(mktemp -d)
without=$(cd tools && go run ./site -out "$out/site" 2>&1)
rm -rf "$out"
if [ -n "$without" ]; then
  echo "$without" >&2
  exit 1
fi
hack/schema-compat.sh
hack/cross.sh
version=$(cat internal/version/VERSION)
for tag in $(git tag --points-at HEAD --list 'v[0-9]*'); do
  if [ "$tag" != "v$version" ]; then
    echo "this commit has the tag $tag, and internal/version/VERSION says $version" >&2
    exit 1
  fi
done
unformatted=$(gofmt -l alerts api cmd conformance config coredns flannel hack internal karpenter kubernetes storage test tools)
if [ -n "$unformatted" ]; then
  printf 'not formatted, run gofmt -w:\n%s\n' "$unformatted" >&2
  exit 1
fi
(cd api && go vet ./...)
(cd tools && go vet ./... && go test ./...)
(cd tools/typescript && go run github.com/microsoft/typescript-go/cmd/tsgo -p ../../internal/console/web)
go vet ./...
if [ "$(git status --porcelain)" != "$before" ]; then
  echo 'generated or module files are stale; commit what `make verify` changed:' >&2
  git status --short >&2
  exit 1
fi
