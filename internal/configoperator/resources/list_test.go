package resources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
)

func testImages() map[string]string {
	all := map[string]string{}
	for _, tag := range images.Tags() {
		all[tag] = "10.244.0.1:5000/hypershift/" + tag + "@sha256:" + strings.Repeat("d", 64)
	}
	return all
}

// hcp is valid by default: a LoadBalancer with an IP address.
func hcp(mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	h := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	h.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	h.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.97.0.10", Port: 6443}
	for _, m := range mutate {
		m(h)
	}
	return h
}

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct {
		folder string
		all    bool // compare every object, not just those that differ between cases
		hcp    *hyperv1.HostedControlPlane
		images map[string]string
		tunnel Tunnel
		nodes  int
	}{
		"When the API is published by an address it should point the endpoints there": {
			folder: "address", all: true, hcp: hcp(),
		},
		"When the release has what runs on nodes it should make all of it": {
			folder: "workers", all: true, images: testImages(), nodes: 2,
			hcp: hcp(func(h *hyperv1.HostedControlPlane) {
				h.Spec.Networking.NetworkType = hyperv1.Other
				h.Spec.Networking.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
				h.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14", HostPrefix: 24}}
			}),
			tunnel: Tunnel{Host: "10.244.0.1", Port: 30091, CA: []byte("ca"), Cert: []byte("cert"), Key: []byte("key")},
		},
		"When the API is published by a node port it should point the endpoints to that port": {
			folder: "nodeport", hcp: hcp(func(h *hyperv1.HostedControlPlane) {
				h.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.244.0.1", Port: 30443}
			}),
		},
		"When the API is published by a name it should point the endpoints to the advertised address": {
			folder: "name", images: testImages(), hcp: hcp(func(h *hyperv1.HostedControlPlane) {
				h.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.demo.example.com", Port: 443}
			}),
		},
		"When the user chose the advertised address and port it should use them": {
			folder: "advertised", images: testImages(), hcp: hcp(func(h *hyperv1.HostedControlPlane) {
				h.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("192.0.2.7"), Port: ptr.To[int32](7443)}
			}),
		},
		"When the cluster is IPv6 it should write an IPv6 slice": {
			folder: "ipv6", hcp: hcp(func(h *hyperv1.HostedControlPlane) {
				h.Spec.Networking.ServiceNetwork[0].CIDR = "fd02::/112"
				h.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "fd00:10:97::10", Port: 6443}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := Render(Input{HCP: tc.hcp, Images: tc.images, Tunnel: tc.tunnel, Nodes: tc.nodes})
			g.Expect(err).NotTo(HaveOccurred())
			dir := filepath.Join("testdata", tc.folder)
			want := map[string]bool{}
			for _, o := range objects {
				g.Expect(o.GetLabels()).To(HaveKeyWithValue(hyperv1.ManagedLabel, "true"))
				file := strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind) + "_" + strings.ReplaceAll(o.GetName(), ":", "_") + ".yaml"
				if !tc.all && !strings.HasPrefix(file, "endpoint") && !strings.Contains(file, "kube-apiserver-proxy") {
					continue // the same in every case
				}
				g.Expect(want[file]).To(BeFalse(), "two objects have the golden file %s", file)
				want[file] = true
				got, err := yaml.Marshal(o)
				g.Expect(err).NotTo(HaveOccurred())
				compare(t, filepath.Join(dir, file), got)
			}
			entries, err := os.ReadDir(dir)
			g.Expect(err).NotTo(HaveOccurred())
			for _, e := range entries {
				g.Expect(want).To(HaveKey(e.Name()), "a golden file without an object; delete it")
			}
		})
	}
	t.Run("When the published address is unknown it should render everything else", func(t *testing.T) {
		g := NewWithT(t)
		objects, err := Render(Input{HCP: hcp(func(h *hyperv1.HostedControlPlane) { h.Status.ControlPlaneEndpoint.Host = "" })})
		g.Expect(err).To(MatchError(ContainSubstring("API server endpoints")))
		g.Expect(objects).NotTo(BeEmpty())
	})
	t.Run("When the advertised address is no address it should name the field", func(t *testing.T) {
		_, err := Render(Input{HCP: hcp(func(h *hyperv1.HostedControlPlane) {
			h.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("api.example.com")}
		})})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`spec.networking.apiServer.advertiseAddress "api.example.com"`)))
	})
}

// compare checks got against a golden file; with UPDATE=true in the environment it writes the file instead.
func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE") == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading golden file: %v (make golden writes it)", err)
	}
	NewWithT(t).Expect(string(got)).To(Equal(string(want)), "%s differs; make golden rewrites it", path)
}

func TestLeftOut(t *testing.T) {
	has := func(t *testing.T, in Input, kind, name string) bool {
		objects, err := Render(in)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, o := range objects {
			if o.GetObjectKind().GroupVersionKind().Kind == kind && o.GetName() == name {
				return true
			}
		}
		return false
	}
	in := Input{HCP: hcp(), Images: testImages()}
	t.Run("When the user brings a network it should make none", func(t *testing.T) {
		NewWithT(t).Expect(has(t, in, "DaemonSet", "kube-flannel-ds")).To(BeFalse())
	})
	t.Run("When the tunnel has no address it should make no agents", func(t *testing.T) {
		NewWithT(t).Expect(has(t, in, "DaemonSet", "konnectivity-agent")).To(BeFalse())
	})
	byName := hcp(func(h *hyperv1.HostedControlPlane) { h.Status.ControlPlaneEndpoint.Host = "api.demo.example.com" })
	t.Run("When the API is published by its address nodes should have no proxy", func(t *testing.T) {
		NewWithT(t).Expect(has(t, in, "DaemonSet", "kube-apiserver-proxy")).To(BeFalse())
	})
	t.Run("When the API is published by a name and the release has no proxy it should name both and the remedies once there are nodes", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(has(t, Input{HCP: byName}, "DaemonSet", "kube-apiserver-proxy")).To(BeFalse())
		_, err := Render(Input{HCP: byName, Nodes: 1})
		g.Expect(err).To(MatchError(SatisfyAll(ContainSubstring("published as api.demo.example.com"), ContainSubstring("set spec.release"), ContainSubstring("by an IP address"))))
	})
	t.Run("When the release has no images it should make nothing that runs", func(t *testing.T) {
		NewWithT(t).Expect(has(t, Input{HCP: hcp()}, "DaemonSet", "kube-proxy")).To(BeFalse())
	})
	t.Run("When agents have no certificate yet it should say what is missing and render the rest", func(t *testing.T) {
		g := NewWithT(t)
		objects, err := Render(Input{HCP: hcp(), Images: testImages(), Tunnel: Tunnel{Host: "10.244.0.1", Port: 1}})
		g.Expect(err).To(MatchError(ContainSubstring("Secret konnectivity-agent or ConfigMap konnectivity-ca-bundle")))
		g.Expect(objects).NotTo(BeEmpty())
	})
	t.Run("When the Service network has no tenth address it should name the field", func(t *testing.T) {
		_, err := dnsAddress(hcp(func(h *hyperv1.HostedControlPlane) { h.Spec.Networking.ServiceNetwork[0].CIDR = "172.31.0.0/30" }))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.networking.serviceNetwork")))
	})
}
