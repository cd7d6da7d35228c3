package resources

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFieldsOfHostedCluster changes every field that objects in the hosted cluster are said to heed, and every one that nobody does.
func TestFieldsOfHostedCluster(t *testing.T) {
	spec := hyperv1.HostedControlPlaneSpec{Platform: hyperv1.PlatformSpec{Type: hyperv1.LocalPlatform}, Networking: hyperv1.ClusterNetworking{
		NetworkType: hyperv1.Other, AllocateNodeCIDRs: ptr.To(hyperv1.AllocateNodeCIDRsEnabled),
		ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}, ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}},
	}}
	base, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		t.Fatal(err)
	}
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "configoperator", Platform: "Local", Nothing: true, Bases: map[string]map[string]any{"network": base},
		Render: func(spec map[string]any) (string, bool) {
			raw, err := json.Marshal(spec)
			if err != nil {
				return "", false
			}
			hcp := &hyperv1.HostedControlPlane{}
			if err := json.Unmarshal(raw, &hcp.Spec); err != nil {
				return "", false
			}
			hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.97.0.10", Port: 6443}
			in := Input{HCP: hcp, Nodes: 2, Images: map[string]string{}}
			for _, tag := range images.Tags() {
				in.Images[tag] = "r/" + tag
			}
			objects, err := Render(in)
			text, encodeErr := json.Marshal(objects)
			if encodeErr != nil {
				t.Fatal(encodeErr)
			}
			return fmt.Sprintln(string(text), err), true
		}}.Run(t)
}
