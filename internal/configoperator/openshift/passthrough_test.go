package openshift

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// virtual is a KubeVirt cluster whose applications pass through.
func virtual(t testing.TB) Input {
	hcp := scenario(t, "plain").HCP
	hcp.Spec.InfraID = "demo-abcde"
	hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{GenerateID: "abc", BaseDomainPassthrough: ptr.To(true)}}
	in := inputFor(hcp, "kubevirt")
	in.Hosted.Objects[routerKey] = map[string]any{"spec": map[string]any{"ports": []any{
		map[string]any{"name": "http", "port": int64(80), "nodePort": int64(30080)}, map[string]any{"name": "https", "port": int64(443), "nodePort": int64(30443)}}}}
	machine := func(name string, addresses ...string) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, a := range addresses {
			m.Status.Addresses = append(m.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: a})
		}
		return m
	}
	going := machine("c", "10.0.0.3")
	going.DeletionTimestamp = ptr.To(metav1.Now())
	in.Control.Machines = []clusterv1.Machine{machine("a", "169.254.0.1", "fe80::1", "10.0.0.1", "10.0.0.9", "fd00::1"), machine("b", "127.0.0.1", "nonsense", "10.0.0.2"), going, machine("d")}
	return in
}

func TestPassthrough(t *testing.T) {
	t.Run("When applications pass through they should be led to the machines, at the port of the hosted router", func(t *testing.T) {
		g := NewWithT(t)
		actions, err := passthrough(virtual(t))
		g.Expect(err).NotTo(HaveOccurred())
		compare(t, "testdata/passthrough", map[string]string{"passthrough.yaml": rendered(t, virtual(t))["passthrough-of-applications.yaml"]})
		for _, a := range actions {
			g.Expect(a.Infra && a.Management).To(BeTrue())
			g.Expect(a.Object.GetNamespace()).To(Equal("clusters-demo"))
		}
	})
	t.Run("When machines are in another cluster its namespace should be taken, and nothing be owned", func(t *testing.T) {
		g := NewWithT(t)
		in := virtual(t)
		in.HCP.Spec.Platform.Kubevirt.Credentials = &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms"}
		in.Control.Machines = nil
		actions, err := passthrough(in)
		g.Expect(err).NotTo(HaveOccurred())
		var does []Do
		for _, a := range actions {
			does = append(does, a.Do)
			g.Expect(a.Object.GetNamespace()).To(Equal("vms"))
			g.Expect(a.Object.GetOwnerReferences()).To(BeEmpty())
		}
		g.Expect(does).To(Equal([]Do{Apply, Delete, Delete, Apply}), "no machine has an address")
		g.Expect(RemovePassthrough(in.HCP)).To(HaveLen(4))
	})
	for name, service := range map[string]map[string]any{
		"missing":           nil,
		"without a port":    {"spec": map[string]any{}},
		"of a false type":   {"spec": map[string]any{"ports": "x"}},
		"with a great port": {"spec": map[string]any{"ports": []any{map[string]any{"name": "https", "nodePort": int64(70000)}}}},
		"with a false port": {"spec": map[string]any{"ports": []any{map[string]any{"name": "https", "nodePort": "30443"}, "x", nil}}},
	} {
		t.Run("When the Service of the hosted router is "+name+" it should wait for it", func(t *testing.T) {
			g := NewWithT(t)
			in := virtual(t)
			in.Hosted.Objects[routerKey] = service
			actions, err := passthrough(in)
			g.Expect(err).To(MatchError(ContainSubstring("waiting for port https of Service openshift-ingress/router-nodeport-default")))
			g.Expect(actions).To(BeEmpty())
		})
	}
	for name, change := range map[string]func(*hyperv1.HostedControlPlane){
		"it isn't asked for": func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.Kubevirt.BaseDomainPassthrough = nil },
		"there is no ingress": func(h *hyperv1.HostedControlPlane) {
			h.Spec.Capabilities = &hyperv1.Capabilities{Disabled: []hyperv1.OptionalCapability{hyperv1.IngressCapability, hyperv1.ConsoleCapability}}
		},
		"the platform isn't KubeVirt": func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.Type = hyperv1.NonePlatform },
	} {
		t.Run("When "+name+" it should make and remove nothing", func(t *testing.T) {
			g := NewWithT(t)
			in := virtual(t)
			change(in.HCP)
			actions, err := passthrough(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(actions).To(BeEmpty())
			g.Expect(RemovePassthrough(in.HCP)).To(BeEmpty())
		})
	}
}
