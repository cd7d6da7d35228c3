package kit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hcp.internal/platform/internal/controlplane/component"
)

// SetEnv gives a container a variable, in the place of the one of that name or as the last.
func SetEnv(c *corev1.Container, name, value string) {
	for i := range c.Env {
		if c.Env[i].Name == name {
			c.Env[i] = corev1.EnvVar{Name: name, Value: value}
			return
		}
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}

// UnsetEnv takes variables from a container.
func UnsetEnv(c *corev1.Container, names ...string) {
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return slices.Contains(names, e.Name) })
}

// AddReadinessCheck adds a container that isn't ready while the hosted API server doesn't live, so that a pod which serves a part of the API
// gets no requests then. It asks for /livez: /readyz would ask that very part of the API.
func AddReadinessCheck(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: "kas-readiness-check", Image: "cli", Command: []string{"/bin/bash", "-c", "sleep infinity"},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("10Mi"),
		}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/bash", "-c", "curl -kfs " + component.InClusterURL(ctx.HCP) + "/livez > /dev/null"}}},
			PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 3,
		},
	})
}

// Image is the pull spec of a tag in the payload of the control plane, empty when the payload lacks it.
func Image(ctx component.WorkloadContext, tag string) string {
	image, _ := ctx.Release.ImageFor(tag)
	return image
}

// UserImage is Image in the payload of the hosted cluster, whose images run on nodes.
func UserImage(ctx component.WorkloadContext, tag string) string {
	image, _ := ctx.UserRelease.ImageFor(tag)
	return image
}
