package kit

import (
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
)

// Mount adds a volume to a pod and mounts it into one container.
func Mount(pod *corev1.PodSpec, container string, volume corev1.Volume, dir string) {
	pod.Volumes = append(pod.Volumes, volume)
	if c := component.Container(pod, container); c != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: dir})
	}
}

// Volume is the volume of a pod by its name, nil when there is none.
func Volume(pod *corev1.PodSpec, name string) *corev1.Volume {
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == name {
			return &pod.Volumes[i]
		}
	}
	return nil
}

// trustedDir is where a container looks for certificates of authorities, besides those in its image.
const trustedDir = "/etc/pki/tls/certs"

// TrustBundles mounts the certificate authorities that the user has added into a container: those of spec.additionalTrustBundle, and those of
// image registries.
func TrustBundles(ctx component.WorkloadContext, pod *corev1.PodSpec, container string) error {
	var sources []corev1.VolumeProjection
	var files []string
	add := func(configMap string, items ...corev1.KeyToPath) {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: items}})
		for _, item := range items {
			files = append(files, item.Path)
		}
	}
	if bundle := ctx.HCP.Spec.AdditionalTrustBundle; bundle != nil {
		add(bundle.Name, corev1.KeyToPath{Key: names.CABundleKey, Path: "additional-ca-bundle.pem"})
	}
	if c := ctx.HCP.Spec.Configuration; c != nil && c.Image != nil && c.Image.AdditionalTrustedCA.Name != "" {
		cm := &corev1.ConfigMap{}
		name := c.Image.AdditionalTrustedCA.Name
		err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, cm)
		if err != nil && !(apierrors.IsNotFound(err) && ctx.Preview()) {
			return fmt.Errorf("spec.configuration.image.additionalTrustedCA: reading ConfigMap %s: %w", name, err)
		}
		var items []corev1.KeyToPath
		for i, key := range slices.Sorted(maps.Keys(cm.Data)) {
			items = append(items, corev1.KeyToPath{Key: key, Path: fmt.Sprintf("image-registry-%d.pem", i+1)})
		}
		if len(items) > 0 { // none: a preview without the object
			add(name, items...)
		}
	}
	if len(files) == 0 {
		return nil
	}
	const volume = "additional-trust-bundle"
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: sources, DefaultMode: ptr.To[int32](0o644),
	}}})
	if c := component.Container(pod, container); c != nil {
		for _, file := range files {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path.Join(trustedDir, file), SubPath: file})
		}
	}
	return nil
}
