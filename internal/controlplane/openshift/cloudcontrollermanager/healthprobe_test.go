package cloudcontrollermanager

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestHealthProbe(t *testing.T) {
	const mode, path, port = hyperv1.AWSLoadBalancerHealthProbeModeAnnotation, hyperv1.SharedLoadBalancerHealthProbePathAnnotation, hyperv1.SharedLoadBalancerHealthProbePortAnnotation
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        healthProbe
		err         string
	}{
		"When nothing is said it should be shared":               {want: healthProbe{mode: "Shared"}},
		"When it is shared it should have its path and port":     {annotations: map[string]string{path: "/ready", port: "10257"}, want: healthProbe{mode: "Shared", path: "/ready", port: 10257}},
		"When each Service is probed there should be neither":    {annotations: map[string]string{mode: "ServiceNodePort", path: "/ready", port: "x"}, want: healthProbe{mode: "ServiceNodePort"}},
		"When the mode is unknown it should say which there are": {annotations: map[string]string{mode: "shared"}, err: "write Shared or ServiceNodePort"},
		"When the port is none it should name the annotation":    {annotations: map[string]string{port: "65536"}, err: port},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Annotations = tc.annotations
			got, err := healthProbeOf(hcp, mode, "Shared", "ServiceNodePort")
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestINI(t *testing.T) {
	t.Run("When a value would begin another line it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		var conf ini
		conf.section("Global", setting{"Zone", "a"}, setting{"VPC", "b\n[Other]"})
		g.Expect(conf.err).To(MatchError(ContainSubstring("VPC in section Global")))
	})
}
