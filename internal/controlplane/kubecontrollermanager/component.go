// Package kubecontrollermanager is the component that runs Kubernetes' controllers for a hosted cluster.
//
// It is created before the hosted API serves: until then it tries to get its lease every few seconds. Its client CA is given
// as a file, because without it it would ask the hosted API when it starts, and end when there is no answer.
package kubecontrollermanager

import (
	"embed"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Name of the component.
const Name = names.KubeControllerManager

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		StartBeforeDependencies("etcd").
		WithAdaptFunction(adaptDeployment).
		// The signer of certificates and the server load their files again. Tokens, trust bundles and the kubeconfig do not.
		ReloadsFilesOf("server-crt", "cluster-signer", "client-ca").
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	services, pods := settings.ServiceCIDRs(ctx.HCP), settings.ClusterCIDRs(ctx.HCP)
	if len(services) == 0 || len(pods) == 0 {
		return errors.New("spec.networking names no clusterNetwork or no serviceNetwork")
	}
	main.Args = append(main.Args,
		"--cluster-cidr="+strings.Join(settings.OnePerFamily(pods), ","),
		"--service-cluster-ip-range="+strings.Join(settings.OnePerFamily(services), ","),
	)
	main.Args = append(main.Args, nodeCIDRs(ctx.HCP)...)
	if ctx.HCP.Spec.Platform.Type == hyperv1.AzurePlatform {
		main.Args = append(main.Args, "--cloud-provider=external")
	}
	main.Args = append(main.Args, settings.TLSOf(ctx.HCP).Flags()...)
	main.Args = append(main.Args, settings.FeatureGates(ctx.HCP)...)
	return nil
}

// nodeCIDRs has nodes get a range each out of the cluster network, when the user asks for it: most networks have their own way.
func nodeCIDRs(hcp *hyperv1.HostedControlPlane) []string {
	mode := hcp.Spec.Networking.AllocateNodeCIDRs
	if mode == nil || *mode != hyperv1.AllocateNodeCIDRsEnabled {
		return []string{"--allocate-node-cidrs=false"}
	}
	flags := []string{"--allocate-node-cidrs=true"}
	dual := len(settings.OnePerFamily(settings.ClusterCIDRs(hcp))) > 1
	for i, n := range hcp.Spec.Networking.ClusterNetwork {
		prefix, err := netip.ParsePrefix(string(n.CIDR))
		switch {
		case n.HostPrefix == 0 || err != nil:
		case !dual && i == 0:
			flags = append(flags, fmt.Sprintf("--node-cidr-mask-size=%d", n.HostPrefix))
		case dual && prefix.Addr().Is4():
			flags = append(flags, fmt.Sprintf("--node-cidr-mask-size-ipv4=%d", n.HostPrefix))
		case dual:
			flags = append(flags, fmt.Sprintf("--node-cidr-mask-size-ipv6=%d", n.HostPrefix))
		}
	}
	return flags
}
