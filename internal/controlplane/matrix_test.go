package controlplane

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/netpolicy"
)

// portsOfNobody are ports that pods listen on and that no flow leads to: the kubelet of their node asks for health, and monitoring reaches every pod by
// the published policy for it.
var portsOfNobody = sets.New("metrics", "health", "healthz", "proxy-health", "tunnel-health", "tunnel", "client")

// needs is what the manifest of a pod says of whom the pod calls, in the matrix's names.
func needs(spec *corev1.PodSpec, labels map[string]string) sets.Set[string] {
	out := sets.New[string]()
	if labels[component.NeedManagementKASAccessLabel] == "true" {
		out.Insert("management API")
	}
	for _, v := range spec.Volumes {
		var name string
		switch {
		case v.Secret != nil:
			name = v.Secret.SecretName
		case v.ConfigMap != nil:
			name = v.ConfigMap.Name
		}
		switch {
		case name == "etcd-client-tls" || strings.HasPrefix(name, "etcd-") && strings.HasSuffix(name, "-peer-tls"):
			out.Insert("etcd")
		case strings.HasSuffix(name, "kubeconfig"):
			out.Insert("kube-apiserver")
		}
	}
	return out
}

// readsKubeconfigs are components that read a kubeconfig of the hosted cluster, or a client certificate of etcd, from the management API instead of mounting it.
var readsKubeconfigs = map[string][]string{
	"control-plane-operator": {"kube-apiserver", "etcd"},
	"cluster-api":            {"kube-apiserver"},
}

// declared are components that the matrix names and that no fixture renders: others make their pods.
var declared = sets.New("etcd-recovery", capiprovider.Name)

// TestMatrix compares the matrix of flows with what the components' manifests say: a need without a flow is a component that does not work where network
// policies are enforced, a flow without a need is a door that nobody uses.
func TestMatrix(t *testing.T) {
	g := NewWithT(t)
	flows := map[string]sets.Set[string]{} // callees by caller, without the places that no manifest tells of
	ports := map[string]sets.Set[int32]{}  // by callee
	for _, f := range netpolicy.Matrix {
		g.Expect(f.Why).NotTo(BeEmpty(), "%s to %s", f.From, f.To)
		if f.To != "anywhere" && f.To != "world" && f.From != "anywhere" {
			if flows[f.From] == nil {
				flows[f.From] = sets.New[string]()
			}
			flows[f.From].Insert(f.To)
		}
		if ports[f.To] == nil {
			ports[f.To] = sets.New[int32]()
		}
		for _, port := range f.Ports {
			ports[f.To].Insert(port)
		}
	}
	seen := sets.New[string]()
	for _, mutate := range fixtures {
		ctx := workloadContext(t, hostedControlPlane(mutate), mounted()...)
		ctx.CAPIProxyImage, ctx.StoredCAPIGroups = "registry.example.com/installed@sha256:1", true
		list := allWorkloads()
		list = append(list, clusterapi.NewComponent(clusterapi.Options{Enabled: true, Image: "registry.example.com/capi:1"}))
		for _, s := range shards.Managed(ctx.HCP.Spec.Etcd) {
			list = append(list, etcd.ShardComponent(s.Name))
		}
		for _, c := range list {
			out, err := c.Render(ctx)
			g.Expect(err).NotTo(HaveOccurred(), c.Name())
			template := podTemplateOf(out.Workload)
			name := strings.TrimSpace(template.Labels[hyperv1.ControlPlaneComponentLabel])
			g.Expect(name).To(Equal(c.Name()), "the label by which policies find the pods")
			if strings.HasPrefix(name, "etcd-") {
				name = "etcd"
			}
			seen.Insert(name)
			want := needs(&template.Spec, template.Labels).Insert(readsKubeconfigs[name]...)
			g.Expect(flows[name].Difference(want).UnsortedList()).To(BeEmpty(), "flows of %s that its pods have no use for", name)
			g.Expect(want.Difference(flows[name]).UnsortedList()).To(BeEmpty(), "what %s needs and has no flow for", name)
			for _, container := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
				for _, p := range container.Ports {
					if portsOfNobody.Has(p.Name) && name != "etcd" {
						continue
					}
					if name == "etcd" && p.Name == "metrics" {
						continue
					}
					g.Expect(ports[name].Has(p.ContainerPort)).To(BeTrue(), "port %s (%d) of %s: nobody may call it", p.Name, p.ContainerPort, name)
				}
			}
		}
	}
	g.Expect(seen.Union(declared).Difference(sets.New(componentsOf(netpolicy.Matrix)...)).UnsortedList()).To(BeEmpty(), "components without a flow")
	g.Expect(sets.New(componentsOf(netpolicy.Matrix)...).Difference(seen.Union(declared)).UnsortedList()).To(BeEmpty(), "flows of components that don't exist")
}

func podTemplateOf(workload client.Object) *corev1.PodTemplateSpec {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template
	case *appsv1.StatefulSet:
		return &w.Spec.Template
	}
	return &corev1.PodTemplateSpec{}
}

func componentsOf(flows []netpolicy.Flow) (names []string) {
	for _, f := range flows {
		for _, name := range []string{f.From, f.To} {
			if name != "anywhere" && name != "world" && name != "management API" {
				names = append(names, name)
			}
		}
	}
	return names
}

// A HostedCluster from before may have labels that are refused today: they must not open the network to a pod, nor take it away from its policy.
func TestLabelsOfUsersOpenNothing(t *testing.T) {
	g := NewWithT(t)
	ctx := workloadContext(t, hostedControlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Labels = map[string]string{"app": "etcd", component.ControlPlaneComponentLabel: "etcd", component.NeedManagementKASAccessLabel: "true", "team": "blue"}
	}), mounted()...)
	for _, c := range workloads() {
		if c.Name() != "kube-scheduler" {
			continue
		}
		out, err := c.Render(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(podTemplateOf(out.Workload).Labels).To(And(HaveKeyWithValue("app", "kube-scheduler"), HaveKeyWithValue(component.ControlPlaneComponentLabel, "kube-scheduler"),
			HaveKeyWithValue("team", "blue"), Not(HaveKey(component.NeedManagementKASAccessLabel))))
	}
}
