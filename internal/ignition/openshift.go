package ignition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/release"
)

// errOutdated is wrapped when a token was made of another state of the cluster than is there now: its hash mismatches. Either follows the other soon.
var errOutdated = errors.New("hash mismatch")

// maxFeatureGate bounds the file with a FeatureGate; real ones have some KiB.
const maxFeatureGate = 1 << 20

// openShift gathers what only the payloads of OpenShift releases are made of, and compares it with what the token was made for: a payload must not be
// one of a cluster that has changed since, under a name that says otherwise.
func (r *Reconciler) openShift(ctx context.Context, secret *corev1.Secret, hcp *hyperv1.HostedControlPlane, found *release.Release, in *payload.Inputs) error {
	cm := &corev1.ConfigMap{}
	if err := r.read(ctx, token.MachineConfigServer, cm); err != nil {
		return err
	}
	cloud := &corev1.ConfigMap{}
	if name := token.CloudConfigName(hcp.Spec.Platform.Type); name != "" {
		if err := r.read(ctx, name, cloud); err != nil {
			return err
		}
	}
	for _, c := range []struct{ key, what, now string }{
		{token.PullSecretHashKey, "the pull secret", token.ContentHash(in.PullSecret)},
		{token.TrustBundleHashKey, "the additional trust bundle", token.ContentHash(in.TrustBundle)},
		{token.ClusterConfigKey, "the configuration of the cluster", cm.Data[token.ConfigurationHashKey]},
		{token.CloudConfigKey, "the configuration of the cloud", token.CloudConfigHash(cloud.Data)},
	} {
		if want := string(secret.Data[c.key]); want != "" && want != c.now {
			return fmt.Errorf("%w: %s has another hash than key %s of secret %s says; waiting until they agree", errOutdated, c.what, c.key, secret.Name)
		}
	}
	o := &payload.OpenShift{Release: found.Image, Digest: found.Digest, Cluster: maps.Clone(cm.Data), OSStream: string(secret.Data[token.OSStreamKey])}
	delete(o.Cluster, token.ConfigurationHashKey)
	if len(cloud.Data) > 0 {
		text, err := yaml.Marshal(&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: cloud.Name, Namespace: cloud.Namespace}, Data: cloud.Data,
		})
		if err != nil {
			return fmt.Errorf("writing config map %s: %w", cloud.Name, err)
		}
		o.CloudConfig = text
	}
	var err error
	if o.FeatureGate, err = featureGate(r.FeatureGates); err != nil {
		return err
	}
	in.OpenShift = o
	return nil
}

// featureGate reads the file that an init container has written.
func featureGate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading --feature-gate-manifest: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFeatureGate+1))
	if err != nil {
		return nil, fmt.Errorf("reading --feature-gate-manifest: %w", err)
	}
	if len(data) > maxFeatureGate {
		return nil, fmt.Errorf("--feature-gate-manifest %s has more than %d bytes", path, maxFeatureGate)
	}
	return data, nil
}
