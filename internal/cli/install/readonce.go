package install

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readOnce is a file that operators read when they start: a ConfigMap in the namespace of each of them. Without content there is nothing of it.
type readOnce struct {
	content                        []byte
	configMap, key, volume, folder string
	// hash is the annotation that makes Pods start anew when the content changes.
	hash string
}

// objects are the ConfigMap in a namespace.
func (f readOnce) objects(namespace string) []client.Object {
	if len(f.content) == 0 {
		return nil
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: f.configMap, Namespace: namespace},
		Data:       map[string]string{f.key: string(f.content)},
	}}
}

// mount gives the file to the first container of a Pod, which it returns; nil: there is none.
func (f readOnce) mount(template *corev1.PodTemplateSpec) *corev1.Container {
	if len(f.content) == 0 {
		return nil
	}
	sum := sha256.Sum256(f.content)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[f.hash] = hex.EncodeToString(sum[:8])
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: f.volume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: f.configMap}},
	}})
	c := &template.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: f.volume, MountPath: f.folder, ReadOnly: true})
	return c
}
