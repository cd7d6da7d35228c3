package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
)

// scope is what a default looks at, and the workload that it changes.
type scope struct {
	ctx      WorkloadContext
	c        *WorkloadComponent
	workload client.Object
	template *corev1.PodTemplateSpec
	live     client.Object   // nil when absent
	rendered []client.Object // the manifests beside the workload
}

// defaults make every workload what a part of a hosted control plane has to be. They run in this order, after the adapt
// function of the component.
var defaults = []func(*scope) error{
	managedBy,
	replicas,
	strategy,
	injectContainers,
	volumeModes,
	images,
	pullPolicy,
	configHash,
	containerDefaults,
	serviceAccountToken,
	defaultUser,
	restrictContainers,
	keepLiveResources,
	priorityClass,
	nodeSelector,
	podLabels,
	podAnnotations,
	tolerations,
	nodeAffinity,
	colocation,
	resourceOverrides,
	processors,
	antiAffinity,
	sleep,
	hibernate,
}

// payloadDefaults are defaults for a component of an OpenShift payload. Their order shows in the objects: what is injected comes after the modes of
// volumes and the pull policies were set, and counts for the configuration hash, except for the prober.
var payloadDefaults = []func(*scope) error{
	managedBy,
	replicas,
	strategy,
	volumeModes,
	mainPullPolicy,
	inject,
	configHash,
	injectProber,
	tagsOrImages,
	terminationMessages,
	mainTmp,
	serviceAccountToken,
	payloadUser,
	payloadRestrictions,
	keepLiveResources,
	priorityClass,
	payloadNodeSelector,
	podLabels,
	podAnnotations,
	payloadTolerations,
	nodeAffinity,
	colocation,
	resourceOverrides,
	antiAffinity,
	sleep,
	hibernate,
}

// defaultsOf are the defaults for a release.
func defaultsOf(ctx WorkloadContext) []func(*scope) error {
	if ctx.Release.Kubernetes {
		return defaults
	}
	return payloadDefaults
}

func managedBy(s *scope) error {
	labels := s.workload.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.ManagedByLabel] = names.ControlPlaneOperator
	s.workload.SetLabels(labels)
	return nil
}

// apiCritical components run three times in a highly available control plane: the loss of a node while another is drained
// must not stop them.
var apiCritical = []string{
	names.KubeAPIServer, "openshift-apiserver", "openshift-oauth-apiserver", "oauth-openshift", "router", "packageserver",
}

func replicas(s *scope) error {
	r := replicasOf(s.workload)
	if r == nil {
		return nil
	}
	if *r == nil {
		*r = ptr.To(s.c.defaultReplicas(s.ctx))
	}
	if slices.Contains(commaList(s.ctx.HCP.Annotations[debugDeploymentsAnnotation]), s.c.name) {
		*r = ptr.To[int32](0)
	}
	return nil
}

func (c *WorkloadComponent) defaultReplicas(ctx WorkloadContext) int32 {
	single := !ctx.HighlyAvailable()
	if !ctx.Release.Kubernetes { // an empty policy counts as highly available here, and for nothing else
		single = ctx.HCP.Spec.ControllerAvailabilityPolicy == hyperv1.SingleReplica
	}
	switch {
	case single:
		return 1
	case c.options.RequestServing && ctx.dedicatedRequestServing():
		return 2
	case IsEtcd(c.name), slices.Contains(apiCritical, c.name):
		return 3
	}
	return 2
}

// strategy says how a Deployment of several replicas is updated. One with two replicas makes the third first, because half
// of the capacity is too much to lose; request-serving pods have exactly two nodes, so there is no place for a third.
func strategy(s *scope) error {
	d, ok := s.workload.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	d.Spec.RevisionHistoryLimit = ptr.To[int32](2)
	n := ptr.Deref(d.Spec.Replicas, 1)
	if n <= 1 {
		return nil
	}
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(1)
	if n == 2 {
		surge, unavailable = intstr.FromInt32(1), intstr.FromInt32(0)
		if s.c.options.RequestServing {
			unavailable = intstr.FromInt32(1)
		}
	}
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
	return nil
}

func injectContainers(s *scope) error {
	return errors.Join(inject(s), injectProber(s))
}

func inject(s *scope) error {
	pod := &s.template.Spec
	if s.c.kubeconfig != nil {
		s.c.kubeconfig.mount(s.c.name, pod)
	}
	if s.c.konnectivity != nil {
		s.c.konnectivity.inject(s.ctx, pod)
	}
	if s.c.tokenMinter != nil {
		s.c.tokenMinter.inject(s.ctx, pod)
	}
	if s.c.capi != nil {
		s.c.capi.inject(s.ctx, pod)
	}
	return nil
}

func injectProber(s *scope) error {
	if s.c.prober != nil {
		s.c.prober.inject(s.ctx, &s.template.Spec)
	}
	return nil
}

// Modes of the files of volumes.
const configMapMode, secretMode = int32(0o644), int32(0o640)

func volumeModes(s *scope) error {
	for i := range s.template.Spec.Volumes {
		v := &s.template.Spec.Volumes[i]
		switch {
		case v.ConfigMap != nil:
			v.ConfigMap.DefaultMode = ptr.To(configMapMode)
		case v.Secret != nil:
			v.Secret.DefaultMode = ptr.To(secretMode)
		}
	}
	return nil
}

// images replaces the tags that assets name by pull specs of the release. What is no tag of the release, and looks like a
// pull spec, stays.
func images(s *scope) error {
	var missing []string
	forEachContainer(&s.template.Spec, func(c *corev1.Container) {
		image, ok := s.imageFor(c.Image)
		if !ok {
			missing = append(missing, fmt.Sprintf("%q (container %s)", c.Image, c.Name))
		}
		c.Image = image
	})
	if len(missing) > 0 {
		return fmt.Errorf("release %s (%s) has no image for %s: use a release that has it, or give one by annotation %s",
			s.ctx.Release.Version, s.ctx.Release.Image, strings.Join(missing, ", "), "hypershift.openshift.io/image-overrides")
	}
	return nil
}

// ownTags are parts of our own image under names of their own; a release that does not have them has the whole.
var ownTags = []string{imageAvailabilityProber, imageTokenMinter, "hosted-cluster-config-operator", "socks5-proxy"}

func (s *scope) imageFor(tag string) (string, bool) {
	if image, ok := s.ctx.Release.ImageFor(tag); ok {
		return image, true
	}
	if slices.Contains(ownTags, tag) {
		return s.imageFor(ImageControlPlaneOperator)
	}
	if tag == "cluster-version-operator" {
		return s.ctx.Release.Image, s.ctx.Release.Image != ""
	}
	// A pull spec has a registry or a digest or a version in it, a tag of a release has none of that.
	return tag, strings.ContainsAny(tag, "/:@")
}

func pullPolicy(s *scope) error {
	forEachContainer(&s.template.Spec, func(c *corev1.Container) {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if strings.HasSuffix(c.Image, ":latest") {
			c.ImagePullPolicy = corev1.PullAlways
		}
	})
	return nil
}

const tmpVolume, tmpPath = "tmp-dir", "/tmp"

// containerDefaults gives every container a writable /tmp and nothing else to write to, and makes the last lines of a
// crashed one show in its status.
func containerDefaults(s *scope) error {
	pod := &s.template.Spec
	mounted := false
	forEachContainer(pod, func(c *corev1.Container) {
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tmpPath }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tmpVolume, MountPath: tmpPath})
			mounted = true
		}
	})
	if mounted && !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == tmpVolume }) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	for i := range pod.Containers {
		securityContext(&pod.Containers[i]).ReadOnlyRootFilesystem = ptr.To(true)
	}
	return nil
}

func securityContext(c *corev1.Container) *corev1.SecurityContext {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	return c.SecurityContext
}

func serviceAccountToken(s *scope) error {
	_, metrics := s.template.Annotations[NeedMetricsServerAccessAnnotation]
	s.template.Spec.AutomountServiceAccountToken = ptr.To(s.c.options.NeedsManagementKASAccess || metrics || s.c.name == "packageserver")
	return nil
}

func defaultUser(s *scope) error {
	if !s.ctx.Management.SetDefaultSecurityContext {
		return nil
	}
	pod := &s.template.Spec
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	uid := s.ctx.Management.User()
	pod.SecurityContext.RunAsUser = ptr.To(uid)
	if IsEtcd(s.c.name) || slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) {
		pod.SecurityContext.FSGroup = ptr.To(uid) // A new volume belongs to root.
	}
	return nil
}

// restrictContainers makes pods pass the restricted Pod Security Standard wherever we choose their user. Upstream does so on
// GCP only; a namespace that is labelled restricted refuses the pods without it everywhere. On OpenShift the
// SecurityContextConstraints fill this in.
func restrictContainers(s *scope) error {
	if !s.ctx.Management.SetDefaultSecurityContext && s.ctx.HCP.Spec.Platform.Type != "GCP" {
		return nil
	}
	pod := &s.template.Spec
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod.SecurityContext.RunAsNonRoot = ptr.To(true)
	pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	forEachContainer(pod, func(c *corev1.Container) {
		sc := securityContext(c)
		sc.AllowPrivilegeEscalation = ptr.To(false)
		sc.RunAsNonRoot = ptr.To(true)
		if sc.Capabilities == nil {
			sc.Capabilities = &corev1.Capabilities{}
		}
		sc.Capabilities.Drop = []corev1.Capability{"ALL"}
	})
	return nil
}

// keepLiveResources leaves requests and limits as they are in the cluster, so that what a person or an autoscaler set stays.
func keepLiveResources(s *scope) error {
	if s.live == nil {
		return nil
	}
	live := &podTemplate(s.live).Spec
	forEachContainer(&s.template.Spec, func(c *corev1.Container) {
		if l := Container(live, c.Name); l != nil && (len(l.Resources.Requests) > 0 || len(l.Resources.Limits) > 0) {
			c.Resources = *l.Resources.DeepCopy()
		}
	})
	return nil
}

func priorityClass(s *scope) error {
	class, override := controlPlanePriorityClass, priorityAnnotation
	switch {
	case IsEtcd(s.c.name):
		class, override = etcdPriorityClass, etcdPriorityAnnotation
	case slices.Contains(apiCritical, s.c.name):
		class, override = apiCriticalPriorityClass, apiCriticalPriorityAnnotation
	}
	if name := s.ctx.HCP.Annotations[override]; name != "" {
		class = name
	}
	s.template.Spec.PriorityClassName = class
	return nil
}

func podLabels(s *scope) error {
	meta := &s.template.ObjectMeta
	setLabel(meta, ControlPlaneComponentLabel, s.c.name)
	if s.c.options.NeedsManagementKASAccess {
		setLabel(meta, NeedManagementKASAccessLabel, "true")
	}
	if s.c.options.RequestServing {
		setLabel(meta, RequestServingLabel, "true")
	}
	for k, v := range s.ctx.HCP.Spec.Labels {
		// What selects pods and opens the network to them is ours; a HostedCluster with such labels is refused, one from before may have them.
		if _, ours := meta.Labels[k]; !ours && k != NeedManagementKASAccessLabel {
			setLabel(meta, k, v)
		}
	}
	return nil
}

func podAnnotations(s *scope) error {
	meta := &s.template.ObjectMeta
	setAnnotation(meta, ReleaseImageAnnotation, releaseimage.ControlPlane(&s.ctx.HCP.Spec))
	if date := s.ctx.HCP.Annotations[RestartDateAnnotation]; date != "" {
		setAnnotation(meta, RestartDateAnnotation, date)
	}
	var local []string
	for _, v := range s.template.Spec.Volumes {
		if v.EmptyDir != nil || v.HostPath != nil {
			local = append(local, v.Name)
		}
	}
	if len(local) > 0 {
		setAnnotation(meta, safeToEvictVolumesAnnotation, strings.Join(local, ","))
	}
	return nil
}

func commaList(s string) []string {
	var list []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}
