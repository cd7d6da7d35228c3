package component

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Workload is a kind that a component can have.
type Workload interface {
	*appsv1.Deployment | *appsv1.StatefulSet | *batchv1.CronJob | *batchv1.Job
	client.Object
}

// workloadFiles are the asset files that hold a workload; every other file is a manifest beside it.
var workloadFiles = map[string]bool{"deployment.yaml": true, "statefulset.yaml": true, "cronjob.yaml": true, "job.yaml": true}

// podTemplate is the pod template of a workload, to read or to change in place.
func podTemplate(workload client.Object) *corev1.PodTemplateSpec {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template
	case *appsv1.StatefulSet:
		return &w.Spec.Template
	case *batchv1.CronJob:
		return &w.Spec.JobTemplate.Spec.Template
	case *batchv1.Job:
		return &w.Spec.Template
	}
	panic(fmt.Sprintf("%T is not a workload", workload))
}

// replicasOf points to the replica count of a workload, nil for kinds that have none.
func replicasOf(workload client.Object) **int32 {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Replicas
	case *appsv1.StatefulSet:
		return &w.Spec.Replicas
	}
	return nil
}

// keepImmutable copies from the live workload what can't be changed once it exists, so that a new version of an asset does
// not make every later change fail.
func keepImmutable(desired, live client.Object) {
	switch d := desired.(type) {
	case *appsv1.Deployment:
		if l, ok := live.(*appsv1.Deployment); ok && l.Spec.Selector != nil {
			d.Spec.Selector = l.Spec.Selector.DeepCopy()
			coverSelector(l.Spec.Selector, &d.Spec.Template)
		}
	case *appsv1.StatefulSet:
		if l, ok := live.(*appsv1.StatefulSet); ok && l.Spec.Selector != nil {
			d.Spec.Selector = l.Spec.Selector.DeepCopy()
			coverSelector(l.Spec.Selector, &d.Spec.Template)
			d.Spec.ServiceName = l.Spec.ServiceName
			d.Spec.PodManagementPolicy = l.Spec.PodManagementPolicy
			d.Spec.VolumeClaimTemplates = keepClaims(d.Spec.VolumeClaimTemplates, l.Spec.VolumeClaimTemplates)
		}
	}
}

// coverSelector gives the pods the labels that the selector asks for.
func coverSelector(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) {
	for k, v := range selector.MatchLabels {
		setLabel(&template.ObjectMeta, k, v)
	}
}

// keepClaims returns the live claim templates when they differ from what is wanted: they are compared as a whole.
func keepClaims(desired, live []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	if equality.Semantic.DeepDerivative(desired, live) {
		return desired
	}
	kept := make([]corev1.PersistentVolumeClaim, 0, len(live))
	for _, claim := range live {
		kept = append(kept, *claim.DeepCopy())
	}
	return kept
}

func setLabel(meta *metav1.ObjectMeta, key, value string) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[key] = value
}

func setAnnotation(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}

// Container returns the container or init container of that name, nil when there is none.
func Container(pod *corev1.PodSpec, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// RemoveContainer drops the container or init container of that name.
func RemoveContainer(pod *corev1.PodSpec, name string) {
	drop := func(list []corev1.Container) []corev1.Container {
		var kept []corev1.Container
		for _, c := range list {
			if c.Name != name {
				kept = append(kept, c)
			}
		}
		return kept
	}
	pod.InitContainers, pod.Containers = drop(pod.InitContainers), drop(pod.Containers)
}

// AddVolume adds a volume and mounts it, read-only, into one container.
func AddVolume(pod *corev1.PodSpec, container string, volume corev1.Volume, mountPath string) {
	pod.Volumes = append(pod.Volumes, volume)
	if c := Container(pod, container); c != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: mountPath, ReadOnly: true})
	}
}

// Volume finds a volume of a Pod by its name; nil: there is none.
func Volume(pod *corev1.PodSpec, name string) *corev1.Volume {
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == name {
			return &pod.Volumes[i]
		}
	}
	return nil
}

// SecretVolume and ConfigMapVolume are volumes of a whole object. The framework sets their file modes.
func SecretVolume(volume, secret string) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
}

// ConfigMapVolume is a volume of a whole ConfigMap.
func ConfigMapVolume(volume, configMap string) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap},
	}}}
}

// forEachContainer calls f for all init containers and containers, in order.
func forEachContainer(pod *corev1.PodSpec, f func(c *corev1.Container)) {
	for i := range pod.InitContainers {
		f(&pod.InitContainers[i])
	}
	for i := range pod.Containers {
		f(&pod.Containers[i])
	}
}
