// Package azure is the platform of hosted clusters whose machines are virtual machines of Azure: self-managed ones, whose programs have workload
// identities, and those of Azure Red Hat OpenShift, which have managed identities.
package azure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct {
	// Clock tells how long machines are being deleted; nil: the real one.
	Clock clock.PassiveClock
}

var (
	groupVersion = schema.GroupVersion{Group: cloud.Infrastructure, Version: "v1beta1"}
	clusterKind  = groupVersion.WithKind("AzureCluster")
	identityKind = groupVersion.WithKind("AzureClusterIdentity")
	machineKind  = groupVersion.WithKind("AzureMachine")
	templateKind = groupVersion.WithKind("AzureMachineTemplate")
)

func specOf(hc *hyperv1.HostedCluster) (*hyperv1.AzurePlatformSpec, error) {
	if a := hc.Spec.Platform.Azure; a != nil {
		return a, nil
	}
	return nil, errors.New("spec.platform.azure is missing: describe subscription, network and identities there")
}

type clusterSpec struct {
	Location             string          `json:"location"`
	ResourceGroup        string          `json:"resourceGroup"`
	SubscriptionID       string          `json:"subscriptionID"`
	NetworkSpec          networkSpec     `json:"networkSpec"`
	IdentityRef          identityRef     `json:"identityRef"`
	ControlPlaneEndpoint *cloud.Endpoint `json:"controlPlaneEndpoint,omitempty"`
}

type networkSpec struct {
	Vnet           vnet         `json:"vnet"`
	NodeOutboundLB loadBalancer `json:"nodeOutboundLB"`
}

type vnet struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	ResourceGroup string `json:"resourceGroup"`
}

type loadBalancer struct {
	Name        string      `json:"name"`
	BackendPool backendPool `json:"backendPool"`
}

type backendPool struct {
	Name string `json:"name"`
}

type identityRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// InfraCR implements platform.Platform.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	a, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	net, err := parseResource("spec.platform.azure.vnetID", a.VnetID)
	if err != nil {
		return nil, err
	}
	return cloud.External(clusterKind, hc, hcpNamespace, hc.Name, &clusterSpec{
		Location: a.Location, ResourceGroup: a.ResourceGroupName, SubscriptionID: a.SubscriptionID,
		NetworkSpec: networkSpec{
			Vnet:           vnet{ID: a.VnetID, Name: net.name, ResourceGroup: net.group},
			NodeOutboundLB: loadBalancer{Name: hc.Spec.InfraID, BackendPool: backendPool{Name: hc.Spec.InfraID}},
		},
		IdentityRef:          identityRef{Kind: identityKind.Kind, Namespace: hcpNamespace, Name: hc.Name},
		ControlPlaneEndpoint: cloud.EndpointOf(endpoint),
	})
}

// InfraStatus implements platform.InfraKeeper.
func (Platform) InfraStatus() map[string]any { return cloud.Ready() }

type identitySpec struct {
	Type                 string            `json:"type"`
	ClientID             string            `json:"clientID,omitempty"`
	TenantID             string            `json:"tenantID"`
	CredentialsPath      string            `json:"userAssignedIdentityCredentialsPath,omitempty"`
	CredentialsCloudType string            `json:"userAssignedIdentityCredentialsCloudType,omitempty"`
	AllowedNamespaces    allowedNamespaces `json:"allowedNamespaces"`
}

type allowedNamespaces struct {
	List []string `json:"list"`
}

// certsDir is where the credentials of managed identities are mounted.
const certsDir = "/mnt/certs"

// cloudTypes are the clouds by the names that credentials of managed identities have.
var cloudTypes = map[string]string{"": "public", "AzurePublicCloud": "public", "AzureUSGovernmentCloud": "usgovernment", "AzureChinaCloud": "china"}

// Companions implements platform.Companion: the identity that the AzureCluster refers to.
func (Platform) Companions(hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	a, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	spec := identitySpec{TenantID: a.TenantID, AllowedNamespaces: allowedNamespaces{List: []string{hcpNamespace}}}
	switch ids, err := identitiesOf(a); {
	case err != nil:
		return nil, err
	case ids.workload != nil:
		spec.Type, spec.ClientID = "WorkloadIdentity", string(ids.workload.NodePoolManagement.ClientID)
	default:
		spec.Type = "UserAssignedIdentityCredential"
		spec.CredentialsPath = certsDir + "/" + ids.managed.ControlPlane.NodePoolManagement.CredentialsSecretName
		spec.CredentialsCloudType = cloudTypes[a.Cloud]
		if spec.CredentialsCloudType == "" {
			return nil, fmt.Errorf("spec.platform.azure.cloud is %q, which managed identities do not know: write AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud", a.Cloud)
		}
	}
	identity, err := cloud.Cluster(identityKind, hc, hcpNamespace, hc.Name, &spec)
	if err != nil {
		return nil, err
	}
	return []client.Object{identity}, nil
}

// identities are those of one of the two ways to prove who a program is.
type identities struct {
	workload *hyperv1.AzureWorkloadIdentities
	managed  *hyperv1.AzureResourceManagedIdentities
}

// identitiesOf are those that the type asks for.
func identitiesOf(a *hyperv1.AzurePlatformSpec) (identities, error) {
	const field = "spec.platform.azure.azureAuthenticationConfig"
	switch auth := a.AzureAuthenticationConfig; auth.AzureAuthenticationConfigType {
	case hyperv1.AzureAuthenticationTypeWorkloadIdentities:
		if auth.WorkloadIdentities != nil {
			return identities{workload: auth.WorkloadIdentities}, nil
		}
		return identities{}, errors.New(field + ".workloadIdentities is missing, which azureAuthenticationConfigType asks for: write the identities there")
	case hyperv1.AzureAuthenticationTypeManagedIdentities:
		if auth.ManagedIdentities != nil {
			return identities{managed: auth.ManagedIdentities}, nil
		}
		return identities{}, errors.New(field + ".managedIdentities is missing, which azureAuthenticationConfigType asks for: write the identities there")
	default:
		return identities{}, fmt.Errorf("%s.azureAuthenticationConfigType is %q: write WorkloadIdentities or ManagedIdentities", field, auth.AzureAuthenticationConfigType)
	}
}

// Variables and files by which programs prove who they are.
const (
	tokenFile   = "/var/run/secrets/openshift/serviceaccount/token"
	tokenVolume = "cloud-token"
)

// CAPIProvider implements platform.Platform.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	p := cloud.Provider{
		Tag: "azure-cluster-api-controllers", Annotation: hyperv1.ClusterAPIAzureProviderImage, Memory: "10Mi",
		Args: []string{
			"--namespace=$(MY_NAMESPACE)", "--leader-elect=true", "--feature-gates=MachinePool=false,ASOAPI=false", "--disable-controllers-or-webhooks=DisableASOSecretController",
		},
	}
	a := hc.Spec.Platform.Azure
	if a == nil {
		return p.Deployment(hc), nil
	}
	ids, err := identitiesOf(a)
	if err != nil {
		return nil, err
	}
	if ids.workload == nil {
		return p.Deployment(hc), nil
	}
	p.Env = []corev1.EnvVar{
		{Name: "AZURE_FEDERATED_TOKEN_FILE", Value: tokenFile}, {Name: "AZURE_CLIENT_ID", Value: string(ids.workload.NodePoolManagement.ClientID)},
		{Name: "AZURE_TENANT_ID", Value: a.TenantID},
	}
	spec := p.Deployment(hc)
	cloud.MintToken(&spec.Template.Spec, cloud.Token{Container: "cloud-token-minter", Volume: tokenVolume, Account: "capi-provider"})
	return spec, nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule { return nil }

// Traits implements platform.Platform.
func (Platform) Traits() machine.Traits {
	return machine.Traits{Managed: true, TemplateKind: templateKind, Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64}}
}

// DeleteCredentials implements platform.Platform: there is nothing outside the namespace.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Mistakes implements platform.Validator.
func (p Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	a, err := specOf(hc)
	if err != nil {
		return []string{err.Error()}
	}
	var mistakes []string
	for _, id := range []struct{ field, value string }{
		{"spec.platform.azure.vnetID", a.VnetID}, {"spec.platform.azure.subnetID", a.SubnetID}, {"spec.platform.azure.securityGroupID", a.SecurityGroupID},
	} {
		if _, err := parseResource(id.field, id.value); err != nil {
			mistakes = append(mistakes, err.Error())
		}
	}
	if _, err := p.Companions(hc, ""); err != nil {
		mistakes = append(mistakes, err.Error())
	}
	if a.Topology != "" && a.Topology != hyperv1.AzureTopologyPublic && (a.Private == nil || a.Private.Type == "") {
		mistakes = append(mistakes, fmt.Sprintf("spec.platform.azure.topology is %s and private.type is missing: write PrivateLink or Swift", a.Topology))
	}
	return mistakes
}

// resource is what the ID of a resource in Azure holds.
type resource struct{ group, name, child string }

// parseResource reads /subscriptions/⟨id⟩/resourceGroups/⟨group⟩/providers/⟨provider⟩/⟨kind⟩/⟨name⟩, maybe with ⟨kind⟩/⟨child⟩ behind.
func parseResource(field, id string) (resource, error) {
	parts := strings.Split(id, "/")
	if len(parts) != 9 && len(parts) != 11 || parts[0] != "" || !strings.EqualFold(parts[1], "subscriptions") || !strings.EqualFold(parts[3], "resourceGroups") ||
		!strings.EqualFold(parts[5], "providers") || parts[4] == "" || parts[8] == "" {
		return resource{}, fmt.Errorf("%s is %q, which is no ID of a resource: write /subscriptions/⟨id⟩/resourceGroups/⟨group⟩/providers/⟨provider⟩/⟨kind⟩/⟨name⟩", field, id)
	}
	r := resource{group: parts[4], name: parts[8]}
	if len(parts) == 11 {
		r.child = parts[10]
	}
	return r, nil
}

// stuckAfter is how long a machine may be deleted before it is given up.
const stuckAfter = 10 * time.Minute

// machineFinalizer is the provider's.
const machineFinalizer = "azuremachine.infrastructure.cluster.x-k8s.io"

// DeleteOrphanedMachines implements platform.OrphanDeleter: where identities are managed, they may be gone before the machines are.
func (p Platform) DeleteOrphanedMachines(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, hcpNamespace string) error {
	a := hc.Spec.Platform.Azure
	if a == nil || a.AzureAuthenticationConfig.AzureAuthenticationConfigType != hyperv1.AzureAuthenticationTypeManagedIdentities {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(groupVersion.WithKind(machineKind.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(hcpNamespace)); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("listing AzureMachines of namespace %s: %w", hcpNamespace, err)
	}
	var now time.Time
	if p.Clock != nil {
		now = p.Clock.Now()
	} else {
		now = clock.RealClock{}.Now()
	}
	for i := range list.Items {
		m := &list.Items[i]
		if !orphaned(m, now) {
			continue
		}
		before := m.DeepCopy()
		if !controllerutil.RemoveFinalizer(m, machineFinalizer) {
			continue
		}
		if err := c.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("giving up AzureMachine %s/%s: %w", hcpNamespace, m.GetName(), err)
		}
	}
	return nil
}

// orphaned tells that a machine can't be deleted.
func orphaned(m *unstructured.Unstructured, now time.Time) bool {
	if at := m.GetDeletionTimestamp(); at == nil || now.Sub(at.Time) <= stuckAfter {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	for _, c := range conditions {
		if of, ok := c.(map[string]any); ok && of["type"] == "Ready" && of["status"] == "False" && of["reason"] == "DeletionFailed" {
			return true
		}
	}
	return false
}
