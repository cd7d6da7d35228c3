package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/auditlogs"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/comeback"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/recovery"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/version"
)

// observe reads everything. An error means that the API server could not be read; what is wrong with the user's input is in the result.
func (r *Reconciler) observe(ctx context.Context, hc *hyperv1.HostedCluster) (state.Observed, error) {
	obs := state.Observed{HC: hc, Capabilities: r.Capabilities, PrivateCAPI: r.PrivateCAPI, Documents: r.Documents, Hibernation: pause.Hibernation(hc.Annotations, r.Clock.Now())}
	if !r.Environment.SizeTagging {
		obs.Off = append(obs.Off, support.SizeTagging)
	}
	ns := names.NamespaceOf(hc)
	var err error
	if obs.HCP, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: hc.Name}, &hyperv1.HostedControlPlane{}); err != nil {
		return obs, err
	}
	if obs.Namespace, err = r.namespace(ctx, ns); err != nil {
		return obs, err
	}
	if obs.TakenNames, err = r.takenNames(ctx, hc, obs.HCP); err != nil {
		return obs, err
	}
	if obs.Pools, err = operator.NodePoolsOf(ctx, r.Client, hc); err != nil {
		return obs, err
	}
	if r.Capabilities.ClusterAPI && hc.Spec.InfraID != "" {
		if obs.CAPICluster, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: hc.Spec.InfraID}, &clusterv1.Cluster{}); err != nil {
			return obs, err
		}
	}
	if obs.Sources, err = sources.Read(ctx, r.Live, hc); err != nil {
		return obs, err
	}
	if obs.Copies, err = sources.Copies(ctx, r.Client, hc); err != nil {
		return obs, err
	}
	if obs.Ignition, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: names.IgnitionServer}, &appsv1.Deployment{}); err != nil {
		return obs, err
	}
	if obs.Ignition != nil {
		if obs.IgnitionEndpoint, err = r.ignitionEndpoint(ctx, hc, ns); err != nil {
			return obs, err
		}
	}
	if obs.Published, err = r.publishedSecrets(ctx, hc, obs.HCP); err != nil {
		return obs, err
	}
	if !r.Capabilities.SecurityContextConstraints {
		if obs.UID, err = r.uids.Allocate(ctx, r.Client, ns, obs.Namespace); err != nil {
			return obs, err
		}
	}
	if err := r.observeTroubles(ctx, &obs); err != nil {
		return obs, err
	}
	if obs.Management, err = r.Management.Network(ctx); err != nil {
		return obs, err
	}
	if r.AuditLogs {
		if obs.AuditLogs, err = read.Optional(ctx, r.Client, client.ObjectKey{Name: auditlogs.ConfigurationName}, &auditlogv1alpha1.AuditLogPersistenceConfig{}); err != nil {
			return obs, fmt.Errorf("reading AuditLogPersistenceConfig %s: %w", auditlogs.ConfigurationName, err)
		}
	}
	obs.Management.Prometheus = r.Environment.PrometheusNamespace
	obs.Management.Gateway = r.Environment.GatewayNamespace
	r.observeOperators(ctx, &obs)
	obs.RecoveryImage = r.OperatorImage
	if r.EtcdRecovery && obs.HCP != nil {
		if obs.Etcds, err = recovery.Observe(ctx, r.Client, r.Live, hc); err != nil {
			return obs, err
		}
	}
	if err := r.observePlatform(ctx, &obs); err != nil {
		return obs, err
	}
	r.observeRelease(ctx, &obs)
	return obs, nil
}

// namespace reads the control-plane namespace. The cache has only ours, so when it has none, the API server is asked whether somebody else's
// is in the way.
func (r *Reconciler) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	ns, err := read.Optional(ctx, r.Client, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if ns != nil || err != nil {
		return ns, err
	}
	return read.Optional(ctx, r.Live, client.ObjectKey{Name: name}, &corev1.Namespace{})
}

func (r *Reconciler) observePlatform(ctx context.Context, obs *state.Observed) (err error) {
	obs.Getenv = os.Getenv
	if obs.Platform, obs.PlatformErr = r.Platforms.For(obs.HC.Spec.Platform.Type); obs.PlatformErr != nil {
		obs.Platform = nil
		return nil //nolint:nilerr // because a condition says it
	}
	obs.Credentials, obs.CredentialsErr = obs.Platform.Credentials(ctx, r.Live, obs.HC, names.NamespaceOf(obs.HC))
	if o, ok := obs.Platform.(platform.Observer); ok {
		obs.PlatformObjects, err = o.Observe(ctx, r.Client, obs.HC, names.NamespaceOf(obs.HC))
	}
	return err
}

// observeRelease looks the release up, and the image of the control-plane-operator and its labels.
func (r *Reconciler) observeRelease(ctx context.Context, obs *state.Observed) {
	secret, err := obs.Sources.PullSecret(obs.HC)
	if err != nil {
		obs.ReleaseErr = err
		return
	}
	provider := release.WithTrustOf(operator.WithMirrorsOf(r.Releases, obs.HC), obs.Sources.TrustBundle(&obs.HC.Spec))
	spec := &obs.HC.Spec
	if obs.UserRelease, obs.ReleaseErr = provider.Lookup(ctx, spec.Release.Image, secret); obs.ReleaseErr != nil {
		return
	}
	obs.Target = obs.UserRelease
	if spec.ControlPlaneRelease != nil && spec.ControlPlaneRelease.Image != "" {
		if obs.Target, obs.ReleaseErr = provider.Lookup(ctx, spec.ControlPlaneRelease.Image, secret); obs.ReleaseErr != nil {
			return
		}
	}
	comeback.Observe(ctx, obs, provider, secret)
	obs.OperatorImage = operatorImage(obs.HC.Annotations, obs.Target, r.OperatorImage)
	if labels, ok := obs.HC.Annotations[hyperv1.ControlPlaneOperatorImageLabelsAnnotation]; ok {
		obs.OperatorLabels = parseLabels(labels)
		return
	}
	if obs.OperatorImage == r.OperatorImage {
		obs.OperatorLabels = ownLabels
		return
	}
	// Labels only switch details; when they can't be read, the operator is taken for a current one.
	info, err := provider.Inspect(ctx, obs.OperatorImage, secret)
	switch {
	case isPending(err):
		obs.ReleaseErr = err
	case err == nil:
		obs.OperatorLabels = info.Labels
		if obs.OperatorLabels == nil {
			obs.OperatorLabels = map[string]string{}
		}
	}
}

// ownLabels is what control-plane-operators of our own image can do; no registry has to be asked for that.
var ownLabels = map[string]string{state.LabelCustomKubeconfig: "true", desired.LabelSignsCSRs: "true", capiproxy.ImageLabel: "true", images.LabelVersion: version.Semver()}

// operatorImage: the annotation beats the release, and the release beats our own image. What an OpenShift payload has under that tag is another project's,
// which knows nothing of what this one hands over.
func operatorImage(annotations map[string]string, target *release.Release, own string) string {
	if image := annotations[hyperv1.ControlPlaneOperatorImageAnnotation]; image != "" {
		return image
	}
	if image, ok := target.ImageFor(releaseTag); ok && target.Kubernetes {
		return image
	}
	return own
}

// publishedSecrets reads the credentials that the control plane offers, and who holds the names under which they are published.
func (r *Reconciler) publishedSecrets(ctx context.Context, hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) (state.PublishedSecrets, error) {
	p := state.PublishedSecrets{Existing: map[string]bool{}, Foreign: map[string]bool{}}
	if hcp == nil {
		return p, nil
	}
	var err error
	if ref := hcp.Status.KubeConfig; ref != nil {
		if p.Kubeconfig, err = r.secretKey(ctx, hcp.Namespace, ref.Name, ref.Key); err != nil {
			return p, err
		}
	}
	if ref := hcp.Status.CustomKubeconfig; ref != nil {
		if p.Custom, err = r.secretKey(ctx, hcp.Namespace, ref.Name, ref.Key); err != nil {
			return p, err
		}
	}
	if ref := hcp.Status.KubeadminPassword; ref != nil {
		if p.Password, err = r.secretKey(ctx, hcp.Namespace, ref.Name, state.PasswordKey); err != nil {
			return p, err
		}
	}
	for _, name := range []string{state.AdminKubeconfigName(hc.Name), state.CustomKubeconfigName(hc.Name), state.KubeadminPasswordName(hc.Name)} {
		if err := r.whose(ctx, hc, name, &p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// whose finds out who holds the name of a published Secret. The cache has only ours.
func (r *Reconciler) whose(ctx context.Context, hc *hyperv1.HostedCluster, name string, p *state.PublishedSecrets) error {
	key := client.ObjectKey{Namespace: hc.Namespace, Name: name}
	secret, err := read.Optional(ctx, r.Client, key, &corev1.Secret{})
	if err == nil && secret == nil && p.Offers(hc.Name, name) {
		secret, err = read.Optional(ctx, r.Live, key, &corev1.Secret{})
	}
	if err != nil || secret == nil {
		return err
	}
	if secret.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc) {
		p.Existing[name] = true
	} else {
		p.Foreign[name] = true
	}
	return nil
}

func (r *Reconciler) secretKey(ctx context.Context, ns, name, key string) ([]byte, error) {
	secret, err := read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: name}, &corev1.Secret{})
	if err != nil || secret == nil {
		return nil, err
	}
	return secret.Data[key], nil
}

// releaseTag is that of the control-plane-operator's image in releases.
const releaseTag = "hypershift"

// parseLabels reads "k=v,k2=v2"; what is no pair is left out.
func parseLabels(s string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		if k, v, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && k != "" {
			labels[k] = v
		}
	}
	return labels
}

func isPending(err error) bool { return errors.Is(err, release.ErrPending) }
