package component

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestGatewayNamespace(t *testing.T) {
	for name, tc := range map[string]struct{ gateway, want string }{
		"When a Gateway is named it should be its namespace": {"infra/public", "infra"},
		"When none is named it should be nothing":            {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := EnvironmentFrom(func(v string) string { return map[string]string{"SHARED_GATEWAY": tc.gateway}[v] })
			NewWithT(t).Expect(e.GatewayNamespace).To(Equal(tc.want))
		})
	}
}
