package bare

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
)

// Namespace is the control plane namespace of the fixtures.
const Namespace = "clusters-demo"

// Scheme has the kinds that rendering reads.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, hyperv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// Release is the bundled Kubernetes release.
func Release() *release.Release {
	r := &release.Release{
		Image: "10.244.0.1:5000/hypershift/release:1.36.3", Version: "1.36.3", KubernetesVersion: "1.36.3", Kubernetes: true,
		Images: map[string]string{},
	}
	for _, tag := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "pause"} {
		r.Images[tag] = "10.244.0.1:5000/hypershift/kubernetes@sha256:" + strings.Repeat("a", 64)
	}
	for _, tag := range []string{"kube-proxy", "coredns", "kube-flannel"} {
		r.Images[tag] = "10.244.0.1:5000/hypershift/" + tag + "@sha256:" + strings.Repeat("d", 64)
	}
	for _, tag := range []string{"apiserver-network-proxy", "apiserver-network-proxy-agent"} {
		r.Images[tag] = "10.244.0.1:5000/hypershift/hypershift@sha256:" + strings.Repeat("b", 64)
	}
	r.Images["controlplane-operator"] = "10.244.0.1:5000/hypershift/hypershift@sha256:" + strings.Repeat("b", 64)
	return r
}

// HostedControlPlane is a single-replica control plane on platform Local, published by a LoadBalancer.
func HostedControlPlane(mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: "demo", UID: "11111111-2222-3333-4444-555555555555", Generation: 3,
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"},
		},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: "10.244.0.1:5000/hypershift/release:1.36.3",
			InfraID:      "demo-x7k2p",
			IssuerURL:    "https://kubernetes.default.svc",
			Platform:     hyperv1.PlatformSpec{Type: hyperv1.LocalPlatform},
			Networking: hyperv1.ClusterNetworking{
				ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14", HostPrefix: 23}},
				ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}},
			},
			Services: []hyperv1.ServicePublishingStrategyMapping{{
				Service: hyperv1.Konnectivity,
				ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
					Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.244.0.1"},
				},
			}},
			ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
				Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage},
			}},
		},
	}
	for _, m := range mutate {
		m(hcp)
	}
	return hcp
}

// Context is what components render from, on a management cluster of one node that holds objs.
func Context(t testing.TB, hcp *hyperv1.HostedControlPlane, objs ...client.Object) component.WorkloadContext {
	t.Helper()
	return ContextOn(t, hcp, Reader(t, objs...))
}

// Reader reads objs. It takes long to make: tests that render a thousand times from the same objects make one.
func Reader(t testing.TB, objs ...client.Object) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(Scheme(t)).WithObjects(objs...).Build()
}

// ContextOn is Context with what the management cluster holds in reader.
func ContextOn(t testing.TB, hcp *hyperv1.HostedControlPlane, reader client.Reader) component.WorkloadContext {
	t.Helper()
	infra := endpoints.Status{APIHost: "10.97.0.1", APIPort: 6443, AdvertiseAddress: "10.97.0.1", AdvertisePort: 6443}
	if endpoints.StrategyFor(hcp, hyperv1.Konnectivity) != nil {
		infra.KonnectivityHost, infra.KonnectivityPort = "10.244.0.1", 30091
	}
	return component.WorkloadContext{
		Context: t.Context(), Reader: reader, HCP: hcp, Release: Release(), UserRelease: Release(),
		Infra:         infra,
		Management:    component.Management{Nodes: 1, SetDefaultSecurityContext: true, DefaultSecurityContextUID: 10042, NativeSidecars: true},
		OperatorImage: "10.244.0.1:5000/hypershift/hypershift@sha256:" + strings.Repeat("c", 64),
	}
}

// Credentials are what the PKI makes for the control plane, and for shards of its etcd.
func Credentials(t testing.TB, etcdShards ...string) []client.Object {
	t.Helper()
	spec := pki.Spec{
		Namespace: Namespace, Name: "demo", InfraID: "demo-x7k2p", APIHost: "10.97.0.1", APIPort: 6443,
		AdvertiseAddress: "10.97.0.1", InternalAPIPort: 6443, PodAPIPort: 6443, ServiceCIDRs: []string{"172.31.0.0/16"},
		EtcdShards: etcdShards,
	}
	plan := pki.PlanFor(spec, pki.Observed{}, pki.Source{Now: time.Now(), Keys: pki.NewKey, Rand: rand.Reader})
	if len(plan.Problems) > 0 {
		t.Fatal(plan.Problems)
	}
	var objs []client.Object
	for _, wave := range [][]pki.Write{plan.Authorities, plan.Leaves, plan.Copies} {
		for _, w := range wave {
			if w.Secret != nil {
				objs = append(objs, w.Secret)
			} else {
				objs = append(objs, w.ConfigMap)
			}
		}
	}
	return objs
}

// EncryptionKey is a Secret with a key for Secrets in etcd, which repeats letter.
func EncryptionKey(name, letter string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Data:       map[string][]byte{hyperv1.AESCBCKeySecretKey: []byte(strings.Repeat(letter, 32))},
	}
}

// Render returns the pods of the components by name, and the other objects.
func Render(t testing.TB, ctx component.WorkloadContext, components []component.Component) (map[string]*corev1.PodSpec, []client.Object) {
	t.Helper()
	pods := map[string]*corev1.PodSpec{}
	var others []client.Object
	for _, c := range components {
		w, ok := c.(*component.WorkloadComponent)
		if !ok {
			continue
		}
		out, err := w.Render(ctx)
		if err != nil {
			t.Fatalf("rendering %s: %v", c.Name(), err)
		}
		others = append(others, out.Manifests...)
		switch o := out.Workload.(type) {
		case *appsv1.Deployment:
			pods[o.Name] = &o.Spec.Template.Spec
		case *appsv1.StatefulSet:
			pods[o.Name] = &o.Spec.Template.Spec
		}
	}
	return pods, others
}
