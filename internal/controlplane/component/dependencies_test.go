package component

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestDependenciesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		component string
		declared  []string
		etcd      hyperv1.EtcdManagementType
		shards    []hyperv1.ManagedEtcdShard
		want      []string
	}{
		"When etcd has shards who waits for it should wait for them, too":      {component: "kube-apiserver", declared: []string{"etcd"}, shards: []hyperv1.ManagedEtcdShard{{Name: "events"}}, want: []string{"etcd", "etcd-events"}},
		"When etcd has shards who does not name it should not wait for them":   {component: "kube-scheduler", shards: []hyperv1.ManagedEtcdShard{{Name: "events"}}, want: []string{"kube-apiserver"}},
		"When an etcd that is not ours once had shards nobody should wait":     {component: "kube-apiserver", declared: []string{"etcd"}, etcd: hyperv1.Unmanaged, shards: []hyperv1.ManagedEtcdShard{{Name: "events"}}},
		"When a component names nothing it should wait for kube-apiserver":     {component: "kube-scheduler", want: []string{"kube-apiserver"}},
		"When a component names others it should wait for kube-apiserver, too": {component: "openshift-apiserver", declared: []string{"oauth", "featuregate"}, want: []string{"featuregate", "kube-apiserver", "oauth"}},
		"When kube-apiserver is named, too, it should count once":              {component: "x", declared: []string{"kube-apiserver", "etcd", "etcd"}, want: []string{"etcd", "kube-apiserver"}},
		"When it is kube-apiserver itself it should not wait for itself":       {component: "kube-apiserver", declared: []string{"etcd"}, want: []string{"etcd"}},
		"When it is etcd it should wait for nothing":                           {component: "etcd"},
		"When it is a shard of etcd it should wait for nothing":                {component: "etcd-events"},
		"When a name only begins like etcd it should wait for kube-apiserver":  {component: "etcdctl", want: []string{"kube-apiserver"}},
		"When it is the control-plane-operator it should wait for nothing":     {component: "control-plane-operator"},
		"When it is the router it should wait only for what it names":          {component: "router", declared: []string{"ignition-server"}, want: []string{"ignition-server"}},
		"When it is the PKI operator it should wait for kube-apiserver":        {component: "control-plane-pki-operator", want: []string{"kube-apiserver"}},
		"When somebody else manages etcd it should not wait for it":            {component: "kube-apiserver", declared: []string{"etcd"}, etcd: hyperv1.Unmanaged},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Etcd.ManagementType = hyperv1.Managed
			hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Shards: tc.shards}
			if tc.etcd != "" {
				hcp.Spec.Etcd.ManagementType = tc.etcd
			}
			NewWithT(t).Expect(dependenciesOf(tc.component, tc.declared, hcp)).To(ConsistOf(tc.want))
		})
	}
}

func TestMissingDependencies(t *testing.T) {
	cpc := func(available, complete metav1.ConditionStatus, version string) []hyperv1.ControlPlaneComponent {
		c := hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}}
		c.Status.Version = version
		c.Status.Conditions = []metav1.Condition{{Type: Available, Status: available}, {Type: RolloutComplete, Status: complete}}
		return []hyperv1.ControlPlaneComponent{c}
	}
	for name, tc := range map[string]struct {
		components []hyperv1.ControlPlaneComponent
		missing    bool
	}{
		"When it does not exist it should be missing":                    {missing: true},
		"When it is complete at the version it should be there":          {components: cpc("True", "True", "1.36.3")},
		"When it is complete at the version before it should be missing": {components: cpc("True", "True", "1.35.7"), missing: true},
		"When it is still rolling out it should be missing":              {components: cpc("True", "False", "1.36.3"), missing: true},
		"When it does not serve it should be missing":                    {components: cpc("False", "True", "1.36.3"), missing: true},
		"When its state is unknown it should be missing":                 {components: cpc("Unknown", "True", "1.36.3"), missing: true},
		"When it has no version it should be missing":                    {components: cpc("True", "True", ""), missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := missingDependencies([]string{"kube-apiserver"}, tc.components, "1.36.3")
			if tc.missing {
				g.Expect(got).To(Equal([]string{"kube-apiserver"}))
			} else {
				g.Expect(got).To(BeEmpty())
			}
		})
	}
}
