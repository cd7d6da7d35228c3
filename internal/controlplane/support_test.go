package controlplane

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
	"hcp.internal/platform/internal/testenv/bare"
)

// others have what the fixtures lack, and instead of which they have something else.
const others = `
oidc:
  configuration: {authentication: {type: OIDC, oidcProviders: [{name: sso, issuer: {issuerURL: "https://sso.example.com", audiences: [demo]},
    claimMappings: {username: {claim: email, prefixPolicy: NoPrefix}, groups: {claim: groups}},
    claimValidationRules: [{type: RequiredClaim, requiredClaim: {claim: a, requiredValue: b}}]}]}}
oidc-cel:
  configuration: {authentication: {type: OIDC, oidcProviders: [{name: sso, issuer: {issuerURL: "https://sso.example.com", audiences: [demo]},
    claimMappings: {username: {claim: email, prefixPolicy: Prefix, prefix: {prefixString: "a:"}}, groups: {expression: claims.a}},
    claimValidationRules: [{type: CEL, cel: {expression: "true", message: nope}}]}]}}
unmanaged-etcd:
  etcd: {managementType: Unmanaged, unmanaged: {endpoint: "https://etcd.example.com:2379", tls: {clientSecret: {name: etcd}}}}
unmanaged-etcd-shards:
  etcd: {managementType: Unmanaged, unmanaged: {endpoint: "https://etcd.example.com:2379", tls: {clientSecret: {name: etcd}},
    shards: [{name: events, endpoint: "https://events.example.com:2379", resources: [{apiGroup: "", resource: events}]}]}}
custom:
  configuration:
    featureGate: {featureSet: CustomNoUpgrade, customNoUpgrade: {enabled: [A]}}
    apiServer: {tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: VersionTLS12, ciphers: [ECDHE-RSA-AES128-GCM-SHA256]}}}
autoscaled:
  autoscaling: {scaling: ScaleUpAndScaleDown, scaleDown: {delayAfterAddSeconds: 1}}
`

// TestFieldsOfHostedCluster changes every field that components are said to heed, and every one that nobody is.
func TestFieldsOfHostedCluster(t *testing.T) {
	bases := map[string]map[string]any{}
	for name, mutate := range fixtures {
		bases[name] = specOf(t, hostedControlPlane(mutate))
	}
	extra := map[string]map[string]any{}
	if err := yaml.Unmarshal([]byte(others), &extra); err != nil {
		t.Fatal(err)
	}
	for name, fields := range extra {
		bases[name] = specOf(t, hostedControlPlane())
		maps.Copy(bases[name], fields)
	}
	list := allWorkloads() // once: parsing their assets takes longer than rendering them
	reader := bare.Reader(t, mounted()...)
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "controlplane", Platform: "Local", Nothing: true, Bases: bases,
		Render: func(spec map[string]any) (string, bool) { return rendered(t, reader, slices.Clip(list), spec) }}.Run(t)
}

// specOf is the spec of the HostedCluster that a control plane is of.
func specOf(t *testing.T, hcp *hyperv1.HostedControlPlane) map[string]any {
	t.Helper()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&hcp.Spec)
	if err != nil {
		t.Fatal(err)
	}
	spec["release"] = map[string]any{"image": spec["releaseImage"]}
	delete(spec, "releaseImage")
	return spec
}

// rendered is what components render for a HostedCluster.
func rendered(t *testing.T, reader client.Reader, list []*component.WorkloadComponent, spec map[string]any) (string, bool) {
	t.Helper()
	if release, ok := spec["release"].(map[string]any); ok {
		spec["releaseImage"] = release["image"]
	}
	if release, ok := spec["controlPlaneRelease"].(map[string]any); ok {
		spec["controlPlaneReleaseImage"] = release["image"]
	}
	delete(spec, "release")
	delete(spec, "controlPlaneRelease")
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", false
	}
	hcp := hostedControlPlane()
	hcp.Spec = hyperv1.HostedControlPlaneSpec{}
	if err := json.Unmarshal(raw, &hcp.Spec); err != nil {
		return "", false
	}
	ctx := bare.ContextOn(t, hcp, reader)
	for _, s := range shards.Managed(hcp.Spec.Etcd) {
		list = append(list, etcd.ShardComponent(s.Name))
	}
	b := &strings.Builder{}
	for _, c := range list {
		out, err := c.Render(ctx)
		if err != nil {
			fmt.Fprintln(b, err)
			continue
		}
		for _, obj := range append(out.Manifests, out.Workload) {
			text, err := json.Marshal(obj) // quicker than YAML, and there are hundreds
			if err != nil {
				t.Fatal(err)
			}
			b.Write(text)
		}
	}
	return b.String(), true
}
