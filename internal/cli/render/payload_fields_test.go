package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	hosted "hcp.internal/platform/internal/configoperator/openshift"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/hostedcontrolplane"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFieldsOfPayload changes every field of which the table says whether OpenShift payloads heed it: by components, or by what is in the hosted cluster.
func TestFieldsOfPayload(t *testing.T) {
	const root = "testdata/openshift"
	bases := map[string]map[string]any{}
	for _, name := range []string{"plain", "aro", "gcp", "ibmcloud"} {
		var doc map[string]any
		if err := json.Unmarshal(patched(t, root, name), &doc); err != nil {
			t.Fatal(err)
		}
		bases[name] = asHostedCluster(doc["spec"].(map[string]any))
	}
	for name, more := range moreBases(t) {
		base := map[string]any{}
		raw, _ := json.Marshal(bases["plain"])
		_ = json.Unmarshal(raw, &base)
		for key, value := range more {
			base[key] = value
		}
		bases[name] = base
	}
	p := newPayloadRenderer(t, root)
	supporttest.Proof{Table: support.Of("HostedCluster"), By: "cli/render", Platform: "AWS", Payload: true, Nothing: true, Bases: bases, Render: p.render}.Run(t)
}

// moreBases are parts of a spec beside which others count.
func moreBases(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	err := yaml.Unmarshal([]byte(`
none: {platform: {type: None}}
kubevirt: {platform: {type: KubeVirt, kubevirt: {generateID: abc}}}
azure-workload:
  platform: {type: Azure, azure: {location: eastus, resourceGroup: demo, subscriptionID: s, tenantID: t,
    vnetID: /subscriptions/s/resourceGroups/v/providers/Microsoft.Network/virtualNetworks/n,
    subnetID: /subscriptions/s/resourceGroups/v/providers/Microsoft.Network/virtualNetworks/n/subnets/m,
    securityGroupID: /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkSecurityGroups/q,
    azureAuthenticationConfig: {azureAuthenticationConfigType: WorkloadIdentities, workloadIdentities: {cloudProvider: {clientID: a}, controlPlaneOperator: {clientID: b},
      disk: {clientID: c}, file: {clientID: d}, imageRegistry: {clientID: e}, ingress: {clientID: f}, network: {clientID: g}, nodePoolManagement: {clientID: h}}}}}
powervs:
  platform: {type: PowerVS, powervs: {accountID: a, cisInstanceCRN: "crn:c", region: dal, zone: dal10, resourceGroup: g, serviceInstanceID: s, subnet: {name: net},
    vpc: {name: v, region: us-south, subnet: p, zone: us-south-1}, imageRegistryOperatorCloudCreds: {name: i}, ingressOperatorCloudCreds: {name: j},
    kubeCloudControllerCreds: {name: k}, nodePoolManagementCreds: {name: l}, storageOperatorCloudCreds: {name: m}}}
kubevirt-storage:
  platform: {type: KubeVirt, kubevirt: {generateID: abc, storageDriver: {type: Manual, manual: {
    storageClassMapping: [{infraStorageClassName: a, guestStorageClassName: b, group: g}],
    volumeSnapshotClassMapping: [{infraVolumeSnapshotClassName: c, guestVolumeSnapshotClassName: d, group: g}]}}}}
guest-catalogs: {olmCatalogPlacement: guest}
oidc:
  configuration: {authentication: {type: OIDC, oidcProviders: [{name: sso, issuer: {issuerURL: "https://sso.example.com", audiences: [demo]},
    claimMappings: {username: {claim: email, prefixPolicy: NoPrefix}, groups: {claim: groups}}}]}}
oauth:
  configuration: {oauth: {identityProviders: [{name: a, type: HTPasswd, htpasswd: {fileData: {name: users}}}]}}
`), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asHostedCluster is the spec of the HostedCluster that a control plane is of.
func asHostedCluster(spec map[string]any) map[string]any {
	spec["release"] = map[string]any{"image": spec["releaseImage"]}
	delete(spec, "releaseImage")
	return spec
}

// payloadRenderer renders control planes beside the same objects.
type payloadRenderer struct {
	options options
	plain   loaded
	list    []component.Component
}

func newPayloadRenderer(t *testing.T, root string) *payloadRenderer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hcp.yaml")
	if err := os.WriteFile(file, patched(t, root, "plain"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &payloadRenderer{list: openshift.Components(), options: options{
		file: file, release: filepath.Join(root, "release.json"), objects: []string{filepath.Join(root, "objects.yaml")}, placeholders: true, noDefaults: true, all: true,
		noSigning: true, operator: controlPlaneOperator, capabilities: "all",
	}}
	var err error
	if p.plain, err = p.options.load(strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *payloadRenderer) render(spec map[string]any) (string, bool) {
	hcp := p.plain.hcp.DeepCopy()
	hcp.Spec = hyperv1.HostedControlPlaneSpec{}
	for from, to := range map[string]string{"release": "releaseImage", "controlPlaneRelease": "controlPlaneReleaseImage"} {
		if r, ok := spec[from].(map[string]any); ok {
			spec[to] = r["image"]
		}
		delete(spec, from)
	}
	raw, err := json.Marshal(spec)
	if err != nil || json.Unmarshal(raw, &hcp.Spec) != nil {
		return "", false
	}
	out := &strings.Builder{}
	l := p.plain
	l.hcp, l.infra = hcp, endpoints.Complete(hcp, endpoints.Status{})
	err = hostedcontrolplane.Preview(context.Background(), hostedcontrolplane.PreviewInput{
		WorkloadContext: p.options.context(l), Components: p.list, Objects: l.objects, All: true, Now: time.Unix(1800000000, 0),
		Each: func(plan component.Plan, err error) error {
			fmt.Fprintln(out, plan.Component, err)
			for _, o := range plan.Objects {
				raw, _ := json.Marshal(o)
				out.Write(raw)
			}
			return nil
		}})
	fmt.Fprintln(out, err)
	p.hosted(out, hcp)
	return out.String(), true
}

// hosted writes what is made in the hosted cluster.
func (p *payloadRenderer) hosted(out *strings.Builder, hcp *hyperv1.HostedControlPlane) {
	control, err := hosted.ObserveControl(context.Background(), everything{}, hcp)
	fmt.Fprintln(out, err)
	actions, err := hosted.Plan(hosted.Input{
		HCP: hcp, Release: p.plain.release, Version: "4.22.0", Kubernetes: "1.35.2", Control: control, Hosted: hosted.Hosted{Objects: map[string]map[string]any{}},
		Tunnel: resources.Tunnel{Host: "tunnel", Port: 443, CA: []byte("a"), Cert: []byte("b"), Key: []byte("c")}, OAuthHost: "oauth", OAuthPort: 443,
		Random: func(n int) []byte { return bytes.Repeat([]byte{7}, n) }, Now: time.Unix(1800000000, 0), Bcrypt: func(b []byte) ([]byte, error) { return b, nil },
	})
	fmt.Fprintln(out, err)
	for _, a := range actions {
		live := map[string]any{}
		if a.Change != nil {
			a.Change(live)
		}
		raw, _ := json.Marshal([]any{a.Do, a.Object, live})
		out.Write(raw)
	}
}

// everything is a namespace that has whatever is asked for.
type everything struct{}

func (everything) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	text := "content of " + key.Name
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		o.Data = map[string]string{"ca.crt": text, "ca-bundle.crt": text, "cloud.conf": text}
	case *corev1.Secret:
		o.Data = map[string][]byte{"tls.crt": []byte(text), "tls.key": []byte(text), "password": []byte(text), corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`), "clientSecret": []byte(text)}
	case *corev1.Service:
		o.Spec.ClusterIP, o.Spec.Ports = "172.30.0.1", []corev1.ServicePort{{Port: 443}}
	}
	return nil
}

func (everything) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
