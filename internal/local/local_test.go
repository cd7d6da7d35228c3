package local

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/network"
)

func TestAddons(t *testing.T) {
	g := NewWithT(t)
	objs, err := addons("r/coredns@sha256:1")
	g.Expect(err).NotTo(HaveOccurred())
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range objs {
		u := o.(*unstructured.Unstructured)
		kinds[u.GetKind()] = u
		data, err := u.MarshalJSON()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(data)).NotTo(ContainSubstring("set-by-code"), "When %s is rendered nothing should be left to fill in", u.GetKind())
	}
	corefile, _, _ := unstructured.NestedString(kinds["ConfigMap"].Object, "data", "Corefile")
	g.Expect(corefile).To(And(ContainSubstring("bind "+network.NodeIP), ContainSubstring("forward . /etc/resolv.conf")))
	ports, _, _ := unstructured.NestedSlice(kinds["Service"].Object, "spec", "ports")
	for _, p := range ports {
		g.Expect(p.(map[string]any)["targetPort"]).To(BeNumerically("==", 1053), "the port that CoreDNS listens on: "+components.DNSPort)
	}
}

func TestFullVersion(t *testing.T) {
	for in, want := range map[string]string{"1.35": "1.35.4", "v1.36": "1.36.3", "1.36.3": "1.36.3", "v1.36.3": "1.36.3", "1.3": "1.3", "1.36.9": "1.36.9"} {
		NewWithT(t).Expect(fullVersion(in)).To(Equal(want), "When %s is asked for it should be completed only if it is a minor version", in)
	}
}

func TestReleaseTags(t *testing.T) {
	t.Run("When a release is built it should have every tag that hosted control planes ask for", func(t *testing.T) {
		g := NewWithT(t)
		tags := releaseTags("bundle", "node", "worker", Images{Platform: "ours", Sidecar: "small", CoreDNS: "dns", Pause: "pause", ClusterAPI: "capi", Flannel: "flannel", LocalStorage: "storage"})
		g.Expect(sortedKeys(tags)).To(Equal([]string{
			"apiserver-network-proxy", "apiserver-network-proxy-agent", "cluster-capi-controllers", "controlplane-operator", "coredns", "etcd", "kube-apiserver", "kube-apiserver-node-proxy", "kube-controller-manager", "kube-flannel", "kube-proxy",
			"kube-scheduler", "kubelet", "local-node", "local-storage-provisioner", "machine-config-operator", "pause",
		}))
		g.Expect([]string{tags["etcd"], tags["kubelet"], tags["kube-proxy"]}).To(Equal([]string{"bundle", "node", "node"}))
		g.Expect([]string{tags["controlplane-operator"], tags["apiserver-network-proxy-agent"], tags["machine-config-operator"], tags["local-node"]}).To(
			Equal([]string{"ours", "small", "small", "worker"}), "workers should fetch what they run and no more")
	})
}

func TestReport(t *testing.T) {
	t.Run("When nothing runs it should say how to start it", func(t *testing.T) {
		g := NewWithT(t)
		var out strings.Builder
		r := ReadReport(t.Context(), t.TempDir())
		r.Message = "start it with: hypershift local up" // another instance may run on the machine of the test
		r.Print(&out)
		g.Expect(r.State).To(Equal(StateStopped))
		g.Expect(out.String()).To(ContainSubstring("hypershift local up"))
	})
}
