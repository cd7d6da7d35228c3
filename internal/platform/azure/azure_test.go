package azure_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/azure"
)

const network = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Network/"

// example is a cluster with workload identities and nothing wrong.
func example(change func(*hyperv1.AzurePlatformSpec)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{
		VnetID: network + "virtualNetworks/n", SubnetID: network + "virtualNetworks/n/subnets/s", SecurityGroupID: network + "networkSecurityGroups/s",
	}}
	auth := &hc.Spec.Platform.Azure.AzureAuthenticationConfig
	auth.AzureAuthenticationConfigType, auth.WorkloadIdentities = hyperv1.AzureAuthenticationTypeWorkloadIdentities, &hyperv1.AzureWorkloadIdentities{}
	change(hc.Spec.Platform.Azure)
	return hc
}

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hyperv1.AzurePlatformSpec)
		want   []string
	}{
		"When nothing is wrong it should say nothing": {func(*hyperv1.AzurePlatformSpec) {}, nil},
		"When a network is no ID it should name the field, and the form": {func(a *hyperv1.AzurePlatformSpec) { a.VnetID = "n" },
			[]string{`spec.platform.azure.vnetID is "n", which is no ID of a resource: write /subscriptions/⟨id⟩/resourceGroups/⟨group⟩/providers/⟨provider⟩/⟨kind⟩/⟨name⟩`}},
		"When identities are of the other type it should ask for those of this one": {func(a *hyperv1.AzurePlatformSpec) {
			a.AzureAuthenticationConfig.AzureAuthenticationConfigType = "ManagedIdentities"
		},
			[]string{"spec.platform.azure.azureAuthenticationConfig.managedIdentities is missing, which azureAuthenticationConfigType asks for: write the identities there"}},
		"When a cluster is private and nobody says how it should ask": {func(a *hyperv1.AzurePlatformSpec) { a.Topology = hyperv1.AzureTopologyPrivate },
			[]string{"spec.platform.azure.topology is Private and private.type is missing: write PrivateLink or Swift"}},
		"When a cluster is private by a private link it should say nothing": {func(a *hyperv1.AzurePlatformSpec) {
			a.Topology, a.Private = hyperv1.AzureTopologyPrivate, &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypePrivateLink}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(azure.Platform{}.Mistakes(example(tc.change))).To(Equal(tc.want))
		})
	}
}

func TestOrphans(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	machine := func(reason string, since time.Duration) *unstructured.Unstructured {
		m := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": reason},
		}}}}
		m.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "AzureMachine"})
		m.SetNamespace("clusters-demo")
		m.SetName("m")
		at := metav1.NewTime(now.Add(-since))
		m.SetDeletionTimestamp(&at)
		m.SetFinalizers([]string{"azuremachine.infrastructure.cluster.x-k8s.io"})
		return m
	}
	managed := func(a *hyperv1.AzurePlatformSpec) {
		a.AzureAuthenticationConfig = hyperv1.AzureAuthenticationConfiguration{
			AzureAuthenticationConfigType: hyperv1.AzureAuthenticationTypeManagedIdentities, ManagedIdentities: &hyperv1.AzureResourceManagedIdentities{},
		}
	}
	for name, tc := range map[string]struct {
		machine *unstructured.Unstructured
		change  func(*hyperv1.AzurePlatformSpec)
		gone    bool
	}{
		"When a machine can't be deleted for long it should be given up":  {machine("DeletionFailed", 11*time.Minute), managed, true},
		"When it has not been tried for long it should be waited for":     {machine("DeletionFailed", 9*time.Minute), managed, false},
		"When a machine is being deleted it should be waited for":         {machine("Deleting", time.Hour), managed, false},
		"When identities are no managed ones it should never be given up": {machine("DeletionFailed", time.Hour), func(*hyperv1.AzurePlatformSpec) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(tc.machine).Build()
			p := azure.Platform{Clock: testclock.NewFakePassiveClock(now)}
			g.Expect(p.DeleteOrphanedMachines(t.Context(), c, example(tc.change), "clusters-demo")).To(Succeed())
			err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.machine), tc.machine)
			g.Expect(err != nil).To(Equal(tc.gone), "%v", err)
		})
	}
}
