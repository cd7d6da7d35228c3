// Package oauthapiserver is the component that serves the APIs of OpenShift's users and of their tokens.
package oauthapiserver

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Name of the component, and of its main container.
const Name = "openshift-oauth-apiserver"

const (
	auditVolume   = "oauth-audit-webhook"
	etcdContainer = "wait-for-etcd"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithPredicate(kit.WithOAuth).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("audit-config.yaml", component.AdaptManifest(kit.AuditConfig)).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		InjectKonnectivityContainer(component.KonnectivityProxy{Mode: component.Socks5Proxy, Socks5: component.Socks5ProxyOptions{ResolveFromGuestClusterDNS: true}}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	direct, err := kit.AuthProxyExceptions(ctx.HCP)
	if err != nil {
		return err
	}
	main := component.Container(pod, Name)
	kit.SetEnv(main, "NO_PROXY", direct)
	main.Args = append(main.Args, "--api-audiences="+settings.Issuer(ctx.HCP), "--etcd-servers="+kit.EtcdURL(ctx.HCP))
	main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	main.Args = append(main.Args, kit.AuditWebhookArgs(ctx)...)
	if timeout := inactivityTimeout(ctx.HCP); timeout != "" {
		main.Args = append(main.Args, "--accesstoken-inactivity-timeout="+timeout)
	}
	if err := kit.Audit(ctx, pod, Name, auditVolume); err != nil {
		return err
	}
	if !kit.ManagedEtcd(ctx.HCP) {
		component.RemoveContainer(pod, etcdContainer)
	}
	kit.AddReadinessCheck(ctx, pod)
	return nil
}

// inactivityTimeout is how long a token may go unused, as a Go duration; empty: for ever.
func inactivityTimeout(hcp *hyperv1.HostedControlPlane) string {
	c := hcp.Spec.Configuration
	if c == nil || c.OAuth == nil || c.OAuth.TokenConfig.AccessTokenInactivityTimeout == nil {
		return ""
	}
	return c.OAuth.TokenConfig.AccessTokenInactivityTimeout.Duration.String()
}
