package kit

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// CertsDir is where the credentials of a managed identity are mounted.
const CertsDir = "/mnt/certs"

// AzureTokenFile is where a component with a workload identity has the token of its ServiceAccount.
const AzureTokenFile = "/var/run/secrets/openshift/serviceaccount/token"

// ARO says whether a control plane is one of Azure Red Hat OpenShift, whose components have managed identities.
func ARO(ctx component.WorkloadContext) bool {
	azure := ctx.HCP.Spec.Platform.Azure
	if azure == nil {
		return ctx.Environment.ManagedService == component.AROHCP
	}
	return ctx.HCP.Spec.Platform.Type == hyperv1.AzurePlatform && azure.AzureAuthenticationConfig.AzureAuthenticationConfigType == hyperv1.AzureAuthenticationTypeManagedIdentities
}

// OnARO is ARO as a predicate.
func OnARO(ctx component.WorkloadContext) (bool, error) { return ARO(ctx), nil }

// ManagedIdentities are those of the control plane's components, nil where they have none.
func ManagedIdentities(hcp *hyperv1.HostedControlPlane) *hyperv1.ControlPlaneManagedIdentities {
	azure := hcp.Spec.Platform.Azure
	if azure == nil || azure.AzureAuthenticationConfig.ManagedIdentities == nil {
		return nil
	}
	return &azure.AzureAuthenticationConfig.ManagedIdentities.ControlPlane
}

// WorkloadIdentities are those of components that prove who they are by the token of a ServiceAccount, nil where there are none.
func WorkloadIdentities(hcp *hyperv1.HostedControlPlane) *hyperv1.AzureWorkloadIdentities {
	azure := hcp.Spec.Platform.Azure
	if azure == nil {
		return nil
	}
	return azure.AzureAuthenticationConfig.WorkloadIdentities
}

// vaultObjects name one object of a key vault, as the driver of the secrets store wants it: a list of texts that are YAML themselves.
const vaultObjects = `
array:
  - |
    objectName: %s
    objectEncoding: %s
    objectType: secret
`

// vaultName is what may be put there: a name of the key vault, or an encoding.
var vaultName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)

// SecretProviderClass has a manifest of that kind, which exists on ARO alone, fetch the credentials of an identity from the key vault.
func SecretProviderClass(of func(*hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity) []component.ManifestOption {
	return []component.ManifestOption{
		component.When(OnARO),
		component.AdaptManifest(func(ctx component.WorkloadContext, u *unstructured.Unstructured) error {
			all, identity := ManagedIdentities(ctx.HCP), of(ctx.HCP)
			if all == nil || identity == nil {
				return fmt.Errorf("spec.platform.azure.azureAuthenticationConfig.managedIdentities lacks the identity that SecretProviderClass %s is for", u.GetName())
			}
			allowed := func(s string) bool { return vaultName.MatchString(s) || s == "" && ctx.Preview() }
			if !allowed(identity.CredentialsSecretName) || !allowed(string(identity.ObjectEncoding)) {
				return fmt.Errorf("the identity of SecretProviderClass %s: credentialsSecretName %q and objectEncoding %q must be letters, digits and dashes", u.GetName(), identity.CredentialsSecretName, identity.ObjectEncoding)
			}
			return unstructured.SetNestedField(u.Object, map[string]any{
				"provider": "azure",
				"parameters": map[string]any{
					"usePodIdentity": "false", "useVMManagedIdentity": "true", "userAssignedIdentityID": ctx.Environment.KeyVaultClientID,
					"keyvaultName": all.ManagedIdentitiesKeyVault.Name, "tenantId": all.ManagedIdentitiesKeyVault.TenantID, "objects": fmt.Sprintf(vaultObjects, identity.CredentialsSecretName, identity.ObjectEncoding),
				},
			}, "spec")
		}),
	}
}

// MountIdentity mounts what a SecretProviderClass fetches into a container, at CertsDir.
func MountIdentity(pod *corev1.PodSpec, container, volume, class string) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "secrets-store.csi.k8s.io", ReadOnly: ptr.To(true), VolumeAttributes: map[string]string{"secretProviderClass": class},
	}}})
	if c := component.Container(pod, container); c != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: CertsDir, ReadOnly: true})
	}
}

// credentialsFile is the variable by which a component learns where the credentials of its managed identity are.
const credentialsFile = "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH"

// UseIdentity gives a container the credentials of a managed identity that a SecretProviderClass fetches, on ARO.
func UseIdentity(ctx component.WorkloadContext, pod *corev1.PodSpec, container, volume, class string, of func(*hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity) error {
	if !ARO(ctx) {
		return nil
	}
	identity := of(ctx.HCP)
	if identity == nil {
		return fmt.Errorf("spec.platform.azure.azureAuthenticationConfig.managedIdentities lacks the identity of container %s", container)
	}
	MountIdentity(pod, container, volume, class)
	SetEnv(component.Container(pod, container), credentialsFile, CertsDir+"/"+identity.CredentialsSecretName)
	return nil
}
