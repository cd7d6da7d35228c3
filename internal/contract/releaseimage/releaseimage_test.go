package releaseimage

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		image *string
		want  string
	}{
		"When no release is named for the control plane it should run that of the cluster": {nil, "release:1"},
		"When the name is empty it should be none":                                         {ptr.To(""), "release:1"},
		"When one is named it should run that":                                             {ptr.To("release:2"), "release:2"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &hyperv1.HostedControlPlaneSpec{ReleaseImage: "release:1", ControlPlaneReleaseImage: tc.image}
			NewWithT(t).Expect(ControlPlane(spec)).To(Equal(tc.want))
		})
	}
}
