package aws

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestTooManyTags(t *testing.T) {
	// full is a cluster with as many tags of the user's as the API takes.
	full := func() *hyperv1.HostedCluster {
		hc := sample().HostedCluster
		hc.Spec.Platform.AWS.ResourceTags = nil
		for i := range maxTags {
			hc.Spec.Platform.AWS.ResourceTags = append(hc.Spec.Platform.AWS.ResourceTags, hyperv1.AWSClusterResourceTag{AWSResourceTag: hyperv1.AWSResourceTag{Key: fmt.Sprint("tag", i), Value: "x"}})
		}
		return hc
	}
	t.Run("When 25 tags leave no place for the cluster's own it should not be added, and it should be said what to do", func(t *testing.T) {
		g, hc := NewWithT(t), full()
		g.Expect(Platform{}.Default(hc)).To(BeFalse())
		g.Expect(hc.Spec.Platform.AWS.ResourceTags).To(HaveLen(maxTags))
		g.Expect(Platform{}.Mistakes(hc)).To(ConsistOf(And(HavePrefix("spec.platform.aws.resourceTags: "), ContainSubstring(clusterTag(hc.Spec.InfraID)), HaveSuffix("take one out"))))
	})
	t.Run("When one is taken out it should get its place", func(t *testing.T) {
		g, hc := NewWithT(t), full()
		hc.Spec.Platform.AWS.ResourceTags = hc.Spec.Platform.AWS.ResourceTags[1:]
		g.Expect(Platform{}.Default(hc)).To(BeTrue())
		g.Expect(hc.Spec.Platform.AWS.ResourceTags).To(HaveLen(maxTags))
		g.Expect(Platform{}.Mistakes(hc)).To(BeEmpty(), "its own is among them")
	})
}

func TestForbiddenChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		was, wanted hyperv1.AWSEndpointAccessType
		says        string
	}{
		"When nothing is said and then Public it should be no change":        {"", hyperv1.Public, ""},
		"When a private cluster gets a public name it should be allowed":     {hyperv1.Private, hyperv1.PublicAndPrivate, ""},
		"When it loses it again it should be allowed":                        {hyperv1.PublicAndPrivate, hyperv1.Private, ""},
		"When a public cluster is to become private it should be refused":    {"", hyperv1.Private, "was Public and can't become Private"},
		"When a public cluster is to become both it should be refused":       {hyperv1.Public, hyperv1.PublicAndPrivate, "set it back to Public"},
		"When a private cluster is to become public it should be refused":    {hyperv1.Private, "", "was Private and can't become Public"},
		"When a cluster of both is to become public alone it should be, too": {hyperv1.PublicAndPrivate, hyperv1.Public, "set it back to PublicAndPrivate"},
	} {
		t.Run(name, func(t *testing.T) {
			hc, hcp := sample().HostedCluster, &hyperv1.HostedControlPlane{}
			hc.Spec.Platform.AWS.EndpointAccess = tc.wanted
			hcp.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{EndpointAccess: tc.was}
			if got := (Platform{}).ForbiddenChanges(hc, hcp); tc.says == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
			} else {
				NewWithT(t).Expect(got).To(ConsistOf(And(HavePrefix("spec.platform.aws.endpointAccess: "), ContainSubstring(tc.says))))
			}
		})
	}
}
