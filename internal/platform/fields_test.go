package platform_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/kubevirt"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFields changes every field of HostedClusters and NodePools that platforms are said to heed, and compares what they make, or say.
func TestFields(t *testing.T) {
	for _, table := range []string{"HostedCluster", "NodePool"} {
		t.Run("When a field of a "+table+" is heeded it should change what is made", func(t *testing.T) {
			bases, inputs := map[string]map[string]any{}, map[string]input{}
			for folder := range folders {
				in := read(t, folder)
				inputs[folder] = in
				base, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pick(&in, table))
				if err != nil {
					t.Fatal(err)
				}
				base["folder"] = folder
				bases[folder] = base
			}
			supporttest.Proof{Table: support.Of(table), By: "platform", Platform: "Agent", Bases: bases, Render: func(spec map[string]any) (string, bool) {
				in, ok := inputOf(inputs, spec, table)
				if !ok {
					return "", false
				}
				return rendered(t, in.example(), in.objects()), true
			}}.Run(t)
		})
	}
}

func pick(in *input, table string) any {
	if table == "NodePool" {
		return &in.Pool
	}
	return &in.Cluster
}

// inputOf puts a changed spec into the input that it comes from.
func inputOf(inputs map[string]input, spec map[string]any, table string) (input, bool) {
	folder, _ := spec["folder"].(string)
	in, ok := inputs[folder]
	raw, err := json.Marshal(spec)
	if err != nil || !ok {
		return input{}, false
	}
	if table == "NodePool" {
		in.Pool = hyperv1.NodePoolSpec{}
		return in, json.Unmarshal(raw, &in.Pool) == nil
	}
	in.Cluster = hyperv1.HostedClusterSpec{}
	return in, json.Unmarshal(raw, &in.Cluster) == nil
}

func TestProviderType(t *testing.T) {
	for kind, has := range map[string]bool{"": true, "Other": true, "UPI": false, "Classic": false, "VPC": false} {
		t.Run("When infrastructure of IBM's is of type "+kind+" it should be known whether Cluster API has a part in it", func(t *testing.T) {
			g := NewWithT(t)
			e := read(t, "ibmcloud").example()
			e.HostedCluster.Spec.Platform.IBMCloud.ProviderType = kind
			p, err := platform.For(hyperv1.IBMCloudPlatform)
			g.Expect(err).NotTo(HaveOccurred())
			infra, err := p.InfraCR(e.HostedCluster, "clusters-demo", hyperv1.APIEndpoint{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(infra != nil).To(Equal(has))
		})
	}
}

func TestGeneratedID(t *testing.T) {
	t.Run("When a cluster on KubeVirt has no ID it should get one, and keep it", func(t *testing.T) {
		g := NewWithT(t)
		hc := &hyperv1.HostedCluster{}
		hc.UID = "6c90b532-7ba0-418a-a276-5ae55060b5b0"
		d := kubevirt.Platform{}
		g.Expect(d.Default(hc)).To(BeTrue())
		id := hc.Spec.Platform.Kubevirt.GenerateID
		g.Expect(id).To(MatchRegexp("^[0-9a-f]{10}$"))
		g.Expect(d.Default(hc)).To(BeFalse())
		g.Expect(hc.Spec.Platform.Kubevirt.GenerateID).To(Equal(id))
	})
}
