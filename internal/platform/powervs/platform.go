// Package powervs is the platform of hosted clusters whose machines are Power Virtual Servers of IBM's.
package powervs

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

var (
	groupVersion = schema.GroupVersion{Group: cloud.Infrastructure, Version: "v1beta2"}
	clusterKind  = groupVersion.WithKind("IBMPowerVSCluster")
	imageKind    = groupVersion.WithKind("IBMPowerVSImage")
	templateKind = groupVersion.WithKind("IBMPowerVSMachineTemplate")
)

// Keys of credentials: the key itself, and a file of variables that IBM's library reads.
const (
	keyKey  = "ibmcloud_api_key"
	fileKey = "ibm-credentials.env"
)

const credentialsDir = "/home/.ibmcloud"

func specOf(hc *hyperv1.HostedCluster) (*hyperv1.PowerVSPlatformSpec, error) {
	if p := hc.Spec.Platform.PowerVS; p != nil {
		return p, nil
	}
	return nil, errors.New("spec.platform.powervs is missing: describe the service instance and its credentials there")
}

type clusterSpec struct {
	ServiceInstanceID    string          `json:"serviceInstanceID"`
	ControlPlaneEndpoint *cloud.Endpoint `json:"controlPlaneEndpoint,omitempty"`
}

// InfraCR implements platform.Platform.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	p, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	return cloud.External(clusterKind, hc, hcpNamespace, hc.Name, &clusterSpec{ServiceInstanceID: p.ServiceInstanceID, ControlPlaneEndpoint: cloud.EndpointOf(endpoint)})
}

// InfraStatus implements platform.InfraKeeper.
func (Platform) InfraStatus() map[string]any { return cloud.Ready() }

// CAPIProvider implements platform.Platform.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	secret := ""
	if p := hc.Spec.Platform.PowerVS; p != nil {
		secret = p.NodePoolManagementCreds.Name
	}
	return cloud.Provider{
		Tag: "ibmcloud-cluster-api-controllers", Annotation: hyperv1.ClusterAPIPowerVSProviderImage, Memory: "100Mi",
		Command: []string{"/bin/cluster-api-provider-ibmcloud-controller-manager"},
		Args:    []string{"--namespace=$(MY_NAMESPACE)", "--leader-elect=true", "--provider-id-fmt=v2"},
		Env:     []corev1.EnvVar{{Name: "IBM_CREDENTIALS_FILE", Value: credentialsDir + "/" + fileKey}},
		Secret:  secret, Dir: credentialsDir,
	}.Deployment(hc), nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule { return nil }

// Credentials implements platform.Platform: five Secrets of the user's, under their own names. All that are wrong are told at once.
func (Platform) Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	p, err := specOf(hc)
	if err != nil {
		return nil, fmt.Errorf("no Secret can be copied: %w", err)
	}
	both := []string{keyKey, fileKey}
	var list []client.Object
	var errs []error
	copied := map[string]bool{}
	for _, ref := range []struct {
		field string
		name  string
		keys  []string
	}{
		{"kubeCloudControllerCreds", p.KubeCloudControllerCreds.Name, both}, {"nodePoolManagementCreds", p.NodePoolManagementCreds.Name, []string{fileKey}},
		{"ingressOperatorCloudCreds", p.IngressOperatorCloudCreds.Name, both}, {"storageOperatorCloudCreds", p.StorageOperatorCloudCreds.Name, both},
		{"imageRegistryOperatorCloudCreds", p.ImageRegistryOperatorCloudCreds.Name, both},
	} {
		data, err := cloud.Read(ctx, reader, hc.Namespace, cloud.Source{Field: "spec.platform.powervs." + ref.field, Name: ref.name, Keys: ref.keys})
		switch {
		case err != nil:
			errs = append(errs, err)
		case copied[ref.name]: // one Secret may serve several programs; it was copied with both keys, or has but one
			continue
		default:
			copied[ref.name] = true
			list = append(list, cloud.Secret(hcpNamespace, ref.name, cloud.Only(data, both...)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, nil
}

// Traits implements platform.Platform.
func (Platform) Traits() machine.Traits {
	return machine.Traits{Managed: true, TemplateKind: templateKind, Architectures: []string{hyperv1.ArchitecturePPC64LE}}
}

// DeleteCredentials implements platform.Platform: there is nothing outside the namespace.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Mistakes implements platform.Validator.
func (Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	p, err := specOf(hc)
	if err != nil {
		return []string{err.Error()}
	}
	var mistakes []string
	if p.ServiceInstanceID == "" {
		mistakes = append(mistakes, "spec.platform.powervs.serviceInstanceID is empty: name the service instance that machines are made in")
	}
	if p.Subnet == nil || (p.Subnet.ID == nil) == (p.Subnet.Name == nil) {
		mistakes = append(mistakes, "spec.platform.powervs.subnet must have either an id or a name: name the network of machines")
	}
	return mistakes
}
