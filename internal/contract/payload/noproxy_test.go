package payload

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestNoProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedControlPlaneSpec)
		want   string
	}{
		"When nothing is known it should name the hosted cluster's own names": {
			change: func(*hyperv1.HostedControlPlaneSpec) {}, want: ".cluster.local,.hypershift.local,.svc,127.0.0.1,localhost",
		},
		"When there are networks it should name them, but not all there is": {
			change: func(s *hyperv1.HostedControlPlaneSpec) {
				s.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: "0.0.0.0/0"}, {CIDR: "10.0.0.0/16"}}
				s.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
				s.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
			},
			want: ".cluster.local,.hypershift.local,.svc,10.0.0.0/16,10.132.0.0/14,127.0.0.1,172.31.0.0/16,localhost",
		},
		"When the user names some it should name each once": {
			change: func(s *hyperv1.HostedControlPlaneSpec) {
				s.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{NoProxy: " a.example ,localhost,"}}
			},
			want: ".cluster.local,.hypershift.local,.svc,127.0.0.1,a.example,localhost",
		},
		"When it is on AWS it should name the metadata and the nodes": {
			change: func(s *hyperv1.HostedControlPlaneSpec) {
				s.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-west-1"}}
			},
			want: ".cluster.local,.eu-west-1.compute.internal,.hypershift.local,.svc,127.0.0.1,169.254.169.254,localhost",
		},
		"When it is on AWS in the first region nodes should have its other name": {
			change: func(s *hyperv1.HostedControlPlaneSpec) {
				s.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "us-east-1"}}
			},
			want: ".cluster.local,.ec2.internal,.hypershift.local,.svc,127.0.0.1,169.254.169.254,localhost",
		},
		"When it is on another cloud of Azure than the public one it should name the platform's address": {
			change: func(s *hyperv1.HostedControlPlaneSpec) {
				s.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{Cloud: "AzureUSGovernmentCloud"}}
			},
			want: ".cluster.local,.hypershift.local,.svc,127.0.0.1,168.63.129.16,169.254.169.254,localhost",
		},
		"When it is on the public Azure it should not": {
			change: func(s *hyperv1.HostedControlPlaneSpec) {
				s.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{Cloud: "AzurePublicCloud"}}
			},
			want: ".cluster.local,.hypershift.local,.svc,127.0.0.1,169.254.169.254,localhost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			tc.change(&hcp.Spec)
			NewWithT(t).Expect(strings.Join(NoProxy(hcp), ",")).To(Equal(tc.want))
		})
	}
}
