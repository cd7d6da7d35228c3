#!/usr/bin/env bash
# Generates deepcopy functions and CustomResourceDefinitions from the types below api/. Running it twice changes nothing;
# hack/verify.sh relies on that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../api"

controller_gen=(go tool -modfile=../tools/go.mod controller-gen)

# Kinds that hosted clusters serve, not the management cluster. No set holds them.
hosted=(karpenter.hypershift.openshift.io_openshiftec2nodeclasses)

# Everything is made in a folder beside, and only what differs is put in its place: others may be building meanwhile.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "$made"/{default,techpreview,hosted}
"${controller_gen[@]}" object crd:generateEmbeddedObjectMeta=true paths=./... output:crd:dir="$made/techpreview"
for file in "${hosted[@]}"; do
	mv "$made/techpreview/$file.yaml" "$made/hosted/"
done
# The package operator's kinds are installed by themselves, so they are in no set.
mkdir -p ../config/packageoperator "$made/packageoperator"
mv "$made"/techpreview/package-operator.run_*.yaml "$made/packageoperator/"
# Both sets are complete; the default one lacks what is a preview.
go -C ../tools run ./crdgate "$made"
# Cluster API's definitions come from the module that its manager is built from.
mkdir -p "$made/capi"
go -C ../capi mod download sigs.k8s.io/cluster-api
go -C ../tools run ./capicrds "$(go -C ../capi list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)/config/crd/bases" "$made/capi"
# The private twins of Cluster API's definitions, and of those of its providers that are ours.
mkdir -p "$made/capiprivate"
go -C .. run ./internal/capigroup/crdgen "$made/capiprivate" "$made"/capi/*.yaml "$made"/default/infrastructure.cluster.x-k8s.io_*.yaml
# Those of the providers whose modules can be had, and their twins. A provider's programs are none of ours, so its version is named here.
mkdir -p "$made/providers/aws" "$made/providersprivate/aws"
aws=sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0
(cd "$made" && GOFLAGS=-mod=mod go mod download "$aws")
go -C ../tools run ./capicrds -provider infrastructure-aws -contract v1beta1 \
	-kinds awsclusters,awsclustertemplates,awsmachines,awsmachinetemplates,awsmachinepools,awsclustercontrolleridentities,awsclusterroleidentities,awsclusterstaticidentities \
	"$(go env GOMODCACHE)/$aws/config/crd/bases" "$made/providers/aws"
go -C .. run ./internal/capigroup/crdgen "$made/providersprivate/aws" "$made"/providers/aws/*.yaml
# Of the others nothing is checked but that it is an object: their modules can't be had. These definitions are kept by hand. A group that is none of
# Cluster API's has no twin.
for platform in agent azure gcp ibmcloud kubevirt openstack powervs; do
	mkdir -p "$made/providersprivate/$platform"
	for file in "$PWD/../config/providers/$platform"/*.yaml; do
		case "$file" in
		*/infrastructure.*) go -C .. run ./internal/capigroup/crdgen "$made/providersprivate/$platform" "$file" ;;
		*) cp "$file" "$made/providersprivate/$platform/" ;;
		esac
	done
done
for set in capi capiprivate providers/aws providersprivate/aws providersprivate/agent providersprivate/azure providersprivate/gcp providersprivate/ibmcloud \
	providersprivate/kubevirt providersprivate/openstack providersprivate/powervs crd/default crd/techpreview crd/hosted packageoperator; do
	mkdir -p "../config/$set"
	for file in "$made/${set#crd/}"/*.yaml; do
		cmp -s "$file" "../config/$set/${file##*/}" || cp "$file" "../config/$set/"
	done
	for file in "../config/$set"/*.yaml; do
		[ -e "$made/${set#crd/}/${file##*/}" ] || rm "$file"
	done
done

gofmt -l -w .
go -C ../tools run ./apidocs ../api ../docs/reference/api.md
go -C ../tools run ./handbook
go -C .. run ./internal/support/supportdocs docs/reference/support.md
