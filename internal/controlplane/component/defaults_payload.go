package component

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Defaults of components of OpenShift payloads where they differ from those of Kubernetes releases: the pods are what the published operators make.

// mainPullPolicy leaves init containers as they are.
func mainPullPolicy(s *scope) error {
	for i := range s.template.Spec.Containers {
		s.template.Spec.Containers[i].ImagePullPolicy = corev1.PullIfNotPresent
	}
	return nil
}

// tagsOrImages replaces tags by pull specs of the payload. A tag that the payload lacks stays, and is reported by the HostedControlPlane.
func tagsOrImages(s *scope) error {
	var err error
	forEachContainer(&s.template.Spec, func(c *corev1.Container) {
		if c.Image == "" {
			err = fmt.Errorf("container %s has no image", c.Name)
		}
		c.Image, _ = s.imageFor(c.Image)
	})
	return err
}

func terminationMessages(s *scope) error {
	forEachContainer(&s.template.Spec, func(c *corev1.Container) {
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	})
	return nil
}

// mainTmp gives every container, but no init container, a writable /tmp and nothing else to write to.
func mainTmp(s *scope) error {
	pod := &s.template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tmpPath }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tmpVolume, MountPath: tmpPath})
		}
		securityContext(c).ReadOnlyRootFilesystem = ptr.To(true)
	}
	return nil
}

// payloadUser replaces what the component says of the pod's user where the management cluster chooses none.
func payloadUser(s *scope) error {
	if s.ctx.Management.SetDefaultSecurityContext {
		s.template.Spec.SecurityContext = nil
	}
	return defaultUser(s)
}

// payloadRestrictions has the containers pass the restricted Pod Security Standard on Google Cloud, whose management clusters have no
// SecurityContextConstraints, and wherever the namespace admits nothing else.
func payloadRestrictions(s *scope) error {
	if s.ctx.HCP.Spec.Platform.Type != hyperv1.GCPPlatform && !ptr.Deref(s.ctx.RestrictedPods, s.ctx.Management.SetDefaultSecurityContext) {
		return nil
	}
	forEachContainer(&s.template.Spec, func(c *corev1.Container) {
		sc := securityContext(c)
		sc.AllowPrivilegeEscalation, sc.RunAsNonRoot = ptr.To(false), ptr.To(true)
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		if sc.Capabilities == nil {
			sc.Capabilities = &corev1.Capabilities{}
		}
		sc.Capabilities.Drop = []corev1.Capability{"ALL"}
	})
	return nil
}

// payloadTolerations replace those of the component. Etcd keeps what it was given: its members may be wanted on nodes of their own.
func payloadTolerations(s *scope) error {
	if !IsEtcd(s.c.name) {
		s.template.Spec.Tolerations = nil
	}
	return tolerations(s)
}

// payloadNodeSelector is the control plane's wherever it has one, whatever the component says. That of etcd holds as well.
func payloadNodeSelector(s *scope) error {
	if len(s.ctx.HCP.Spec.NodeSelector) == 0 {
		return nil
	}
	selector := maps.Clone(s.ctx.HCP.Spec.NodeSelector)
	if IsEtcd(s.c.name) {
		maps.Copy(selector, s.template.Spec.NodeSelector)
	}
	s.template.Spec.NodeSelector = selector
	return nil
}
