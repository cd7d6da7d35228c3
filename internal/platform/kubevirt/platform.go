// Package kubevirt is the platform of hosted clusters whose machines are virtual machines of KubeVirt, in the management cluster or in another one.
package kubevirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

// InfraSecret is the Secret of the control plane's namespace with the kubeconfig of the cluster that runs the virtual machines, where that is another.
const InfraSecret = "kubevirt-infra-credentials"

// kubeconfigKey is where providers look for it.
const kubeconfigKey = "kubeconfig"

var (
	groupVersion = schema.GroupVersion{Group: cloud.Infrastructure, Version: "v1alpha1"}
	clusterKind  = groupVersion.WithKind("KubevirtCluster")
	templateKind = groupVersion.WithKind("KubevirtMachineTemplate")
)

// clusterSpec is that of a KubevirtCluster.
type clusterSpec struct {
	InfraClusterSecretRef *secretReference `json:"infraClusterSecretRef,omitempty"`
}

type secretReference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func credentialsOf(hc *hyperv1.HostedCluster) *hyperv1.KubevirtPlatformCredentials {
	if k := hc.Spec.Platform.Kubevirt; k != nil {
		return k.Credentials
	}
	return nil
}

// InfraNamespace is where virtual machines are: the control plane's namespace, unless they are in another cluster.
func InfraNamespace(hc *hyperv1.HostedCluster, hcpNamespace string) string {
	if c := credentialsOf(hc); c != nil && c.InfraNamespace != "" {
		return c.InfraNamespace
	}
	return hcpNamespace
}

// InfraCR implements platform.Platform: a KubevirtCluster named after the infrastructure, without the endpoint of the API, which nobody asks it for.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, _ hyperv1.APIEndpoint) (client.Object, error) {
	spec := clusterSpec{}
	if credentialsOf(hc) != nil {
		spec.InfraClusterSecretRef = &secretReference{Kind: "Secret", Namespace: hcpNamespace, Name: InfraSecret}
	}
	return cloud.External(clusterKind, hc, hcpNamespace, hc.Spec.InfraID, &spec)
}

// InfraStatus implements platform.InfraKeeper.
func (Platform) InfraStatus() map[string]any { return cloud.Ready() }

// CAPIProvider implements platform.Platform. No release has an image of this provider.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	return cloud.Provider{
		Tag: "kubevirt-cluster-api-controllers", Annotation: hyperv1.ClusterAPIKubeVirtProviderImage, Memory: "100Mi",
		Args: []string{"--namespace=$(MY_NAMESPACE)", "--v=4", "--leader-elect=true"},
	}.Deployment(hc), nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		cloud.Everything("", "services"), cloud.Everything("kubevirt.io", "virtualmachines", "virtualmachineinstances"),
		{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes"}, Verbs: []string{"get", "list", "watch"}},
	}
}

// Credentials implements platform.Platform: the kubeconfig of the other cluster, with all that its Secret holds.
func (Platform) Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	c := credentialsOf(hc)
	if c == nil {
		return nil, nil
	}
	const field = "spec.platform.kubevirt.credentials.infraKubeConfigSecret"
	if c.InfraKubeConfigSecret == nil {
		return nil, fmt.Errorf("%s is missing: name a Secret with the kubeconfig of the cluster that runs the virtual machines", field)
	}
	key := c.InfraKubeConfigSecret.Key
	if key == "" {
		key = kubeconfigKey
	}
	data, err := cloud.Read(ctx, reader, hc.Namespace, cloud.Source{Field: field, Name: c.InfraKubeConfigSecret.Name, Keys: []string{key}})
	if err != nil {
		return nil, err
	}
	secret := cloud.Secret(hcpNamespace, InfraSecret, data)
	if len(data[kubeconfigKey]) == 0 {
		secret = cloud.Secret(hcpNamespace, InfraSecret, map[string][]byte{})
		for k, v := range data {
			secret.Data[k] = v
		}
		secret.Data[kubeconfigKey] = data[key]
	}
	return []client.Object{secret}, nil
}

// Traits implements platform.Platform. Virtual machines that run share the user data that they were made with.
func (Platform) Traits() machine.Traits {
	return machine.Traits{
		Managed: true, TemplateKind: templateKind, Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureS390X}, KeepUserData: true,
	}
}

// DeleteCredentials implements platform.Platform: there is nothing outside the namespace that isn't a pool's.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Default implements platform.Defaulter: names beside the virtual machines hold an ID of the cluster. It is made of the UID, so that whoever loses a race
// to write it has the same one.
func (Platform) Default(hc *hyperv1.HostedCluster) bool {
	if k := hc.Spec.Platform.Kubevirt; k != nil && k.GenerateID != "" || hc.UID == "" {
		return false
	}
	if hc.Spec.Platform.Kubevirt == nil {
		hc.Spec.Platform.Kubevirt = &hyperv1.KubevirtPlatformSpec{}
	}
	sum := sha256.Sum256([]byte(hc.UID))
	hc.Spec.Platform.Kubevirt.GenerateID = hex.EncodeToString(sum[:])[:generatedID]
	return true
}

// generatedID is the length of that ID.
const generatedID = 10

// Mistakes implements platform.Validator.
func (Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	c := credentialsOf(hc)
	switch {
	case c == nil:
		return nil
	case c.InfraNamespace == "":
		return []string{"spec.platform.kubevirt.credentials.infraNamespace is empty: name the namespace for virtual machines in the cluster that the kubeconfig is for"}
	case c.InfraKubeConfigSecret == nil || c.InfraKubeConfigSecret.Name == "":
		return []string{"spec.platform.kubevirt.credentials.infraKubeConfigSecret is missing: name a Secret with the kubeconfig of the cluster that runs the virtual machines"}
	}
	return nil
}

// check finds what the schema lets through.
func check(p *hyperv1.KubevirtNodePoolPlatform) error {
	const field = "spec.platform.kubevirt"
	if p == nil {
		return errors.New(field + " is missing: describe the virtual machines there")
	}
	if p.RootVolume == nil {
		return errors.New(field + ".rootVolume is missing: describe the disk that machines boot from")
	}
	if p.RootVolume.Type == hyperv1.KubevirtVolumeTypePersistent && p.RootVolume.Persistent == nil {
		return errors.New(field + ".rootVolume.persistent is missing, which type Persistent needs: set its size")
	}
	if p.AttachDefaultNetwork != nil && !*p.AttachDefaultNetwork && len(p.AdditionalNetworks) == 0 {
		return errors.New(field + ".attachDefaultNetwork is false and additionalNetworks is empty, so that machines would have no network: name one, or attach the default one")
	}
	for i, d := range p.KubevirtHostDevices {
		if d.Count < 1 {
			return fmt.Errorf("%s.hostDevices[%d].count is %d: it must be at least 1", field, i, d.Count)
		}
		if d.DeviceName == "" {
			return fmt.Errorf("%s.hostDevices[%d].deviceName is empty: name a device that KubeVirt permits", field, i)
		}
	}
	return nil
}
