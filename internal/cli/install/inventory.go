package install

import (
	"cmp"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
)

// Inventory returns every object that an installation into a namespace may have made, whatever its options were, in the order in which
// they are applied. Only kinds and names mean something in it: what the objects hold depends on the options.
//
// Standard definitions of Cluster API are among it; whether they are ours on a given cluster only OwnsCRD can tell.
func Inventory(namespace string) ([]client.Object, error) {
	scheme := connect.Scheme()
	var all []client.Object
	seen := map[string]bool{}
	for _, o := range everyOption(namespace) {
		objs, err := Objects(o)
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			key, err := identify(scheme, obj)
			if err != nil {
				return nil, err
			}
			if !seen[key] {
				seen[key] = true
				all = append(all, obj)
			}
		}
	}
	// Definitions of both feature sets come before anything that is in them.
	slices.SortStableFunc(all, func(a, b client.Object) int { return cmp.Compare(rank(a), rank(b)) })
	return all, nil
}

func rank(obj client.Object) int {
	if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		return 0
	}
	return 1
}

func identify(scheme *runtime.Scheme, obj client.Object) (string, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	return gvk.GroupKind().String() + " " + obj.GetNamespace() + "/" + obj.GetName(), nil
}

// everyOption are options that together ask for everything that can be asked for.
func everyOption(namespace string) []Options {
	o := NewOptions()
	o.Namespace, o.Image = namespace, "inventory"
	o.PullSecret, o.TrustBundle, o.SignaturePolicy = []byte(`{"auths":{}}`), []byte("certificates"), []byte("rules: []")
	o.AdminRBAC, o.PackageOperator, o.Console, o.Replicas, o.SharedIngress, o.SizeTagging, o.AuditLogs = true, true, true, 2, true, true, true
	o.SharedGateway = "inventory/inventory"
	o.Monitoring = Monitoring{Platform: MonitorAll, Objects: true, SLOAlerts: true}
	o.Metrics.Secure = true
	o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.Credentials = dnsAWS, "inventory.example.com", []byte("[default]")
	o.AWS.Bucket, o.AWS.BucketAccess.Credentials = "inventory", []byte("[default]")
	o.capi = &capiChoice{Private: true, Legacy: true}
	preview := o
	preview.TechPreview = true
	return []Options{o, preview}
}

// OwnsCRD tells whether a definition that is in the management cluster came with an installation of ours. Those of standard Cluster API may be
// somebody else's: only our field owner on them makes them ours.
func OwnsCRD(crd client.Object, group string) bool {
	if !translate.InDomain(group) || translate.IsPrivate(group) {
		return true
	}
	for _, entry := range crd.GetManagedFields() {
		if entry.Manager == connect.FieldOwner {
			return true
		}
	}
	return false
}
