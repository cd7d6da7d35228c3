package component

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TrustedDir is where a container looks for certificates of authorities, besides those in its image.
const TrustedDir = "/etc/pki/tls/certs"

// TrustedFiles are certificates of authorities, each a file of its own below TrustedDir. The zero value has none.
type TrustedFiles struct {
	sources []corev1.VolumeProjection
	paths   []string
}

// Add takes keys of a ConfigMap as files.
func (f *TrustedFiles) Add(configMap string, items ...corev1.KeyToPath) {
	f.sources = append(f.sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: items,
	}})
	for _, item := range items {
		f.paths = append(f.paths, item.Path)
	}
}

// AddVolume gives a pod the volume that Mount refers to, unless there are no files.
func (f *TrustedFiles) AddVolume(pod *corev1.PodSpec, volume string) {
	if len(f.paths) == 0 {
		return
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: f.sources, DefaultMode: ptr.To(configMapMode),
	}}})
}

// Mount gives a container the files. Each is mounted by itself, so that those of the image stay.
func (f *TrustedFiles) Mount(c *corev1.Container, volume string) {
	for _, file := range f.paths {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path.Join(TrustedDir, file), SubPath: file})
	}
}
