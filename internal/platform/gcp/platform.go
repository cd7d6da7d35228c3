// Package gcp is the platform of hosted clusters whose machines are instances of Google's Compute Engine.
package gcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

var (
	groupVersion = schema.GroupVersion{Group: cloud.Infrastructure, Version: "v1beta1"}
	clusterKind  = groupVersion.WithKind("GCPCluster")
	templateKind = groupVersion.WithKind("GCPMachineTemplate")
)

const (
	// credentialsKey of every Secret.
	credentialsKey = "application_default_credentials.json"
	// managementSecret is the provider's.
	managementSecret = "node-management-creds"
	credentialsDir   = "/home/.gcp"
	tokenFile        = cloud.TokenDir + "/token"
)

// Where Google trades tokens.
const (
	tokenURL       = "https://sts.googleapis.com/v1/token"
	impersonateURL = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/%s:generateAccessToken"
)

func specOf(hc *hyperv1.HostedCluster) (*hyperv1.GCPPlatformSpec, error) {
	if g := hc.Spec.Platform.GCP; g != nil {
		return g, nil
	}
	return nil, errors.New("spec.platform.gcp is missing: describe project, network and identities there")
}

type clusterSpec struct {
	Project              string            `json:"project"`
	Region               string            `json:"region"`
	Network              network           `json:"network"`
	AdditionalLabels     map[string]string `json:"additionalLabels,omitempty"`
	ControlPlaneEndpoint *cloud.Endpoint   `json:"controlPlaneEndpoint,omitempty"`
}

type network struct {
	Name    string   `json:"name,omitempty"`
	Subnets []subnet `json:"subnets,omitempty"`
}

type subnet struct {
	Name   string `json:"name"`
	Region string `json:"region"`
}

// InfraCR implements platform.Platform.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	g, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	spec := &clusterSpec{
		Project: g.Project, Region: g.Region, ControlPlaneEndpoint: cloud.EndpointOf(endpoint),
		AdditionalLabels: labelsOf(g.ResourceLabels, ownLabels(hc)),
	}
	if name := string(g.NetworkConfig.Network.Name); name != "" {
		spec.Network = network{Name: name}
		if s := string(g.NetworkConfig.PrivateServiceConnectSubnet.Name); s != "" {
			spec.Network.Subnets = []subnet{{Name: s, Region: g.Region}}
		}
	}
	return cloud.External(clusterKind, hc, hcpNamespace, hc.Name, spec)
}

// InfraStatus implements platform.InfraKeeper.
func (Platform) InfraStatus() map[string]any { return cloud.Ready() }

// ownLabels are those by which what belongs to a cluster is found.
func ownLabels(hc *hyperv1.HostedCluster) map[string]string {
	return map[string]string{
		labelText("kubernetes-io-cluster-" + hc.Spec.InfraID): "owned", "hypershift-cluster": labelText(hc.Name), "hypershift-infra-id": labelText(hc.Spec.InfraID),
	}
}

// maxLabel is the length of labels in this cloud.
const maxLabel = 63

// labelText is a text as labels of this cloud may be: small letters, digits, - and _.
func labelText(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, strings.ToLower(text))
	return text[:min(len(text), maxLabel)]
}

// labelsOf joins the user's labels and ours; ours win.
func labelsOf(given []hyperv1.GCPResourceLabel, own map[string]string) map[string]string {
	out := map[string]string{}
	for _, l := range given {
		out[l.Key] = ptr.Deref(l.Value, "")
	}
	for k, v := range own {
		out[k] = v
	}
	return out
}

// CAPIProvider implements platform.Platform.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	project := ""
	if g := hc.Spec.Platform.GCP; g != nil {
		project = g.Project
	}
	spec := cloud.Provider{
		Tag: "gcp-cluster-api-controllers", Annotation: hyperv1.ClusterAPIGCPProviderImage, Memory: "128Mi",
		Args:   []string{"--namespace=$(MY_NAMESPACE)", "--leader-elect=true", "--feature-gates=MachinePool=false", "--v=2"},
		Env:    []corev1.EnvVar{{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: credentialsDir + "/" + credentialsKey}, {Name: "GOOGLE_CLOUD_PROJECT", Value: project}},
		Secret: managementSecret, Dir: credentialsDir,
	}.Deployment(hc)
	cloud.MintToken(&spec.Template.Spec, cloud.Token{Container: "cloud-token-minter", Volume: "cloud-token", Account: "capi-gcp-controller-manager"})
	return spec, nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule { return nil }

// account is a service account of the project, and the Secret by which a program of the control plane becomes it.
type account struct{ secret, field, email string }

func accountsOf(g *hyperv1.GCPPlatformSpec) []account {
	e := g.WorkloadIdentity.ServiceAccountsEmails
	return []account{
		{managementSecret, "nodePool", string(e.NodePool)}, {"control-plane-operator-creds", "controlPlane", string(e.ControlPlane)},
		{"cloud-controller-manager-creds", "cloudController", string(e.CloudController)}, {"gcp-pd-cloud-credentials", "storage", string(e.Storage)},
		{"image-registry-creds", "imageRegistry", string(e.ImageRegistry)}, {"cloud-network-config-controller-creds", "network", string(e.Network)},
	}
}

// missing are fields that the trade of tokens needs.
func missing(g *hyperv1.GCPPlatformSpec) []string {
	const field = "spec.platform.gcp.workloadIdentity."
	var list []string
	w := g.WorkloadIdentity
	for _, f := range []struct{ name, value string }{{"projectNumber", w.ProjectNumber}, {"poolID", string(w.PoolID)}, {"providerID", string(w.ProviderID)}} {
		if f.value == "" {
			list = append(list, field+f.name)
		}
	}
	for _, a := range accountsOf(g) {
		if a.email == "" {
			list = append(list, field+"serviceAccountsEmails."+a.field)
		}
	}
	return list
}

// Credentials implements platform.Platform: how to trade the token of a ServiceAccount of the hosted cluster for one of Google's. They hold no secret.
func (Platform) Credentials(_ context.Context, _ client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	g, err := specOf(hc)
	if err != nil {
		return nil, fmt.Errorf("no Secret can be made: %w", err)
	}
	if m := missing(g); len(m) > 0 {
		return nil, fmt.Errorf("no Secret can be made: %s must be set", strings.Join(m, ", "))
	}
	var list []client.Object
	for _, a := range accountsOf(g) {
		raw, err := json.Marshal(externalAccount(g, a.email))
		if err != nil {
			return nil, fmt.Errorf("encoding the credentials of Secret %s: %w", a.secret, err)
		}
		list = append(list, cloud.Secret(hcpNamespace, a.secret, map[string][]byte{credentialsKey: raw}))
	}
	return list, nil
}

func externalAccount(g *hyperv1.GCPPlatformSpec, email string) map[string]any {
	w := g.WorkloadIdentity
	return map[string]any{
		"type":                              "external_account",
		"audience":                          fmt.Sprintf("//iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/providers/%s", w.ProjectNumber, w.PoolID, w.ProviderID),
		"subject_token_type":                "urn:ietf:params:oauth:token-type:jwt",
		"token_url":                         tokenURL,
		"service_account_impersonation_url": fmt.Sprintf(impersonateURL, email),
		"credential_source":                 map[string]any{"file": tokenFile, "format": map[string]any{"type": "text"}},
	}
}

// Reasons of the conditions, as published.
const (
	reasonMissing     = "MissingGCPConfiguration"
	reasonInvalid     = "InvalidWIFConfiguration"
	reasonValid       = "ValidWIFConfiguration"
	reasonReady       = "WIFReady"
	reasonCredentials = "CredentialsError"
)

// Conditions implements platform.ConditionReporter.
func (Platform) Conditions(in cluster.Input) (set []metav1.Condition, absent []string) {
	return append(identities(in.HostedCluster), linksOf(in)...), nil
}

// identities says whether everything is there by which programs of the control plane become accounts of the project.
func identities(hc *hyperv1.HostedCluster) []metav1.Condition {
	const identity, credentials = hyperv1.ValidGCPWorkloadIdentity, hyperv1.ValidGCPCredentials
	g, err := specOf(hc)
	if err != nil {
		return []metav1.Condition{conditions.False(identity, reasonMissing, err.Error()), conditions.False(credentials, reasonCredentials, err.Error())}
	}
	if m := missing(g); len(m) > 0 {
		text := strings.Join(m, ", ") + " must be set: write what \"hypershift create iam gcp\" printed"
		return []metav1.Condition{conditions.False(identity, reasonInvalid, text), conditions.False(credentials, reasonCredentials, text)}
	}
	return []metav1.Condition{
		conditions.True(identity, reasonValid, "Everything that the trade of tokens needs is set"), conditions.True(credentials, reasonReady, "Credentials are made from the workload identity"),
	}
}

// Traits implements platform.Platform.
func (Platform) Traits() machine.Traits {
	return machine.Traits{Managed: true, TemplateKind: templateKind, Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64}}
}

// DeleteCredentials implements platform.Platform: there is nothing outside the namespace.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Mistakes implements platform.Validator.
func (Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	g, err := specOf(hc)
	if err != nil {
		return []string{err.Error()}
	}
	var mistakes []string
	for _, field := range missing(g) {
		mistakes = append(mistakes, field+` is empty: write what "hypershift create iam gcp" printed`)
	}
	return mistakes
}
