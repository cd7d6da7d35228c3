package ignition

import (
	"encoding/json"
	"fmt"
	"testing"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFieldsOfHostedCluster changes every field that the payload of machines is said to heed, and every one that nobody does.
func TestFieldsOfHostedCluster(t *testing.T) {
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "ignition", Platform: "Local", Nothing: true,
		Bases: map[string]map[string]any{"proxy": {
			"platform":      map[string]any{"type": "Local"},
			"networking":    map[string]any{"serviceNetwork": []any{map[string]any{"cidr": "172.31.0.0/16"}}},
			"configuration": map[string]any{"proxy": map[string]any{"httpProxy": "http://proxy.example.com"}},
		}},
		Render: func(spec map[string]any) (string, bool) {
			raw, err := json.Marshal(spec)
			if err != nil {
				return "", false
			}
			hcp := &hyperv1.HostedControlPlane{}
			if err := json.Unmarshal(raw, &hcp.Spec); err != nil {
				return "", false
			}
			dns, err := clusterDNS(&hcp.Spec.Networking)
			return fmt.Sprintf("%+v %s %v", proxyOf(hcp), dns, err), true
		}}.Run(t)
}
