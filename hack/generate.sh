#!/usr/bin/env bash
# Generates deepcopy functions and CustomResourceDefinitions from the types below api/. Running it twice changes nothing;
# hack/verify.sh relies on that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../api"

controller_gen=(go tool -modfile=../tools/go.mod controller-gen)
crd=../config/crd

# Kinds that only the set techpreview has. That set is laid over the default one, so its folder holds the difference alone.
previews=(gcpprivateserviceconnects hcpetcdbackups)

# Kinds that hosted clusters serve, not the management cluster. No set holds them.
hosted=(karpenter.hypershift.openshift.io_openshiftec2nodeclasses)

mkdir -p "$crd"/{default,techpreview,hosted}
find "$crd" -name '*.yaml' -delete
"${controller_gen[@]}" object crd paths=./... output:crd:dir="$crd/default"
for kind in "${previews[@]}"; do
	mv "$crd/default/hypershift.openshift.io_$kind.yaml" "$crd/techpreview/"
done
for file in "${hosted[@]}"; do
	mv "$crd/default/$file.yaml" "$crd/hosted/"
done
gofmt -l -w .
