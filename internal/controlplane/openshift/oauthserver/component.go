// Package oauthserver is the component that runs OpenShift's OAuth server, where users of the hosted cluster log in.
package oauthserver

import (
	"cmp"
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Name of the component, of its main container, and of its Service.
const Name = "oauth-openshift"

const (
	auditVolume = "oauth-audit-webhook"
	httpsPort   = 8092 // of the proxy beside the server; the other has the port that both usually have

	// kubeadminPassword is the Secret with the password of the first administrator, and kubeadminHash an annotation that changes with it.
	kubeadminPassword = "kubeadmin-password"
	kubeadminHash     = "hypershift.openshift.io/kubeadmin-secret-hash"
)

//go:embed assets
var assets embed.FS

//go:embed pages
var pages embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{RequestServing: true, MultiZoneSpread: true}).
		WithPredicate(kit.WithOAuth).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("audit-config.yaml", component.AdaptManifest(adaptAuditConfig)).
		WithManifestAdapter("session-secret.yaml", component.AdaptManifest(adaptSession), component.Locked()).
		WithManifestAdapter("default-error-template.yaml", page("errors.html")).
		WithManifestAdapter("default-login-template.yaml", page("login.html")).
		WithManifestAdapter("default-provider-selection-template.yaml", page("providers.html")).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		InjectKonnectivityContainer(component.KonnectivityProxy{
			Mode:   component.DualProxy,
			HTTPS:  component.HTTPSProxyOptions{ServingPort: httpsPort, ConnectDirectlyToCloudAPIs: true},
			Socks5: component.Socks5ProxyOptions{ResolveFromGuestClusterDNS: true, ResolveFromManagementClusterDNS: true},
		}).
		Build()
}

// page puts one of our pages into a Secret.
func page(file string) component.ManifestOption {
	return component.AdaptManifest(func(_ component.WorkloadContext, secret *corev1.Secret) error {
		html, err := pages.ReadFile("pages/" + file)
		secret.Data = map[string][]byte{file: html}
		return err
	})
}

// adaptAuditConfig names the profile. The policy is the same for all: what users do is logged by the API servers.
func adaptAuditConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	cm.Data[settings.AuditProfileKey] = string(settings.AuditProfile(ctx.HCP))
	return nil
}

// oauth is spec.configuration.oauth, never nil.
func oauth(hcp *hyperv1.HostedControlPlane) *configv1.OAuthSpec {
	if c := hcp.Spec.Configuration; c != nil && c.OAuth != nil {
		return c.OAuth
	}
	return &configv1.OAuthSpec{}
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, pod := ctx.HCP, &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	direct := "kube-apiserver,audit-webhook," + serviceHost(hcp)
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		direct += ",iam.cloud.ibm.com,iam.test.cloud.ibm.com"
	}
	kit.SetEnv(main, "NO_PROXY", direct)
	main.Args = append(main.Args, kit.AuditWebhookArgs(ctx)...)
	if err := kit.Audit(ctx, pod, Name, auditVolume); err != nil {
		return err
	}
	for i, cert := range settings.APIServer(hcp).ServingCerts.NamedCertificates {
		kit.Mount(pod, Name, component.SecretVolume(fmt.Sprintf("named-cert-%d", i+1), cert.ServingCertificate.Name), namedDir(i))
	}
	templates := oauth(hcp).Templates
	for volume, secret := range map[string]string{
		"error-template": templates.Error.Name, "login-template": templates.Login.Name, "providers-template": templates.ProviderSelection.Name,
	} {
		for i := range pod.Volumes {
			if s := pod.Volumes[i].Secret; s != nil && pod.Volumes[i].Name == volume {
				s.SecretName = cmp.Or(secret, s.SecretName)
			}
		}
	}
	providers, _ := identityProviders(ctx) // ProvidersProblem tells of those that are left out
	for _, p := range providers {
		for _, file := range p.files {
			kit.Mount(pod, Name, file.volume, file.dir)
		}
	}
	return followPassword(ctx, d)
}

// namedDir is where a named serving certificate is, counted from 1.
func namedDir(i int) string { return fmt.Sprintf("/etc/kubernetes/certs/named-%d", i+1) }

// serviceHost is the name of the server within the management cluster.
func serviceHost(hcp *hyperv1.HostedControlPlane) string {
	return Name + "." + hcp.Namespace + ".svc.cluster.local"
}

// followPassword restarts the pods when kubeadmin gets another password, or none.
func followPassword(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	secret := &corev1.Secret{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: kubeadminPassword}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", kubeadminPassword, err)
	}
	meta := &d.Spec.Template.ObjectMeta
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[kubeadminHash] = secret.Annotations[kubeadminHash]
	return nil
}
