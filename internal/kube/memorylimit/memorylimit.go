// Package memorylimit bounds the memory of containers: by the kernel, and below that by Go's garbage collector, which works harder before it
// comes to the worst.
package memorylimit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hcp.internal/platform/internal/gomemlimit"
)

// Set gives a container a limit and tells its program of it, by the downward API: who patches the limit changes both. Programs of ours keep a tenth
// of it free, see gomemlimit.
func Set(c *corev1.Container, limit string) {
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == gomemlimit.Variable }) {
		return // the user's own
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: gomemlimit.Variable, ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: c.Name, Resource: "limits.memory"},
	}})
}
