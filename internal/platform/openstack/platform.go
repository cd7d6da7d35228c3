// Package openstack is the platform of hosted clusters whose machines are servers of an OpenStack.
package openstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

var (
	groupVersion = schema.GroupVersion{Group: cloud.Infrastructure, Version: "v1beta1"}
	clusterKind  = groupVersion.WithKind("OpenStackCluster")
	templateKind = groupVersion.WithKind("OpenStackMachineTemplate")
	serverKind   = schema.GroupVersionKind{Group: cloud.Infrastructure, Version: "v1alpha1", Kind: "OpenStackServer"}
	imageKind    = schema.GroupVersionKind{Group: "openstack.k-orc.cloud", Version: "v1alpha1", Kind: "Image"}
)

// Keys of the user's credentials.
const (
	cloudsKey = "clouds.yaml"
	caKey     = "cacert"
	confKey   = "clouds.conf"
)

// imageFinalizer keeps the credentials while an image in the cloud needs them to be removed.
const imageFinalizer = "openstack.k-orc.cloud/image"

func specOf(hc *hyperv1.HostedCluster) (*hyperv1.OpenStackPlatformSpec, error) {
	if o := hc.Spec.Platform.OpenStack; o != nil {
		return o, nil
	}
	return nil, errors.New("spec.platform.openstack is missing: name the credentials of an OpenStack there")
}

// InfraCR implements platform.Platform: an OpenStackCluster, which its provider keeps, and says of when it is ready.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	spec, err := clusterOf(hc, endpoint)
	if err != nil {
		return nil, err
	}
	return cloud.Cluster(clusterKind, hc, hcpNamespace, hc.Name, spec)
}

// CAPIProvider implements platform.Platform.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	return cloud.Provider{
		Tag: "openstack-cluster-api-controllers", Annotation: hyperv1.ClusterAPIOpenStackProviderImage, Memory: "100Mi",
		Args: []string{
			"--namespace=$(MY_NAMESPACE)", "--leader-elect", "--v=2", "--skip-crd-migration-phases=StorageVersionMigration", "--skip-crd-migration-phases=CleanupManagedFields",
		},
	}.Deployment(hc), nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{cloud.Everything("ipam.cluster.x-k8s.io", "*"), cloud.Everything("openstack.k-orc.cloud", "*")}
}

// Credentials implements platform.Platform: a copy of the user's Secret under its own name, and those that operators look for.
func (Platform) Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	o, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	const field = "spec.platform.openstack.identityRef"
	if reserved(o.IdentityRef.Name) {
		return nil, fmt.Errorf("%s.name is %s, which is the name of a Secret of the control plane: give the Secret another name", field, o.IdentityRef.Name)
	}
	data, err := cloud.Read(ctx, reader, hc.Namespace, cloud.Source{Field: field, Name: o.IdentityRef.Name, Keys: []string{cloudsKey}})
	if err != nil {
		return nil, err
	}
	list := []client.Object{cloud.Secret(hcpNamespace, o.IdentityRef.Name, cloud.Only(data, cloudsKey, caKey))}
	for _, name := range operatorSecrets {
		list = append(list, cloud.Secret(hcpNamespace, name, operatorData(o, data)))
	}
	return list, nil
}

// operatorSecrets are those of operators of the control plane that speak to the cloud.
var operatorSecrets = []string{"cloud-network-config-controller-creds", "openstack-cloud-credentials", "manila-cloud-credentials"}

// caFile is where operators of a payload find the authority of the cloud.
const caFile = "/etc/pki/ca-trust/extracted/pem/ca-bundle.pem"

func operatorData(o *hyperv1.OpenStackPlatformSpec, data map[string][]byte) map[string][]byte {
	conf := "[Global]\nuse-clouds = true\nclouds-file = /etc/openstack/secret/clouds.yaml\ncloud = " + o.IdentityRef.CloudName + "\n"
	out := map[string][]byte{cloudsKey: data[cloudsKey]}
	if ca := data[caKey]; len(ca) > 0 {
		conf += "ca-file = " + caFile + "\n"
		out[caKey], out["ca-bundle.pem"] = ca, ca
	}
	out[confKey] = []byte(conf)
	return out
}

// reserved names are those of Secrets that a copy must not replace.
func reserved(name string) bool {
	return slices.Contains([]string{names.PullSecret, names.SSHKey, names.ServiceAccountKey, "root-ca"}, name) || slices.Contains(operatorSecrets, name) || strings.HasSuffix(name, "-signer") || strings.HasSuffix(name, "-kubeconfig")
}

// Traits implements platform.Platform.
func (Platform) Traits() machine.Traits {
	return machine.Traits{Managed: true, TemplateKind: templateKind, Architectures: []string{hyperv1.ArchitectureAMD64}}
}

// DeleteCredentials implements platform.Platform: there is nothing outside the namespace.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Mistakes implements platform.Validator.
func (Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	o, err := specOf(hc)
	if err != nil {
		return []string{err.Error()}
	}
	var mistakes []string
	if len(o.Subnets) == 0 && len(hc.Spec.Networking.MachineNetwork) == 0 {
		mistakes = append(mistakes, noMachineNetwork)
	}
	if strings.ContainsAny(o.IdentityRef.CloudName, "\r\n") {
		mistakes = append(mistakes, "spec.platform.openstack.identityRef.cloudName has more than one line: name a cloud of clouds.yaml")
	}
	return mistakes
}

// Remaining implements platform.Dismantler. Servers and images are deleted while the programs still run that remove them from the cloud: nobody would
// take off their finalizers later. The credentials go last, which one of these programs keeps for its images.
func (Platform) Remaining(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	var left []client.Object
	for _, gvk := range []schema.GroupVersionKind{serverKind, imageKind} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := reader.List(ctx, list, client.InNamespace(hcpNamespace))
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			continue // the kind isn't served, so there are none
		case err != nil:
			return nil, fmt.Errorf("listing %ss of namespace %s: %w", gvk.Kind, hcpNamespace, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(gvk)
			left = append(left, &list.Items[i])
		}
	}
	o := hc.Spec.Platform.OpenStack
	if len(left) > 0 || o == nil || o.IdentityRef.Name == "" {
		return left, nil
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: hcpNamespace, Name: o.IdentityRef.Name}
	if err := reader.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if !slices.Contains(secret.Finalizers, imageFinalizer) {
		return nil, nil
	}
	return []client.Object{secret}, nil
}

// Abandoned implements platform.Dismantler.
func (Platform) Abandoned(_ *hyperv1.HostedCluster, obj client.Object, _ time.Time) []string {
	if obj.GetObjectKind().GroupVersionKind().Kind == "Secret" && slices.Contains(obj.GetFinalizers(), imageFinalizer) {
		return []string{imageFinalizer}
	}
	return nil
}
