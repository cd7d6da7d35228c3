#!/usr/bin/env bash
# Generates deepcopy functions and CustomResourceDefinitions from the types below api/. Running it twice changes nothing;
# hack/verify.sh relies on that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../api"

controller_gen=(go tool -modfile=../tools/go.mod controller-gen)
crd=../config/crd

# Kinds that hosted clusters serve, not the management cluster. No set holds them.
hosted=(karpenter.hypershift.openshift.io_openshiftec2nodeclasses)

mkdir -p "$crd"/{default,techpreview,hosted}
find "$crd" -name '*.yaml' -delete
"${controller_gen[@]}" object crd paths=./... output:crd:dir="$crd/techpreview"
for file in "${hosted[@]}"; do
	mv "$crd/techpreview/$file.yaml" "$crd/hosted/"
done
# What is a preview stays in techpreview; that set is laid over the default one, so the rest moves there.
go -C ../tools run ./crdgate ../config/crd

# Cluster API's definitions come from the module that its manager is built from.
mkdir -p ../config/capi
find ../config/capi -name '*.yaml' -delete
go -C ../capi mod download sigs.k8s.io/cluster-api
go -C ../tools run ./capicrds "$(go -C ../capi list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)/config/crd/bases" ../config/capi

gofmt -l -w .
