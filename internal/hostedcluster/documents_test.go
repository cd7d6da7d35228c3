package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestDocumentsLeft(t *testing.T) {
	going := func(finalizers []string, list ...metav1.Condition) *hyperv1.HostedCluster {
		hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}}
		hc.Status.Conditions = list
		return hc
	}
	held := []string{hyperv1.HostedClusterFinalizer, hyperv1.AWSOIDCDiscoveryFinalizer}
	t.Run("When no documents were published it should wait for nothing", func(t *testing.T) {
		NewWithT(t).Expect(documentsLeft(going([]string{hyperv1.HostedClusterFinalizer})).Done()).To(BeTrue())
	})
	t.Run("When documents are there it should wait, look again, and say who removes them and what to do if nobody does", func(t *testing.T) {
		g := NewWithT(t)
		plan := documentsLeft(going(held, conditions.True(hyperv1.ValidOIDCConfiguration, "AsExpected", "fine")))
		g.Expect(plan.Done()).To(BeFalse())
		g.Expect(plan.RecheckAfter).To(Equal(documentsRecheck))
		g.Expect(plan.Waiting).To(ConsistOf(And(ContainSubstring("hcp-cloud removes them"), ContainSubstring("--oidc-storage-provider-s3-bucket-name"), ContainSubstring(hyperv1.AWSOIDCDiscoveryFinalizer))))
	})
	t.Run("When the bucket refuses it should say why", func(t *testing.T) {
		plan := documentsLeft(going(held, conditions.False(hyperv1.ValidOIDCConfiguration, "OIDCConfigurationInvalid", "bucket b: AccessDenied")))
		NewWithT(t).Expect(plan.Waiting).To(ConsistOf(ContainSubstring("bucket b: AccessDenied")))
	})
}

func TestRepeatedDuringDeletion(t *testing.T) {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	hc.Spec.Platform.Type = hyperv1.AWSPlatform
	hcp := &hyperv1.HostedControlPlane{}
	t.Run("When the control plane is gone there should be nothing to repeat", func(t *testing.T) {
		NewWithT(t).Expect(repeated(hc, nil)).To(BeEmpty())
	})
	t.Run("When nobody has looked whether AWS takes the tokens that should be said, since what was true before may not be", func(t *testing.T) {
		NewWithT(t).Expect(repeated(hc, hcp)).To(ConsistOf(And(HaveField("Type", hyperv1.ValidAWSIdentityProvider), HaveField("Status", metav1.ConditionUnknown), HaveField("ObservedGeneration", int64(7)))))
	})
	t.Run("When the control plane tells of its removal the HostedCluster should, too", func(t *testing.T) {
		hcp.Status.Conditions = []metav1.Condition{
			conditions.False(hyperv1.ValidAWSIdentityProvider, "InvalidIdentityProvider", "InvalidIdentityToken"), conditions.False(hyperv1.AWSDefaultSecurityGroupDeleted, "AWSError", "in use"),
			conditions.False(hyperv1.CloudResourcesDestroyed, "RemainingCloudResources", "loadbalancers"),
		}
		NewWithT(t).Expect(repeated(hc, hcp)).To(ConsistOf(HaveField("Message", "InvalidIdentityToken"), HaveField("Message", "in use"), HaveField("Message", "loadbalancers")))
	})
	t.Run("When the platform is another it should repeat what is left inside alone", func(t *testing.T) {
		none := hc.DeepCopy()
		none.Spec.Platform.Type = hyperv1.NonePlatform
		NewWithT(t).Expect(repeated(none, hcp)).To(ConsistOf(HaveField("Type", hyperv1.CloudResourcesDestroyed)))
	})
}
