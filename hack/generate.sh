#!/usr/bin/env bash
# Generates deepcopy functions and CustomResourceDefinitions from the types below api/. Running it twice changes nothing;
# hack/verify.sh relies on that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../api"

controller_gen=(go tool -modfile=../tools/go.mod controller-gen)

# The annotation with the generator's version would make every update of the tool a change of every CRD; it stays, because
# people who debug a schema want it, and the tool is pinned in tools/go.mod.
out=../config/crd/default
mkdir -p "$out"
find "$out" -name '*.yaml' -delete
"${controller_gen[@]}" object crd paths=./... output:crd:dir="$out"
gofmt -l -w .
