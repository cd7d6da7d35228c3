package azure

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cluster"
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
	t.Run("When a cluster is private by a Private Link service that nobody makes it should say so, and what to do", func(t *testing.T) {
		g := NewWithT(t)
		set, absent := Platform{}.Conditions(cluster.Input{HostedCluster: hc})
		g.Expect(absent).To(BeEmpty())
		g.Expect(set).To(ContainElement(And(HaveField("Type", "AzurePrivateLinkServiceAvailable"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AzureError"),
			HaveField("Message", ContainSubstring("spec.platform.azure.topology Public")))))
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
}
