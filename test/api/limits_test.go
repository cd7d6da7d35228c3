package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/testenv"
)

// maxRequest is what etcd takes in one request unless it is told otherwise, in bytes.
const maxRequest = 1536 * 1024

// list is a list of n items, from their numbers.
func list(n int, item func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

func name(i int) any { return map[string]any{"name": fmt.Sprintf("name-%d", i)} }
func text(format string) func(int) any {
	return func(i int) any { return fmt.Sprintf(format, i) }
}

// TestLongLists fills lists up to their maximum, which the budget for rules must allow, and one item further.
func TestLongLists(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	ns := env.Namespace(t)
	for path, tc := range map[string]struct {
		base string
		max  int
		item func(i int) any
		// tail wraps the list: the path says where what it returns goes.
		tail func(items []any) any
	}{
		"spec.imageContentSources": {max: 255, item: func(i int) any {
			return map[string]any{"source": fmt.Sprintf("s%d.example.com", i), "mirrors": []any{"m.example.com"}}
		}},
		"spec.tolerations": {max: 25, item: func(i int) any { return map[string]any{"key": fmt.Sprintf("k%d", i), "operator": "Exists"} }},
		"spec.networking.apiServer.allowedCIDRBlocks": {max: 500, item: func(i int) any { return fmt.Sprintf("10.%d.%d.0/24", i/256, i%256) }},
		"spec.autoscaling.balancingIgnoredLabels":     {max: 64, item: text("example.com/l%d")},
		"spec.configuration.image.registrySources.blockedRegistries": {max: 1024, item: func(i int) any {
			return fmt.Sprintf("r%d.%s.example.com/%s", i, long(60), long(100))
		}},
		"spec.configuration.apiServer.servingCerts.namedCertificates": {max: 32, item: func(i int) any {
			return map[string]any{"names": list(64, text("n"+fmt.Sprint(i)+"-%d.example.com")), "servingCertificate": name(i)}
		}},
		"spec.configuration.ingress.componentRoutes": {max: 250, item: func(i int) any {
			return map[string]any{"namespace": "ns", "name": fmt.Sprint("r", i), "hostname": "a.example.com"}
		}},
		"spec.platform": {max: 25, item: func(i int) any { return map[string]any{"key": fmt.Sprint("k", i), "value": "v"} }, tail: func(items []any) any {
			aws := parseMap(t, `{region: r, rolesRef: {ingressARN: a, imageRegistryARN: a, storageARN: a, networkARN: a, kubeCloudControllerARN: a, nodePoolManagementARN: a, controlPlaneOperatorARN: a}}`)
			aws["resourceTags"] = items
			return map[string]any{"type": "AWS", "aws": aws}
		}},
		"spec.configuration.authentication.oidcProviders": {max: 32, item: func(i int) any {
			return map[string]any{"key": fmt.Sprintf("%s.example.com/%s%d", long(60), long(200), i), "valueExpression": "claims.a"}
		}, tail: func(items []any) any {
			p := parseMap(t, `{name: p, issuer: {issuerURL: "https://a", audiences: [a]}, claimMappings: {username: {claim: a}}}`)
			p["claimMappings"].(map[string]any)["extra"] = items
			return []any{p}
		}},
		"spec.taints": {base: baseNodePool, max: 50, item: func(i int) any {
			return map[string]any{"key": fmt.Sprintf("%s.example.com/k%d", long(60), i), "value": "v", "effect": "NoSchedule"}
		}},
		"spec.config":       {base: baseNodePool, max: 10, item: name},
		"spec.tuningConfig": {base: baseNodePool, max: 10, item: name},
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			base := tc.base
			if base == "" {
				base = baseHostedCluster
			}
			try := func(n int) error {
				obj := parse(t, base)
				obj.SetNamespace(ns)
				var value any = list(n, tc.item)
				if tc.tail != nil {
					value = tc.tail(value.([]any))
				}
				g.Expect(unstructured.SetNestedField(obj.Object, value, strings.Split(path, ".")...)).To(Succeed())
				return c.Create(t.Context(), obj, client.DryRunAll)
			}
			g.Expect(try(tc.max)).To(Succeed(), "a full list must be accepted")
			g.Expect(try(tc.max + 1)).To(MatchError(ContainSubstring(fmt.Sprintf("must have at most %d items", tc.max))))
		})
	}
}

func parseMap(t *testing.T, flow string) map[string]any {
	t.Helper()
	return parse(t, "apiVersion: v1\nkind: X\nvalue: "+flow).Object["value"].(map[string]any)
}

// TestLargeObjects stores a HostedCluster that is nearly as large as etcd takes, changes it, and tries one that is larger.
func TestLargeObjects(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	large := func(bytes int) *unstructured.Unstructured {
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(env.Namespace(t))
		mirror := long(240)
		perSource := 40 * (len(mirror) + 8)
		obj.Object["spec"].(map[string]any)["imageContentSources"] = list(bytes/perSource, func(i int) any {
			return map[string]any{"source": fmt.Sprint("s", i), "mirrors": list(40, func(m int) any { return fmt.Sprintf("%s-%d", mirror, m) })}
		})
		return obj
	}
	fits := large(maxRequest - 128*1024)
	raw, err := json.Marshal(fits.Object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(raw)).To(BeNumerically(">", 1300*1024), "the object must be large for this test to say anything")
	g.Expect(c.Create(t.Context(), fits)).To(Succeed())
	g.Expect(c.Update(t.Context(), merge(t, fits, `spec: {pausedUntil: "true"}`))).To(Succeed())
	g.Expect(c.Delete(t.Context(), fits)).To(Succeed())
	g.Expect(c.Create(t.Context(), large(maxRequest+16*1024))).To(MatchError(ContainSubstring("too large")))
}
