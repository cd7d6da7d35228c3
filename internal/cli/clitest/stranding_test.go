package clitest_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/install"
)

func TestInstallStrandsNobody(t *testing.T) {
	f, c, env := flags(t)
	ctx := t.Context()
	definitions := installOptions(f, "hypershift-stranding")
	definitions.Scope = install.ScopeCRDs
	NewWithT(t).Expect(install.Run(ctx, definitions, &bytes.Buffer{})).To(Succeed())
	for _, obj := range create.Objects(clusterOptions(f, hyperv1.LocalPlatform, env.Namespace(t)), create.Generated{}) {
		if hc, ok := obj.(*hyperv1.HostedCluster); ok {
			NewWithT(t).Expect(c.Create(ctx, hc)).To(Succeed())
		}
	}
	for name, tc := range map[string]struct {
		platforms []string
		remedy    string // empty: installed
	}{
		"When Local is in use and nothing is named it should be refused with the list to give": {
			remedy: "--limit-crd-install=AWS,Azure,IBMCloud,KubeVirt,Agent,PowerVS,OpenStack,GCP,None,Local"},
		"When Local is in use and others are named it should be refused": {platforms: []string{"AWS"}, remedy: "--limit-crd-install=AWS,Local"},
		"When Local is in use and named it should install":               {platforms: []string{"Local"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := installOptions(f, "hypershift-stranding")
			o.Platforms = tc.platforms
			err := install.Run(ctx, o, &bytes.Buffer{})
			if tc.remedy == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(install.ErrStrands))
			g.Expect(err).To(MatchError(ContainSubstring(tc.remedy)))
		})
	}
}
