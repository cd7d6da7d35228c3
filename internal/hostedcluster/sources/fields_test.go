package sources

import (
	"strings"
	"testing"

	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFieldsOfHostedCluster changes every field whose objects this operator is said to copy.
func TestFieldsOfHostedCluster(t *testing.T) {
	unmanaged := hostedclustertest.Spec(t)
	unmanaged["etcd"] = map[string]any{"managementType": "Unmanaged", "unmanaged": map[string]any{"endpoint": "https://etcd.example.com:2379"}}
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "hostedcluster", Platform: "None",
		Bases: map[string]map[string]any{"example": hostedclustertest.Spec(t), "unmanaged etcd": unmanaged},
		Render: func(spec map[string]any) (string, bool) {
			hc, ok := hostedclustertest.Decode(spec)
			if !ok {
				return "", false
			}
			var named []string
			for _, ref := range References(&hc.Spec) {
				named = append(named, ref.Purpose+" "+ref.Field+" "+ref.Name)
			}
			return strings.Join(named, "\n"), true
		}}.Run(t)
}
