// Package hostedclustertest has the HostedCluster that tests of rooms of package hostedcluster begin with.
package hostedclustertest

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Image is the release of Example unless a test names another.
const Image = "reg.example.com/release:1.35.4"

// Example is a HostedCluster "demo" of platform None with all that it needs; ns is also its scope.
func Example(ns, image string, mutate ...func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo", Annotations: map[string]string{hyperv1.HostedClusterScopeAnnotation: ns}}}
	hc.Spec = hyperv1.HostedClusterSpec{
		Release:    hyperv1.Release{Image: image},
		Platform:   hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
		PullSecret: corev1.LocalObjectReference{Name: "pull"},
		DNS:        hyperv1.DNSSpec{BaseDomain: "example.com"},
		Networking: hyperv1.ClusterNetworking{
			NetworkType:    hyperv1.Other,
			ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}},
			ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}},
		},
		Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
			Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage},
		}},
		IssuerURL: "https://kubernetes.default.svc",
	}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		t := hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10"}}
		if s == hyperv1.APIServer {
			t = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		}
		hc.Spec.Services = append(hc.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: t})
	}
	for _, m := range mutate {
		m(hc)
	}
	return hc
}

// Spec is that of Example, as JSON decodes it.
func Spec(t testing.TB) map[string]any {
	t.Helper()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&Example("clusters", Image).Spec)
	if err != nil {
		t.Fatal(err)
	}
	delete(spec, "dns")
	return spec
}

// Decode is Example with another spec; false: the spec can't be one.
func Decode(spec map[string]any) (*hyperv1.HostedCluster, bool) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, false
	}
	hc := Example("clusters", Image)
	hc.Spec = hyperv1.HostedClusterSpec{}
	return hc, json.Unmarshal(raw, &hc.Spec) == nil
}
