package encryption

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// ErrKey is wrapped by the errors of ReadKey that a change of a Secret can heal: it is missing, or holds no key.
var ErrKey = errors.New("no usable encryption key")

// ReadKey reads the key in a Secret of a control plane namespace.
func ReadKey(ctx context.Context, reader client.Reader, namespace, name string) (Key, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return Key{}, fmt.Errorf("%w: Secret %s does not exist", ErrKey, name)
	}
	if err != nil {
		return Key{}, fmt.Errorf("reading the encryption key %s: %w", name, err)
	}
	data := secret.Data[hyperv1.AESCBCKeySecretKey]
	if len(data) != KeySize {
		return Key{}, fmt.Errorf("%w: key %q of Secret %s has %d bytes, and an AES key must have %d", ErrKey, hyperv1.AESCBCKeySecretKey, name, len(data), KeySize)
	}
	return NewKey(data), nil
}

// LiveConfig is the configuration that kube-apiserver is given at present.
type LiveConfig struct {
	Keys []Key // the writing one first; none before the first time
	// Plugins are the names of all that plugins hold, also of other plugins than ours, in the order of kube-apiserver's health checks.
	Plugins []string
	Hash    string
	// Version changes whenever anything about the configuration may have.
	Version string
	// ResourceVersion is that of the Secret; empty when there is none.
	ResourceVersion string
}

// ReadConfig reads the live configuration; there is none before the first time.
func ReadConfig(ctx context.Context, reader client.Reader, namespace string) (LiveConfig, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ConfigSecret}, secret)
	if apierrors.IsNotFound(err) {
		return LiveConfig{}, nil
	}
	if err != nil {
		return LiveConfig{}, fmt.Errorf("reading Secret %s: %w", ConfigSecret, err)
	}
	raw := secret.Data[ConfigKey]
	keys, err := ParseKeys(secret.Data)
	if err != nil {
		return LiveConfig{}, err
	}
	return LiveConfig{Keys: keys, Plugins: pluginNames(raw), Hash: ConfigHash(raw), Version: string(secret.UID) + "/" + secret.ResourceVersion, ResourceVersion: secret.ResourceVersion}, nil
}

// Deployed says whether there may be servers already: there is a Deployment of them.
func Deployed(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.KubeAPIServer}, &appsv1.Deployment{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Deployment %s: %w", names.KubeAPIServer, err)
	}
	return err == nil, nil
}

// Converged says whether servers run, and every one of them has the configuration with this hash: the Deployment asks for it and is complete, and no pod of
// before runs or is still going away. Servers that are not there, as in a cluster that sleeps, show nothing: no server may ever have started with the
// configuration. reader must not be behind the API server for pods.
func Converged(ctx context.Context, reader client.Reader, namespace, hash string) (bool, error) {
	d := &appsv1.Deployment{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.KubeAPIServer}, d)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Deployment %s: %w", names.KubeAPIServer, err)
	}
	if err != nil || d.Spec.Template.Annotations[HashAnnotation] != hash || !complete(d) {
		return false, nil
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": names.KubeAPIServer}); err != nil {
		return false, fmt.Errorf("listing the pods of %s: %w", names.KubeAPIServer, err)
	}
	for _, pod := range pods.Items {
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded // evicted: stays until somebody deletes it
		if !pod.DeletionTimestamp.IsZero() || !ended && pod.Annotations[HashAnnotation] != hash {
			return false, nil
		}
	}
	return true, nil
}

// complete says whether there are replicas, every one of them runs the newest specification and no older one is left.
func complete(d *appsv1.Deployment) bool {
	want, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return want > 0 && s.ObservedGeneration >= d.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want
}
