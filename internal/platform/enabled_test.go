package platform_test

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
)

func TestEnabled(t *testing.T) {
	for name, tc := range map[string]struct {
		list     string
		platform hyperv1.PlatformType
		refusal  string // empty: taken
	}{
		"When nothing was named None should be taken":                             {platform: hyperv1.NonePlatform},
		"When nothing was named Local should be refused":                          {platform: hyperv1.LocalPlatform, refusal: `"Local" is not switched on in this installation: set spec.platform.type to one of AWS, Agent, Azure, GCP, IBMCloud, KubeVirt, None, OpenStack, PowerVS, or have an administrator name it in "hypershift install --limit-crd-install"; whoever may make machines of platform Local is root`},
		"When Local was named it should be taken":                                 {list: " AWS, Local", platform: hyperv1.LocalPlatform},
		"When others were named Local should be refused":                          {list: "AWS,Azure", platform: hyperv1.LocalPlatform, refusal: "not switched on"},
		"When Azure was named KubeVirt should be refused":                         {list: "Azure", platform: hyperv1.KubevirtPlatform, refusal: `"KubeVirt" is not switched on in this installation: set spec.platform.type to one of Azure, None`},
		"When others were named None should be taken":                             {list: "AWS", platform: hyperv1.NonePlatform},
		"When AWS was named it should be taken":                                   {list: "AWS", platform: hyperv1.AWSPlatform},
		"When others were named AWS should be refused":                            {list: "Local", platform: hyperv1.AWSPlatform, refusal: "not switched on"},
		"When a platform was named that nobody can do it should still be refused": {list: "Moon,Local", platform: "Moon", refusal: `"Moon" is not supported by this operator: set spec.platform.type to one of Local, None`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := platform.ParseEnabled(tc.list).For(tc.platform)
			if tc.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(p).NotTo(BeNil())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
		})
	}
}
