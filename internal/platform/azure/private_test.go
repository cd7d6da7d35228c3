package azure

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/privatelinks"
)

func TestPrivateLink(t *testing.T) {
	of := func(topology hyperv1.AzureTopologyType, by hyperv1.AzurePrivateType) *hyperv1.HostedCluster {
		hc := &hyperv1.HostedCluster{}
		hc.Spec.Platform.Azure = &hyperv1.AzurePlatformSpec{Topology: topology}
		if by != "" {
			hc.Spec.Platform.Azure.Private = &hyperv1.AzurePrivateSpec{Type: by}
		}
		return hc
	}
	for name, hc := range map[string]*hyperv1.HostedCluster{
		"is public": of(hyperv1.AzureTopologyPublic, ""), "says nothing of it": of("", ""), "is private by Swift": of(hyperv1.AzureTopologyPrivate, hyperv1.AzurePrivateTypeSwift),
	} {
		t.Run("When a cluster "+name+" there should be no conditions of Private Link services", func(t *testing.T) {
			g := NewWithT(t)
			set, absent := Platform{}.Conditions(cluster.Input{HostedCluster: hc})
			g.Expect(set).To(BeEmpty())
			g.Expect(absent).To(ConsistOf("AzurePrivateLinkServiceAvailable", "AzurePLSCreated", "AzureInternalLoadBalancerAvailable", "AzurePrivateEndpointAvailable", "AzurePrivateDNSAvailable"))
		})
	}
	hc := of(hyperv1.AzureTopologyPrivate, hyperv1.AzurePrivateTypePrivateLink)
	hc.Spec.Platform.Azure.AzureAuthenticationConfig = hyperv1.AzureAuthenticationConfiguration{
		AzureAuthenticationConfigType: hyperv1.AzureAuthenticationTypeWorkloadIdentities, WorkloadIdentities: &hyperv1.AzureWorkloadIdentities{ControlPlaneOperator: &hyperv1.WorkloadIdentity{ClientID: "1"}},
	}
	t.Run("When a cluster is private by a Private Link service that nobody makes it should say so, and what to do", func(t *testing.T) {
		g := NewWithT(t)
		set, absent := Platform{}.Conditions(cluster.Input{HostedCluster: hc})
		g.Expect(absent).To(BeEmpty())
		g.Expect(set).To(ContainElement(And(HaveField("Type", "AzurePrivateLinkServiceAvailable"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AzureError"),
			HaveField("Message", ContainSubstring("--private-platform Azure")))))
		g.Expect(set).To(HaveLen(5))
	})
	t.Run("When somebody makes it what is said of it should be repeated", func(t *testing.T) {
		g := NewWithT(t)
		link := &hyperv1.AzurePrivateLinkService{ObjectMeta: metav1.ObjectMeta{Name: "private-router"}}
		for _, kind := range links.Types {
			link.Status.Conditions = append(link.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		set, _ := Platform{}.Conditions(cluster.Input{HostedCluster: hc, Objects: []client.Object{link}})
		g.Expect(set).To(HaveEach(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "AzureSuccess"))))
	})
	t.Run("When something is known of the key of Secrets it should be repeated", func(t *testing.T) {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Status.Conditions = []metav1.Condition{{Type: "ValidAzureKMSConfig", Status: metav1.ConditionUnknown, Reason: "StatusUnknown", Message: "Azure KMS is not configured"}}
		set, _ := Platform{}.Conditions(cluster.Input{HostedCluster: of("", ""), HostedControlPlane: hcp})
		NewWithT(t).Expect(set).To(ConsistOf(And(HaveField("Type", "ValidAzureKMSConfig"), HaveField("Message", "Azure KMS is not configured"))))
	})
	t.Run("When the control-plane-operator has no identity it should name the field", func(t *testing.T) {
		without := hc.DeepCopy()
		without.Spec.Platform.Azure.AzureAuthenticationConfig.WorkloadIdentities.ControlPlaneOperator = nil
		set, _ := Platform{}.Conditions(cluster.Input{HostedCluster: without})
		NewWithT(t).Expect(set[0].Message).To(ContainSubstring("workloadIdentities.controlPlaneOperator is missing"))
	})
}

func TestDismantler(t *testing.T) {
	now := time.Unix(1e9, 0)
	link := &hyperv1.AzurePrivateLinkService{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{privatelinks.AzureServiceFinalizer, privatelinks.AzureEndpointFinalizer}}}
	for name, c := range map[string]struct {
		ago  time.Duration
		want []string
	}{
		"has begun":               {time.Minute, nil},
		"goes on for ten minutes": {10 * time.Minute, []string{privatelinks.AzureEndpointFinalizer}},
	} {
		t.Run("When the deletion of a link "+name+" it should wait for the control-plane-operator for a while", func(t *testing.T) {
			link.DeletionTimestamp = &metav1.Time{Time: now.Add(-c.ago)}
			NewWithT(t).Expect(Platform{}.Abandoned(nil, link, now)).To(Equal(c.want))
		})
	}
	t.Run("When a link isn't deleted nothing should be abandoned", func(t *testing.T) {
		link.DeletionTimestamp = nil
		NewWithT(t).Expect(Platform{}.Abandoned(nil, link, now)).To(BeEmpty())
	})
}
