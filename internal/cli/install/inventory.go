package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/cli/connect"
)

// Inventory returns every object that an installation into a namespace may have made, whatever its options were, in the order in which
// they are applied. Only kinds and names mean something in it: what the objects hold depends on the options.
//
// Whether what has such a name on a given cluster is ours only Owns, OwnsPriorityClass and OwnsCRD can tell.
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

// OwnsCRD tells whether a definition that is in the management cluster came with an installation of ours. Those of our own groups did. Others may be
// somebody else's, such as Cluster API's, its providers' and the package operator's: they are ours if what they define was written by us, or together
// with the annotation that is on every definition which charts and rendered manifests hold.
func OwnsCRD(crd client.Object, group string) bool {
	if group == hypershiftGroup || strings.HasSuffix(group, "."+hypershiftGroup) {
		return true
	}
	return slices.ContainsFunc(crd.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return wrote(e, "f:spec", "f:versions") && (e.Manager == connect.FieldOwner || wrote(e, "f:metadata", "f:annotations", "f:"+installedVersion))
	})
}

// wrote tells whether a manager has a field. The versions of a definition are one field: who writes others takes it from whoever had it.
func wrote(e metav1.ManagedFieldsEntry, path ...string) bool {
	if e.FieldsV1 == nil {
		return false
	}
	var fields map[string]any
	if json.Unmarshal(e.FieldsV1.Raw, &fields) != nil {
		return false
	}
	_, found, err := unstructured.NestedFieldNoCopy(fields, path...)
	return found && err == nil
}

// Label and value of objects whose names are no proof that an installation of ours made them.
const (
	partOfLabel = "app.kubernetes.io/part-of"
	partOf      = "hypershift"
)

// Owns tells whether an object that is in the management cluster under a name of the Inventory came with an installation of ours into a namespace.
// Other products have names of it, too, such as ClusterRole external-dns and those of the package operator: such an object is ours if we applied it,
// or if it has the label that it has in charts and rendered manifests.
func Owns(live client.Object, namespace string) bool {
	return ownName(live, namespace) || live.GetLabels()[partOfLabel] == partOf || applied(live)
}

// ownName tells whether an object can be nobody else's: it is in the installation's namespace, or is that, or has our name.
func ownName(obj client.Object, namespace string) bool {
	return obj.GetNamespace() == namespace || obj.GetName() == namespace || strings.Contains(obj.GetNamespace()+"/"+obj.GetName(), "hypershift")
}

// applied tells whether this command applied an object.
func applied(live client.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == connect.FieldOwner })
}

// labelled puts the label on objects that have no name of their own.
func labelled(objs []client.Object, namespace string) []client.Object {
	for _, obj := range objs {
		if !ownName(obj, namespace) {
			labels := maps.Clone(obj.GetLabels())
			if labels == nil {
				labels = map[string]string{}
			}
			labels[partOfLabel] = partOf
			obj.SetLabels(labels)
		}
	}
	return objs
}
