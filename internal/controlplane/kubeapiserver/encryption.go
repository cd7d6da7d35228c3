package kubeapiserver

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/encryption"
)

func encrypted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.SecretEncryption != nil, nil
}

// adaptEncryptionConfig writes the encryption configuration, in the place of the one that it was decided from: a key that
// another process added since must not go.
func adaptEncryptionConfig(ctx component.WorkloadContext, secret *corev1.Secret) error {
	config, err := nextConfig(ctx)
	if err != nil {
		return err
	}
	secret.Data, secret.ResourceVersion = encryption.Files(config.keys), config.version
	secret.Data[encryption.ConfigKey] = config.raw
	return nil
}

// encryptionConfig is the next encryption configuration, and the resourceVersion of the present one.
type encryptionConfig struct {
	keys    []encryption.Key
	raw     []byte
	version string
}

func nextConfig(ctx component.WorkloadContext) (encryptionConfig, error) {
	spec := ctx.HCP.Spec.SecretEncryption
	if spec.Type != hyperv1.AESCBC {
		return encryptionConfig{}, fmt.Errorf("spec.secretEncryption.type %s is not supported on platform %s: use aescbc", spec.Type, ctx.HCP.Spec.Platform.Type)
	}
	keys, version, err := NextKeys(ctx)
	if err != nil {
		return encryptionConfig{}, err
	}
	raw, err := encryption.Config(keys)
	return encryptionConfig{keys: keys, raw: raw, version: version}, err
}

// NextKeys are the keys of the next encryption configuration, the writing one first, and the resourceVersion of the present one.
func NextKeys(ctx component.WorkloadContext) (keys []encryption.Key, version string, err error) {
	if spec := ctx.HCP.Spec.SecretEncryption; spec.Type == hyperv1.AESCBC && spec.AESCBC == nil {
		return nil, "", errors.New("spec.secretEncryption.aescbc is missing")
	}
	live, err := encryption.ReadConfig(ctx.Context, ctx.Reader, ctx.HCP.Namespace)
	if err != nil {
		return nil, "", err
	}
	wanted, err := observeKeys(ctx, live)
	if err != nil {
		return nil, "", err
	}
	keys, err = encryption.Order(wanted)
	return keys, live.ResourceVersion, err
}

// Names of what a plugin that holds keys needs.
const (
	pluginContainer = "kms-plugin"
	pluginSockets   = "kms-sockets"
	pluginKeys      = "kms-keys"
)

// addEncryption gives the server its encryption configuration, and the plugin that holds its keys if one does.
func addEncryption(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	config, err := nextConfig(ctx)
	if err != nil {
		return err
	}
	pod := &d.Spec.Template.Spec
	d.Spec.Template.Annotations = map[string]string{encryption.HashAnnotation: encryption.ConfigHash(config.raw)}
	volume := component.SecretVolume("secret-encryption", encryption.ConfigSecret)
	plugins := encryption.Plugins(config.keys)
	if plugins > 0 {
		volume.Secret.Items = []corev1.KeyToPath{{Key: encryption.ConfigKey, Path: encryption.ConfigKey}} // the keys are the plugin's
	}
	component.AddVolume(pod, container, volume, encryptionDir)
	if plugins > 0 {
		addPlugin(ctx, pod, plugins)
	}
	return nil
}

// addPlugin adds the plugin that holds keys. While it does not answer, what the server has read before goes on being readable; so the server is neither
// started anew for it nor taken out of its Service. One that starts needs it. Only while its process is down between two starts the kubelet counts the pod as
// not ready, and the Service has other servers at best: a container that does not run is not ready, whatever its probes.
func addPlugin(ctx component.WorkloadContext, pod *corev1.PodSpec, plugins int) {
	sleep := int64(5)
	if ctx.HighlyAvailable() {
		sleep = 70 // as long as kube-apiserver goes on
	}
	sockets := corev1.VolumeMount{Name: pluginSockets, MountPath: encryption.PluginSocketDir}
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: pluginContainer, Image: component.ImageControlPlaneOperator,
		Command:      []string{"/usr/bin/control-plane-operator", "kms-plugin"},
		Args:         []string{"--keys=" + encryption.PluginKeyDir, "--sockets=" + encryption.PluginSocketDir},
		Env:          []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "1"}, {Name: "GOMEMLIMIT", Value: "24MiB"}},
		Lifecycle:    preStop(sleep),
		Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("30Mi")}},
		VolumeMounts: []corev1.VolumeMount{sockets},
	})
	component.AddVolume(pod, pluginContainer, component.SecretVolume(pluginKeys, encryption.ConfigSecret), encryption.PluginKeyDir)
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: pluginSockets, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	main := component.Container(pod, container)
	main.VolumeMounts = append(main.VolumeMounts, sockets)
	WithoutPlugins(main, plugins)
}

// WithoutPlugins has the probes of a server that runs leave out its plugins: one that is started anew, or taken out of its Service, could not even be read from
// any more. One that starts needs them.
func WithoutPlugins(server *corev1.Container, plugins int) {
	checks := []string{encryption.HealthChecks}
	for i := range plugins {
		checks = append(checks, encryption.HealthCheck(i))
	}
	for _, probe := range []*corev1.Probe{server.ReadinessProbe, server.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			continue
		}
		for _, check := range checks {
			separator := "?"
			if strings.Contains(probe.HTTPGet.Path, "?") {
				separator = "&"
			}
			probe.HTTPGet.Path += separator + "exclude=" + check
		}
	}
}

// observeKeys reads what the order of keys is decided from.
func observeKeys(ctx component.WorkloadContext, live encryption.LiveConfig) (w encryption.Wanted, err error) {
	status := ctx.HCP.Status.SecretEncryption
	w.Live = live.Keys
	if w.Promoted, err = promotion(ctx, live.Keys); err != nil {
		return w, err
	}
	if w.Active, err = statusKey(ctx, live.Keys, status.ActiveKey); err != nil {
		return w, err
	}
	rotates := encryption.HashOf(status.TargetKey, encryption.Vault(ctx.HCP)) != ""
	if w.Active == nil && rotates {
		w.Active = &encryption.Plain
	}
	w.Target, err = statusKey(ctx, live.Keys, status.TargetKey)
	if errors.Is(err, encryption.ErrKey) && len(live.Keys) > 0 {
		// No server has the target, and who set it is about to choose another. Until then everything stays as it is.
		w.Target, err = &live.Keys[0], nil
	}
	if err != nil {
		return w, err
	}
	if err := specKeys(ctx, &w); err != nil {
		return w, err
	}
	if len(live.Keys) > 0 {
		w.Converged, err = encryption.Converged(ctx.Context, ctx.Reader, ctx.HCP.Namespace, live.Hash)
		return w, err
	}
	w.Unencrypted, err = encryption.Deployed(ctx.Context, ctx.Reader, ctx.HCP.Namespace)
	return w, err
}

// promotion is what is to become of the target: it goes when the spec names another key before it writes.
func promotion(ctx component.WorkloadContext, live []encryption.Key) (encryption.Promotion, error) {
	obs := encryption.Observed{Status: ctx.HCP.Status.SecretEncryption, Vault: encryption.Vault(ctx.HCP), Live: live}
	spec := ctx.HCP.Spec.SecretEncryption.AESCBC
	if active, _, ok := encryption.CloudRefs(ctx.HCP); ok {
		obs.Spec = &active
	} else if spec != nil && encryption.HashOf(obs.Status.TargetKey, obs.Vault) != "" {
		key, err := readKey(ctx, spec.ActiveKey.Name)
		if err != nil && !errors.Is(err, encryption.ErrKey) {
			return encryption.PromotionDue, err
		}
		if err == nil { // or the spec says nothing
			obs.Spec = ptr.To(encryption.AESCBCRef(spec.ActiveKey.Name, *key))
		}
	}
	return obs.Promotion(), nil
}

// specKeys reads what the spec names.
func specKeys(ctx component.WorkloadContext, w *encryption.Wanted) (err error) {
	if active, backup, ok := encryption.CloudRefs(ctx.HCP); ok {
		vault := encryption.Vault(ctx.HCP)
		if w.Active == nil {
			w.Spec = ptr.To(encryption.CloudKey(active, vault))
		}
		if encryption.HashOf(backup, vault) != "" {
			w.Backup = ptr.To(encryption.CloudKey(backup, vault))
		}
		return nil
	}
	spec := ctx.HCP.Spec.SecretEncryption.AESCBC
	if spec == nil {
		return fmt.Errorf("%w: spec.secretEncryption names none: set aescbc.activeKey with type aescbc, or kms with a key of its provider", encryption.ErrKey)
	}
	if w.Active == nil {
		if w.Spec, err = readKey(ctx, spec.ActiveKey.Name); err != nil {
			return err
		}
	}
	if spec.BackupKey != nil && spec.BackupKey.Name != "" {
		w.Backup, err = readKey(ctx, spec.BackupKey.Name)
		if err != nil && (!errors.Is(err, encryption.ErrKey) || w.Active == nil) {
			return err // With a status, nothing needs the backup key.
		}
	}
	return nil
}

// statusKey is a key that the status names; nil when it names none. The Secret may have got another content since; the live
// configuration then still has the key.
func statusKey(ctx component.WorkloadContext, live []encryption.Key, ref encryption.Ref) (*encryption.Key, error) {
	vault := encryption.Vault(ctx.HCP)
	hash := encryption.HashOf(ref, vault)
	if hash == "" {
		return nil, nil
	}
	if key, ok := encryption.Find(live, hash); ok {
		return &key, nil
	}
	status := ref.AESCBC
	if status == nil {
		return ptr.To(encryption.CloudKey(ref, vault)), nil
	}
	key, err := encryption.ReadKey(ctx.Context, ctx.Reader, ctx.HCP.Namespace, status.Secret.Name)
	if err == nil {
		if found, ok := key.Matching(status.DataHash); ok {
			return &found, nil
		}
	}
	if err != nil && !errors.Is(err, encryption.ErrKey) {
		return nil, err
	}
	return nil, fmt.Errorf("%w: the key with fingerprint %s that stored data needs is neither in Secret %s nor in use: put it back", encryption.ErrKey, status.DataHash, status.Secret.Name)
}

// readKey reads a key that the spec names, in the form that it is to have.
func readKey(ctx component.WorkloadContext, name string) (*encryption.Key, error) {
	key, err := encryption.ReadKey(ctx.Context, ctx.Reader, ctx.HCP.Namespace, name)
	if err != nil {
		return nil, err
	}
	key = key.In(encryption.FormOf(ctx.HCP))
	return &key, nil
}
