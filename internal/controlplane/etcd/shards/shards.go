// Package shards says which resources of a hosted cluster are kept in an etcd of their own: what kube-apiserver is told of that, and
// which wishes it would not heed.
//
// kube-apiserver takes the server of a resource from --etcd-servers-overrides when it opens the resource's storage. It knows this only
// for resources that are compiled in, and under the one group that it stores a resource as; everything else it takes for a resource
// that is never opened, and says nothing. What it would ignore is therefore refused before anything is made, because shards can't
// change later.
package shards

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// maxName is how long the name of a managed shard may be. Pods of StatefulSet etcd-<name> bear the label
// controller-revision-hash=etcd-<name>-<up to 10 digits>, which may have 63 characters.
const maxName = 63 - len("etcd-") - len("-1234567890")

// ClientService is the name of the Service of a managed shard.
func ClientService(shard hyperv1.EtcdShardName) string { return "etcd-client-" + string(shard) }

// DiscoveryService is the name of the headless Service of a managed shard.
func DiscoveryService(shard hyperv1.EtcdShardName) string { return "etcd-discovery-" + string(shard) }

// Component is the name of a managed shard's component, StatefulSet and pods.
func Component(shard hyperv1.EtcdShardName) string { return component.EtcdShard(string(shard)) }

// Managed are the shards that the control-plane-operator runs.
func Managed(etcd hyperv1.EtcdSpec) []hyperv1.ManagedEtcdShard {
	if etcd.ManagementType != hyperv1.Managed || etcd.Managed == nil {
		return nil
	}
	return etcd.Managed.Shards
}

// shard is one of either kind.
type shard struct {
	field     string
	name      hyperv1.EtcdShardName
	managed   bool
	endpoint  string // of an unmanaged one
	resources []hyperv1.EtcdShardResource
}

func all(etcd hyperv1.EtcdSpec) []shard {
	var list []shard
	for i, s := range Managed(etcd) {
		list = append(list, shard{field: fmt.Sprintf("spec.etcd.managed.shards[%d]", i), name: s.Name, managed: true, resources: s.Resources})
	}
	if etcd.ManagementType == hyperv1.Unmanaged && etcd.Unmanaged != nil {
		for i, s := range etcd.Unmanaged.Shards {
			list = append(list, shard{field: fmt.Sprintf("spec.etcd.unmanaged.shards[%d]", i), name: s.Name, endpoint: s.Endpoint, resources: s.Resources})
		}
	}
	return list
}

func (s shard) url(namespace string) string {
	if !s.managed {
		return s.endpoint
	}
	return "https://" + net.JoinHostPort(ClientService(s.name)+"."+namespace+".svc", "2379")
}

// Overrides are the values of --etcd-servers-overrides, sorted: "group/resource#server", without a group for the core group.
func Overrides(namespace string, etcd hyperv1.EtcdSpec) []string {
	overrides := sets.New[string]()
	for _, s := range all(etcd) {
		for _, r := range s.resources {
			stored := storedAs(r)
			overrides.Insert(stored.Group + "/" + stored.Resource + "#" + s.url(namespace))
		}
	}
	return sets.List(overrides)
}

// storedAs is the group that kube-apiserver keeps a resource under. Events are served under two groups and are the same objects.
func storedAs(r hyperv1.EtcdShardResource) schema.GroupResource {
	gr := schema.GroupResource{Resource: r.Resource}
	if r.APIGroup != nil {
		gr.Group = *r.APIGroup
	}
	if gr.Group == "events.k8s.io" && gr.Resource == "events" {
		gr.Group = ""
	}
	return gr
}

// Mistakes are the wishes that can't be met, each with its field and a remedy.
func Mistakes(etcd hyperv1.EtcdSpec) []string {
	var mistakes []string
	owners := map[schema.GroupResource]shard{}
	for _, s := range all(etcd) {
		if n := len(s.name); s.managed && n > maxName {
			mistakes = append(mistakes, fmt.Sprintf("%s.name: %s has %d characters, and Kubernetes would refuse the pods of its StatefulSet: use at most %d", s.field, s.name, n, maxName))
		}
		if strings.ContainsAny(s.endpoint, `,;#"`) {
			mistakes = append(mistakes, fmt.Sprintf(`%s.endpoint: it holds one of the characters , ; # ", which separate endpoints in kube-apiserver's configuration: leave them out`, s.field))
		}
		for i, r := range s.resources {
			gr := storedAs(r)
			if !compiledIn().Has(gr) {
				mistakes = append(mistakes, fmt.Sprintf("%s.resources[%d]: %s is not a resource that kube-apiserver can keep in a separate etcd under this name; custom resources and CustomResourceDefinitions are always in the main etcd: remove it",
					s.field, i, display(gr)))
			}
			if owner, taken := owners[gr]; taken && owner.name != s.name { // the API server compares only what is written
				mistakes = append(mistakes, fmt.Sprintf("%s.resources[%d]: %s is also in shard %s, where kube-apiserver keeps it under %s: remove it from one of the two", s.field, i, r.Resource, owner.name, display(gr)))
			}
			owners[gr] = s
		}
	}
	return mistakes
}

// display is "events (core group)" or "leases.coordination.k8s.io".
func display(gr schema.GroupResource) string {
	if gr.Group == "" {
		return gr.Resource + " (core group)"
	}
	return gr.String()
}

// others are groups that client libraries know and that kube-apiserver has moved since: what is served there is stored elsewhere.
var others = sets.New("extensions", "events.k8s.io", "imagepolicy.k8s.io", "authentication.k8s.io", "authorization.k8s.io")

// compiledIn are the resources of Kubernetes, as far as the client library of this build knows. Some of its kinds are no resources;
// to allow them is harmless.
var compiledIn = sync.OnceValue(func() sets.Set[schema.GroupResource] {
	types := runtime.NewScheme() // not the library's own, which programs add their kinds to
	if err := scheme.AddToScheme(types); err != nil {
		panic(err) // a broken build
	}
	known := sets.New[schema.GroupResource]()
	for gvk := range types.AllKnownTypes() {
		if others.Has(gvk.Group) || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		known.Insert(plural.GroupResource())
	}
	return known
})

// ByName finds a managed shard.
func ByName(etcd hyperv1.EtcdSpec, component string) (hyperv1.ManagedEtcdShard, bool) {
	list := Managed(etcd)
	i := slices.IndexFunc(list, func(s hyperv1.ManagedEtcdShard) bool { return Component(s.Name) == component })
	if i < 0 {
		return hyperv1.ManagedEtcdShard{}, false
	}
	return list[i], true
}

// Names of the managed shards, sorted.
func Names(etcd hyperv1.EtcdSpec) []string {
	var names []string
	for _, s := range Managed(etcd) {
		names = append(names, string(s.Name))
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// Schedule puts members on the nodes that own asks for, which is a shard's; one that says nothing goes where the main etcd goes.
func Schedule(etcd hyperv1.EtcdSpec, own *hyperv1.EtcdScheduling, pod *corev1.PodSpec) {
	wish := own
	if wish == nil && etcd.Managed != nil {
		wish = etcd.Managed.Scheduling
	}
	if wish == nil {
		return
	}
	pod.NodeSelector = maps.Clone(wish.NodeSelector)
	pod.Tolerations = slices.Clone(wish.Tolerations)
}
