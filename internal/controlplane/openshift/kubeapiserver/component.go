// Package kubeapiserver is the component that is the hosted API, as OpenShift builds it.
package kubeapiserver

import (
	"embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pki"
)

// Name of the component, and of its main container.
const Name = names.KubeAPIServer

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	b := component.NewDeploymentComponent(Name, assets, component.Options{RequestServing: true, MultiZoneSpread: true}).
		WithDependencies(names.Etcd, "featuregate-generator").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		WithManifestAdapter("audit-config.yaml", component.AdaptManifest(kit.AuditConfig)).
		WithManifestAdapter("kas-config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("auth-config.yaml", component.AdaptManifest(adaptAuthentication)).
		WithManifestAdapter("oauth-metadata.yaml", component.AdaptManifest(adaptOAuthMetadata)).
		WithManifestAdapter("recording-rules.yaml", component.AdaptManifest(adaptRules)).
		WithManifestAdapter("authentication-token-webhook-config.yaml", component.AdaptManifest(adaptTokenWebhook)).
		WithManifestAdapter("secret-encryption-config.yaml", component.When(encrypted), component.AdaptManifest(adaptEncryption), component.Locked()).
		WithManifestAdapter("aws-pod-identity-webhook-kubeconfig.yaml", component.EnableForPlatform(hyperv1.AWSPlatform), webhookKubeconfig(awsWebhook)).
		WithManifestAdapter("azure-workload-identity-webhook-kubeconfig.yaml", component.EnableForPlatform(hyperv1.AzurePlatform), webhookKubeconfig(azureWebhook)).
		WithManifestAdapter("azure-kms-secretproviderclass.yaml", component.When(azureKMS)).
		WithManifestAdapter("azure-kms-secretproviderclass.yaml", kit.SecretProviderClass(func(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
			return hcp.Spec.SecretEncryption.KMS.Azure.KMS
		})...)
	return withKubeconfigs(b).Build()
}

// withKubeconfigs are the Secrets by which the control plane, its operators and users reach the API.
func withKubeconfigs[W component.Workload](b *component.Builder[W]) *component.Builder[W] {
	custom := func(ctx component.WorkloadContext) (bool, error) { return ctx.HCP.Spec.KubeAPIServerDNSName != "", nil }
	return b.
		WithManifestAdapter("service-network-admin-kubeconfig.yaml", kit.Kubeconfig{Client: pki.SystemAdminClient}.Adapt()).
		WithManifestAdapter("localhost-kubeconfig.yaml", kit.Kubeconfig{Client: pki.SystemAdminClient, Server: localURL}.Adapt()).
		WithManifestAdapter("hcco-kubeconfig.yaml", kit.Kubeconfig{Client: pki.HCCOClient}.Adapt()).
		WithManifestAdapter("kas-bootstrap-container-kubeconfig.yaml", kit.Kubeconfig{Client: pki.KASBootstrapClient, Server: localURL}.Adapt()).
		WithManifestAdapter("bootstrap-kubeconfig.yaml", kit.Kubeconfig{Client: pki.NodeBootstrapClient, Server: nodeURL}.Adapt()).
		WithManifestAdapter("custom-admin-kubeconfig.yaml", component.When(custom),
			kit.Kubeconfig{Client: pki.SystemAdminClient, Server: customURL, NamedCertificates: true}.Adapt()).
		WithManifestAdapter("external-admin-kubeconfig.yaml",
			kit.Kubeconfig{Client: pki.SystemAdminClient, Server: publishedURL, NamedCertificates: true}.Adapt(),
			component.Named(adminName), component.AdaptManifest(adaptAdmin)).
		WithManifestAdapter("capi-kubeconfig.yaml",
			kit.Kubeconfig{Client: pki.SystemAdminClient, Key: pki.CAPIKubeconfigKey}.Adapt(),
			component.Named(capiName), component.AdaptManifest(adaptCAPI))
}

func localURL(ctx component.WorkloadContext) string {
	return pki.ServerURL("localhost", settings.APIPodPort(ctx.HCP))
}

// nodeURL is where nodes reach the API: those of private clusters by its private name.
func nodeURL(ctx component.WorkloadContext) string {
	if !kit.Private(ctx.HCP) {
		return publishedURL(ctx)
	}
	port := endpoints.BalancedAPIPort(ctx.HCP)
	if byRoute(ctx) {
		port = endpoints.RoutePort
	}
	return pki.ServerURL(kit.LocalAPIHost(ctx.HCP), port)
}

func byRoute(ctx component.WorkloadContext) bool {
	s := endpoints.StrategyFor(ctx.HCP, hyperv1.APIServer)
	return s != nil && s.Type == hyperv1.Route
}

// publishedURL is where users reach the API. A load balancer in a private network has no name that its certificate has.
func publishedURL(ctx component.WorkloadContext) string {
	if !kit.Public(ctx.HCP) && !byRoute(ctx) {
		return pki.ServerURL(kit.LocalAPIHost(ctx.HCP), endpoints.BalancedAPIPort(ctx.HCP))
	}
	return pki.ServerURL(ctx.Infra.APIHost, ctx.Infra.APIPort)
}

func customURL(ctx component.WorkloadContext) string {
	return pki.ServerURL(ctx.HCP.Spec.KubeAPIServerDNSName, ctx.Infra.APIPort)
}

// adminName is where the user wants the administrator's kubeconfig; empty: where it is.
func adminName(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.KubeConfig == nil {
		return ""
	}
	return hcp.Spec.KubeConfig.Name
}

// adaptAdmin puts the administrator's kubeconfig under the key that the user wants.
func adaptAdmin(ctx component.WorkloadContext, secret *corev1.Secret) error {
	ref := ctx.HCP.Spec.KubeConfig
	if ref == nil {
		return nil
	}
	if ref.Name == "" {
		return fmt.Errorf("spec.kubeconfig.name is empty: name the Secret, or leave spec.kubeconfig out")
	}
	if ref.Key != "" && ref.Key != pki.KubeconfigKey {
		secret.Data = map[string][]byte{ref.Key: secret.Data[pki.KubeconfigKey]}
	}
	return nil
}

// capiName is the name by which Cluster API finds its kubeconfig.
func capiName(hcp *hyperv1.HostedControlPlane) string { return pki.CAPIKubeconfig(hcp.Spec.InfraID) }

// adaptCAPI gives the kubeconfig the label by which Cluster API knows whose it is.
func adaptCAPI(ctx component.WorkloadContext, secret *corev1.Secret) error {
	secret.Labels["cluster.x-k8s.io/cluster-name"] = ctx.HCP.Spec.InfraID
	return nil
}

// adaptRules says whose the recorded series are.
func adaptRules(ctx component.WorkloadContext, u *unstructured.Unstructured) error {
	groups, _, err := unstructured.NestedSlice(u.Object, "spec", "groups")
	if err != nil {
		return err
	}
	for _, g := range groups {
		group, _ := g.(map[string]any)
		rules, _ := group["rules"].([]any)
		for _, r := range rules {
			if rule, ok := r.(map[string]any); ok {
				kit.Section(rule, "labels")["_id"] = ctx.HCP.Spec.ClusterID
			}
		}
	}
	return unstructured.SetNestedSlice(u.Object, groups, "spec", "groups")
}

// oauthURL is where users log in.
func oauthURL(ctx component.WorkloadContext) string {
	return pki.ServerURL(ctx.Infra.OAuthHost, ctx.Infra.OAuthPort)
}
