package inplace

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/ignition/clusterconfig"
	"hcp.internal/platform/internal/release"
)

// lookupTimeout bounds how long a pass waits for a registry.
const lookupTimeout = 30 * time.Second

// settings are what a daemon runs with.
type settings struct {
	image string // empty: the release has none
	env   []corev1.EnvVar
}

// settings of the daemons of a target. For an OpenShift release they are those of the release that machines are changed to, which may be another than the
// control plane's: its daemon knows its files.
func (r *Reconciler) settings(ctx context.Context, set *clusterv1.MachineSet, w world) (settings, error) {
	if r.Image != "" || r.Releases == nil {
		return settings{image: r.Image}, nil
	}
	list := &hyperv1.HostedControlPlaneList{}
	if err := r.Management.List(ctx, list, client.InNamespace(set.Namespace), client.Limit(2)); err != nil {
		return settings{}, fmt.Errorf("listing HostedControlPlanes of %s: %w", set.Namespace, err)
	}
	if len(list.Items) != 1 || w.release == "" {
		return settings{}, fmt.Errorf("the release that machines are to have is not known: key release of Secret %s, and one HostedControlPlane in %s", tokenSecret(set.Name, w.Target), set.Namespace)
	}
	hcp := &list.Items[0]
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: names.PullSecret}
	if err := r.Management.Get(ctx, key, secret); err != nil {
		return settings{}, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	provider := r.Releases
	if hcp.Spec.AdditionalTrustBundle != nil {
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: set.Namespace, Name: names.UserCABundle}
		if err := r.Management.Get(ctx, key, cm); err != nil {
			return settings{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		provider = release.WithTrustOf(provider, []byte(cm.Data[names.CABundleKey]))
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := provider.Lookup(ctx, w.release, secret.Data[names.DockerConfigKey])
	if err != nil {
		return settings{}, fmt.Errorf("reading release %q: %w", w.release, err)
	}
	image, _ := found.ImageFor(images.MachineConfig)
	return settings{image: image, env: proxyOf(hcp)}, nil
}

// proxyOf is how a daemon reaches registries: it fetches the operating system.
func proxyOf(hcp *hyperv1.HostedControlPlane) []corev1.EnvVar {
	c := hcp.Spec.Configuration
	if c == nil || c.Proxy == nil || c.Proxy.HTTPProxy+c.Proxy.HTTPSProxy == "" {
		return nil
	}
	var env []corev1.EnvVar
	for _, v := range []corev1.EnvVar{
		{Name: "HTTP_PROXY", Value: c.Proxy.HTTPProxy}, {Name: "HTTPS_PROXY", Value: c.Proxy.HTTPSProxy}, {Name: "NO_PROXY", Value: strings.Join(clusterconfig.NoProxy(hcp), ",")},
	} {
		if v.Value != "" {
			env = append(env, v)
		}
	}
	return env
}
