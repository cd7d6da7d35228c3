package shards

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func resource(group, name string) hyperv1.EtcdShardResource {
	return hyperv1.EtcdShardResource{APIGroup: ptr.To(group), Resource: name}
}

func managed(shards ...hyperv1.ManagedEtcdShard) hyperv1.EtcdSpec {
	return hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Shards: shards}}
}

func unmanaged(shards ...hyperv1.UnmanagedEtcdShard) hyperv1.EtcdSpec {
	return hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://main:2379", Shards: shards}}
}

func shardOf(name hyperv1.EtcdShardName, resources ...hyperv1.EtcdShardResource) hyperv1.ManagedEtcdShard {
	return hyperv1.ManagedEtcdShard{Name: name, Replicas: 1, Resources: resources}
}

func TestOverrides(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd hyperv1.EtcdSpec
		want []string
	}{
		"When there are no shards nothing should be overridden": {etcd: managed()},
		"When resources are of several groups each should have its own entry": {
			etcd: managed(shardOf("pods", resource("", "pods"), resource("apps", "deployments")), shardOf("leases", resource("coordination.k8s.io", "leases"))),
			want: []string{"/pods#https://etcd-client-pods.ns.svc:2379", "apps/deployments#https://etcd-client-pods.ns.svc:2379", "coordination.k8s.io/leases#https://etcd-client-leases.ns.svc:2379"},
		},
		"When events are named by either group it should be the one they are stored under": {
			etcd: managed(shardOf("events", resource("events.k8s.io", "events"), resource("", "events"))),
			want: []string{"/events#https://etcd-client-events.ns.svc:2379"},
		},
		"When etcd is the user's its shards should be his, too": {
			etcd: unmanaged(hyperv1.UnmanagedEtcdShard{Name: "events", Endpoint: "https://events.example.com:2379", Resources: []hyperv1.EtcdShardResource{resource("", "events")}}),
			want: []string{"/events#https://events.example.com:2379"},
		},
		"When etcd is the user's shards of a managed one should not count": {etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Managed: managed(shardOf("x", resource("", "pods"))).Managed}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Overrides("ns", tc.etcd)).To(ConsistOf(tc.want))
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd hyperv1.EtcdSpec
		says []string
	}{
		"When all resources are compiled into kube-apiserver it should be content": {etcd: managed(shardOf("a",
			resource("", "events"), resource("", "pods"), resource("", "endpoints"), resource("apps", "replicasets"), resource("coordination.k8s.io", "leases"),
			resource("discovery.k8s.io", "endpointslices"), resource("networking.k8s.io", "ingresses"), resource("networking.k8s.io", "ipaddresses"),
			resource("rbac.authorization.k8s.io", "clusterroles"), resource("storage.k8s.io", "csinodes"), resource("policy", "poddisruptionbudgets"),
			resource("resource.k8s.io", "resourceclaims"), resource("certificates.k8s.io", "certificatesigningrequests"), resource("batch", "jobs")))},
		"When a resource is a custom one it should say that it stays": {etcd: managed(shardOf("a", resource("", "pods"), resource("route.openshift.io", "routes"))),
			says: []string{"spec.etcd.managed.shards[0].resources[1]: routes.route.openshift.io is not a resource"}},
		"When it is the definition of custom resources it should say that it stays": {etcd: managed(shardOf("a", resource("apiextensions.k8s.io", "customresourcedefinitions"))),
			says: []string{"customresourcedefinitions.apiextensions.k8s.io is not a resource"}},
		"When it is an APIService it should say that it stays": {etcd: managed(shardOf("a", resource("apiregistration.k8s.io", "apiservices"))),
			says: []string{"apiservices.apiregistration.k8s.io is not a resource"}},
		"When a resource is misspelt it should say so":                     {etcd: managed(shardOf("a", resource("", "event"))), says: []string{"event (core group) is not a resource"}},
		"When a resource is named by a group of the past it should say so": {etcd: managed(shardOf("a", resource("extensions", "deployments"))), says: []string{"deployments.extensions is not a resource"}},
		"When two shards name events by different groups it should say so": {etcd: managed(shardOf("a", resource("", "events")), shardOf("b", resource("events.k8s.io", "events"))),
			says: []string{"spec.etcd.managed.shards[1].resources[0]: events is also in shard a"}},
		"When pods could not bear the name it should say how long it may be": {etcd: managed(shardOf(hyperv1.EtcdShardName(strings.Repeat("x", 48)), resource("", "pods"))),
			says: []string{"has 48 characters, and Kubernetes would refuse the pods of its StatefulSet: use at most 47"}},
		"When the user runs etcd the name should be free": {etcd: unmanaged(hyperv1.UnmanagedEtcdShard{Name: hyperv1.EtcdShardName(strings.Repeat("x", 48)), Endpoint: "https://a:1", Resources: []hyperv1.EtcdShardResource{resource("", "pods")}})},
		"When an endpoint would end the entry it should be refused": {etcd: unmanaged(hyperv1.UnmanagedEtcdShard{Name: "a", Endpoint: "https://a:1,/secrets#https://b:1", Resources: []hyperv1.EtcdShardResource{resource("", "pods")}}),
			says: []string{"spec.etcd.unmanaged.shards[0].endpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Mistakes(tc.etcd)
			g.Expect(got).To(HaveLen(len(tc.says)), "%q", got)
			for i, says := range tc.says {
				g.Expect(got[i]).To(ContainSubstring(says))
			}
		})
	}
}
