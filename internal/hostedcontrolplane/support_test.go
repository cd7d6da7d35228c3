package hostedcontrolplane

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFieldsOfHostedCluster changes every field that certificates and published Services are said to heed, and every one that nobody does.
func TestFieldsOfHostedCluster(t *testing.T) {
	networking := map[string]any{"serviceNetwork": []any{map[string]any{"cidr": "172.31.0.0/16"}}}
	published := func(service, strategy string) map[string]any {
		return map[string]any{"service": service, "servicePublishingStrategy": map[string]any{"type": strategy, "nodePort": map[string]any{"address": "192.0.2.1", "port": 30001},
			"loadBalancer": map[string]any{"hostname": "api.example.com"}}}
	}
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "hostedcontrolplane", Platform: "Local", Nothing: true,
		Bases: map[string]map[string]any{
			"node port":     {"platform": map[string]any{"type": "Local"}, "networking": networking, "services": []any{published("APIServer", "NodePort")}},
			"load balancer": {"platform": map[string]any{"type": "Local"}, "networking": networking, "services": []any{published("APIServer", "LoadBalancer")}},
		},
		Render: func(spec map[string]any) (string, bool) {
			raw, err := json.Marshal(spec)
			if err != nil {
				return "", false
			}
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Name, hcp.Namespace = "demo", "clusters-demo"
			if err := json.Unmarshal(raw, &hcp.Spec); err != nil {
				return "", false
			}
			services := endpoints.Services(hcp)
			for _, s := range services {
				s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.2"}}
			}
			live := endpoints.Live{API: services[0]}
			infra := endpoints.StatusOf(hcp, live)
			certificates, problems := pkiSpec(hcp, infra, pki.Spec{}, time.Unix(1800000000, 0))
			certificates.Owner = pki.Spec{}.Owner
			text, err := json.Marshal(services)
			return fmt.Sprintf("%s %+v %+v %v %v %v", text, infra, certificates, problems, endpoints.Validate(hcp, endpoints.Capabilities{}), err), true
		}}.Run(t)
}
