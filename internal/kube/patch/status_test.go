package patch_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

func hostedControlPlane(t *testing.T, c client.Client, ns string) *hyperv1.HostedControlPlane {
	t.Helper()
	strategy := hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "hcp-"}}
	hcp.Spec.ReleaseImage, hcp.Spec.InfraID, hcp.Spec.IssuerURL = "registry.example.com/release:1", "demo", "https://kubernetes.default.svc"
	hcp.Spec.Platform.Type, hcp.Spec.PullSecret.Name = hyperv1.NonePlatform, "pull-secret"
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
		Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: strategy})
	}
	NewWithT(t).Expect(c.Create(t.Context(), hcp)).To(Succeed())
	return hcp
}

//nolint:staticcheck // because old readers read the fields that are deprecated
func TestStatus(t *testing.T) {
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	if err := hyperv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := env.Client(t, scheme)
	ns := env.Namespace(t)
	version := &hyperv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: "1.36.3", Image: "registry.example.com/release:1"},
		History: []configv1.UpdateHistory{{State: configv1.PartialUpdate, StartedTime: metav1.NewTime(time.Unix(1, 0)), Image: "registry.example.com/release:1"}},
	}

	t.Run("When a field is required and null it should be written", func(t *testing.T) {
		g := NewWithT(t)
		hcp := hostedControlPlane(t, c, ns)
		for range 2 { // once onto no status at all, once onto a status
			before := hcp.DeepCopy()
			hcp.Status.Ready = !hcp.Status.Ready
			hcp.Status.VersionStatus = version
			g.Expect(patch.Status(t.Context(), c, before, hcp)).To(Succeed())
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), live)).To(Succeed())
		history, _, err := unstructured.NestedSlice(live.Object, "status", "versionStatus", "history")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(history[0]).To(HaveKeyWithValue("completionTime", BeNil()))
	})
	t.Run("When a field is no longer there it should be removed and the others stay", func(t *testing.T) {
		g := NewWithT(t)
		hcp := hostedControlPlane(t, c, ns)
		before := hcp.DeepCopy()
		hcp.Status.VersionStatus, hcp.Status.Version = version, "1.36.3"
		g.Expect(patch.Status(t.Context(), c, before, hcp)).To(Succeed())
		before = hcp.DeepCopy()
		hcp.Status.VersionStatus = nil
		g.Expect(patch.Status(t.Context(), c, before, hcp)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
		g.Expect(hcp.Status.VersionStatus).To(BeNil())
		g.Expect(hcp.Status.Version).To(Equal("1.36.3"))
	})
	t.Run("When somebody wrote since the read it should conflict", func(t *testing.T) {
		g := NewWithT(t)
		hcp := hostedControlPlane(t, c, ns)
		stale := hcp.DeepCopy()
		before := hcp.DeepCopy()
		hcp.Status.Version = "1"
		g.Expect(patch.Status(t.Context(), c, before, hcp)).To(Succeed())
		before = stale.DeepCopy()
		stale.Status.Version = "2"
		g.Expect(apierrors.IsConflict(patch.Status(t.Context(), c, before, stale))).To(BeTrue())
	})
	t.Run("When nothing differs it should send nothing", func(t *testing.T) {
		g := NewWithT(t)
		hcp := hostedControlPlane(t, c, ns)
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		g.Expect(patch.Status(t.Context(), counting, hcp, hcp.DeepCopy())).To(Succeed())
		g.Expect(counting.Writes()).To(BeZero())
	})
}
