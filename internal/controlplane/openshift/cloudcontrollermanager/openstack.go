package cloudcontrollermanager

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

const (
	openStackCA    = "openstack-trusted-ca"
	openStackCADir = "/etc/pki/ca-trust/extracted/pem"
	caBundleKey    = "ca-bundle.pem"
	cloudConfKey   = "cloud.conf"
)

// NewOpenStack makes the component of this platform.
func NewOpenStack() *component.WorkloadComponent {
	return builder("openstack", hyperv1.OpenStackPlatform, component.Options{MultiZoneSpread: true}, adaptOpenStack).
		WithManifestAdapter("openstack-cloud-config.yaml", component.AdaptManifest(openStackConfig)).
		WithManifestAdapter("openstack-trusted-ca.yaml", component.When(hasOpenStackCA), component.AdaptManifest(openStackTrust)).
		Build()
}

// openStack is spec.platform.openstack; empty when there is none.
func openStack(hcp *hyperv1.HostedControlPlane) hyperv1.OpenStackPlatformSpec {
	if o := hcp.Spec.Platform.OpenStack; o != nil {
		return *o
	}
	return hyperv1.OpenStackPlatformSpec{}
}

// credentials are the data of the Secret with the user's credentials. On another platform, of which a preview may show the component, there are none.
func credentials(ctx component.WorkloadContext) (map[string][]byte, error) {
	if ctx.HCP.Spec.Platform.OpenStack == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: openStack(ctx.HCP).IdentityRef.Name}
	err := ctx.Reader.Get(ctx.Context, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s, which spec.platform.openstack.identityRef names, does not exist: create it in the namespace of the HostedCluster", key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret.Data, nil
}

func hasOpenStackCA(ctx component.WorkloadContext) (bool, error) {
	data, err := credentials(ctx)
	return len(data["cacert"]) > 0, err
}

func adaptOpenStack(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	main := component.Container(pod, Container)
	kit.SetEnv(main, "OCP_INFRASTRUCTURE_NAME", ctx.HCP.Spec.InfraID)
	kit.Volume(pod, "secret-occm").Secret.SecretName = openStack(ctx.HCP).IdentityRef.Name
	trusted, err := hasOpenStackCA(ctx)
	if err != nil || !trusted {
		return err
	}
	volume := component.ConfigMapVolume("trusted-ca", openStackCA)
	volume.ConfigMap.Items = []corev1.KeyToPath{{Key: caBundleKey, Path: caBundleKey}}
	component.AddVolume(pod, Container, volume, openStackCADir)
	return nil
}

func openStackConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	data, err := credentials(ctx)
	if err != nil {
		return err
	}
	o := openStack(ctx.HCP)
	global := []setting{{"use-clouds", "true"}, {"clouds-file", "/etc/openstack/secret/clouds.yaml"}, {"cloud", o.IdentityRef.CloudName}}
	balancer := []setting{{"max-shared-lb", "1"}, {"manage-security-groups", "true"}}
	cm.Data = map[string]string{}
	if ca := data["cacert"]; len(ca) > 0 {
		global = append(global, setting{"ca-file", openStackCADir + "/" + caBundleKey})
		cm.Data[caBundleKey] = string(ca)
	}
	if o.ExternalNetwork != nil && o.ExternalNetwork.ID != nil {
		balancer = append(balancer, setting{"floating-network-id", string(ptr.Deref(o.ExternalNetwork.ID, ""))})
	}
	var networks []string
	for _, n := range ctx.HCP.Spec.Networking.MachineNetwork {
		networks = append(networks, string(n.CIDR))
	}
	var conf ini
	conf.section("Global", global...)
	conf.section("LoadBalancer", balancer...)
	if len(networks) > 0 {
		conf.section("Networking", setting{"address-sort-order", strings.Join(networks, ",")})
	}
	cm.Data[cloudConfKey] = string(data[cloudConfKey]) + conf.text.String()
	return conf.err
}

func openStackTrust(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	data, err := credentials(ctx)
	cm.Data = map[string]string{caBundleKey: string(data["cacert"])}
	return err
}
