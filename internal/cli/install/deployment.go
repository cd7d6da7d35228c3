package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/memorylimit"
)

// operatorUID is the user id of the operator where the management cluster assigns none.
const operatorUID = 1001

// deployments are the operator, and the one for hosted clusters from before private types where there are any.
func deployments(o Options) []client.Object {
	operator := deployment(o)
	addAWS(&operator.Spec.Template.Spec, o)
	addAzure(&operator.Spec.Template, o)
	requireSignatures(o, &operator.Spec.Template)
	trust(o, &operator.Spec.Template)
	if !o.capi.Private {
		return []client.Object{operator}
	}
	list := []client.Object{operator}
	if o.capi.Legacy {
		list = append(list, legacyDeployment(operator.DeepCopy()))
	}
	pod := &operator.Spec.Template.Spec
	pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: capiproxy.EnvPrivateTypes, Value: "true"})
	proxy := capiproxy.Container(o.Image)
	proxy.ImagePullPolicy = o.ImagePullPolicy
	memorylimit.Set(&proxy, proxyMemory)
	capiproxy.Add(pod, proxy, !o.NoNativeSidecars)
	return list
}

// legacyDeployment is the operator as it would be without private types, for hosted clusters that the other one leaves to it.
func legacyDeployment(d *appsv1.Deployment) *appsv1.Deployment {
	labels := map[string]string{"name": legacyName}
	d.Name, d.Labels, d.Spec.Selector = legacyName, labels, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = map[string]string{"name": legacyName, componentLabel: legacyName}
	for i := range d.Spec.Template.Spec.TopologySpreadConstraints {
		d.Spec.Template.Spec.TopologySpreadConstraints[i].LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	main := &d.Spec.Template.Spec.Containers[0]
	main.Env = append(main.Env,
		corev1.EnvVar{Name: scope.EnvScoped, Value: "true"},
		corev1.EnvVar{Name: scope.EnvScope, Value: hyperv1.LegacyScope})
	return d
}

func deployment(o Options) *appsv1.Deployment {
	podLabels := operatorLabels()
	podLabels[componentLabel] = operatorName
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: operatorName, Namespace: o.Namespace, Labels: operatorLabels()},
		Spec: appsv1.DeploymentSpec{
			Replicas:             replicas(o),
			RevisionHistoryLimit: ptr.To[int32](2),
			Selector:             &metav1.LabelSelector{MatchLabels: operatorLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec: corev1.PodSpec{
					ServiceAccountName: operatorName,
					PriorityClassName:  operatorPriorityClass,
					SecurityContext:    podSecurity(o),
					Containers:         []corev1.Container{container(o)},
					Volumes:            volumes(o),

					TopologySpreadConstraints: spread(o, operatorLabels()),
				},
			},
		},
	}
}

// volumes are the release cache and certificates of metrics; the root file system is read-only.
func volumes(o Options) []corev1.Volume {
	list := []corev1.Volume{{Name: "tmp-dir", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Gi"))},
	}}}
	return append(list, o.Metrics.volumes()...)
}

func mounts(o Options) []corev1.VolumeMount {
	list := []corev1.VolumeMount{{Name: "tmp-dir", MountPath: "/tmp"}}
	return append(list, o.Metrics.mounts()...)
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func podSecurity(o Options) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !o.OpenShift {
		security.RunAsUser = ptr.To[int64](operatorUID)
	}
	return security
}

// Memory limits are ten times what was measured with one hosted cluster (86 MiB and 18 MiB) and more: caches grow by some MiB with each, and what
// tenants can make an operator hold is bounded elsewhere. They keep a fault from taking the node along.
const (
	operatorMemory    = "2Gi"
	proxyMemory       = "256Mi"
	externalDNSMemory = "512Mi"
)

func container(o Options) corev1.Container {
	c := corev1.Container{
		Name:            operatorName,
		Image:           o.Image,
		ImagePullPolicy: o.ImagePullPolicy,
		Command:         []string{"/usr/bin/hypershift-operator"},
		Args:            operatorArgs(o),
		Env:             operatorEnv(o),
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: 9000, Protocol: corev1.ProtocolTCP},
			{Name: "manager", ContainerPort: 9443, Protocol: corev1.ProtocolTCP},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("100Mi"),
		}},
		// The operator has no health endpoint of its own: when it serves its metrics, it runs.
		StartupProbe:             metricsProbe(1, 120),
		LivenessProbe:            metricsProbe(60, 5),
		ReadinessProbe:           metricsProbe(o.ReadinessSeconds, 3),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
		VolumeMounts:             mounts(o),
	}
	if o.Metrics.Secure {
		// The kubelet may not read them.
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: healthPortName, ContainerPort: healthPort, Protocol: corev1.ProtocolTCP})
		for probe, path := range map[*corev1.Probe]string{c.StartupProbe: "/healthz", c.LivenessProbe: "/healthz", c.ReadinessProbe: "/readyz"} {
			probe.HTTPGet.Path, probe.HTTPGet.Port = path, intstr.FromString(healthPortName)
		}
	}
	memorylimit.Set(&c, operatorMemory)
	return c
}

func operatorArgs(o Options) []string {
	args := []string{
		"run",
		"--namespace=$(MY_NAMESPACE)",
		"--pod-name=$(MY_NAME)",
		"--metrics-addr=:9000",
	}
	if o.Metrics.Secure {
		args = append(args, append(o.Metrics.args(), fmt.Sprintf("--health-probe-bind-address=:%d", healthPort))...)
	}
	if o.Monitoring.Platform == MonitorAll {
		args = append(args, "--enable-ocp-cluster-monitoring=true")
	}
	if o.Capacity != CapacityAuto {
		args = append(args, "--control-plane-capacity="+o.Capacity)
	}
	if len(o.FeatureGates) > 0 {
		var gates []string
		for _, name := range slices.Sorted(maps.Keys(o.FeatureGates)) {
			gates = append(gates, name+"="+o.FeatureGates[name])
		}
		args = append(args, "--feature-gates="+strings.Join(gates, ","))
	}
	if !o.DedicatedNodes {
		args = append(args, "--enable-dedicated-request-serving-isolation=false")
	}
	if o.CIDebugOutput {
		args = append(args, "--enable-ci-debug-output=true")
	}
	return append(args, o.overrides("--registry-overrides")...)
}

// overrides is a flag with the prefixes of images to replace, nothing when there are none.
func (o Options) overrides(flag string) []string {
	if len(o.RegistryOverride) == 0 {
		return nil
	}
	var pairs []string
	for _, from := range slices.Sorted(maps.Keys(o.RegistryOverride)) {
		pairs = append(pairs, from+"="+o.RegistryOverride[from])
	}
	return []string{flag + "=" + strings.Join(pairs, ",")}
}

func operatorEnv(o Options) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		field("MY_NAMESPACE", "metadata.namespace"),
		field("MY_NAME", "metadata.name"),
		{Name: "CERT_ROTATION_SCALE", Value: o.CertRotation.String()},
		{Name: "METRICS_SET", Value: o.MetricsSet},
	}
	env = append(env, leaseEnv(o)...)
	if o.EtcdRecovery {
		env = append(env, corev1.EnvVar{Name: "ENABLE_ETCD_RECOVERY", Value: "1"})
	}
	if o.SizeTagging {
		env = append(env, corev1.EnvVar{Name: "ENABLE_SIZE_TAGGING", Value: "1"})
	}
	if o.SharedGateway != "" {
		env = append(env, corev1.EnvVar{Name: "SHARED_GATEWAY", Value: o.SharedGateway})
	}
	if o.AuditLogs {
		env = append(env, corev1.EnvVar{Name: "ENABLE_AUDIT_LOG_PERSISTENCE", Value: "true"})
	}
	if o.TechPreview {
		env = append(env, corev1.EnvVar{Name: "HYPERSHIFT_FEATURESET", Value: "TechPreviewNoUpgrade"})
	}
	if len(o.Platforms) > 0 {
		env = append(env, corev1.EnvVar{Name: "PLATFORMS_INSTALLED", Value: strings.Join(o.Platforms, ",")})
	}
	if len(o.EgressBlock) > 0 {
		env = append(env, corev1.EnvVar{Name: "HCP_EGRESS_BLOCK_CIDRS", Value: strings.Join(o.EgressBlock, ",")})
	}
	env = append(env, o.Monitoring.env()...)
	env = append(env, o.Managed.env()...)
	for _, name := range slices.Sorted(maps.Keys(o.ImageEnv)) {
		env = append(env, corev1.EnvVar{Name: name, Value: o.ImageEnv[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(o.OperatorEnv)) {
		env = append(env, corev1.EnvVar{Name: name, Value: o.OperatorEnv[name]})
	}
	return env
}

// metricsProbe asks every period seconds. The startup probe asks often, so that an installation does not wait for the first of the others.
func metricsProbe(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/metrics", Port: intstr.FromString("metrics"), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		SuccessThreshold: 1,
		FailureThreshold: failures,
	}
}
