package kit

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// TrustBundles mounts the certificate authorities that the user has added into a container: those of spec.additionalTrustBundle, and those of
// image registries.
func TrustBundles(ctx component.WorkloadContext, pod *corev1.PodSpec, container string) error {
	files := component.TrustedFiles{}
	if bundle := ctx.HCP.Spec.AdditionalTrustBundle; bundle != nil {
		files.Add(bundle.Name, corev1.KeyToPath{Key: names.CABundleKey, Path: "additional-ca-bundle.pem"})
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
			files.Add(name, items...)
		}
	}
	const volume = "additional-trust-bundle"
	files.AddVolume(pod, volume)
	if c := component.Container(pod, container); c != nil {
		files.Mount(c, volume)
	}
	return nil
}
