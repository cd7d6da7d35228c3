package machines

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestVersion holds the spelling of versions: Cluster API replaces each machine whose template has another one.
func TestVersion(t *testing.T) {
	now := Generation{UserData: "user-data-workers-1", Version: "1.36.3"}
	in := func(version, userData string) *clusterv1.MachineTemplateSpec {
		return &clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{Version: version, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(userData)}}}
	}
	for name, tc := range map[string]struct {
		inUse []*clusterv1.MachineTemplateSpec
		want  string
	}{
		"When machines are new it should be as in the release, which is how older operators spell it": {nil, "1.36.3"},
		"When machines of this generation have it so it should stay":                                  {[]*clusterv1.MachineTemplateSpec{in("1.36.3", "user-data-workers-1")}, "1.36.3"},
		"When a webhook or an operator has put a v before it, it should stay":                         {[]*clusterv1.MachineTemplateSpec{in("v1.36.3", "user-data-workers-1")}, "v1.36.3"},
		"When machines are replaced anyway it should be as in the release":                            {[]*clusterv1.MachineTemplateSpec{in("v1.36.3", "user-data-workers-0")}, "1.36.3"},
		"When only an older machine has a v it should be as those of this generation have it":         {[]*clusterv1.MachineTemplateSpec{in("v1.35.1", "user-data-workers-0"), in("1.36.3", "user-data-workers-1")}, "1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Pool{Now: now, InUse: tc.inUse}.version()).To(Equal(tc.want))
		})
	}
}
