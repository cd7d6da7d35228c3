package install

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/memorylimit"
	"hcp.internal/platform/internal/packages/control/pod"
)

// Names of the package operator, as published.
const (
	// PackageOperatorNamespace is where the operator of packages runs.
	PackageOperatorNamespace = "package-operator-system"
	packageOperatorName      = "package-operator"         // ServiceAccount, Role and bindings
	packageManagerName       = "package-operator-manager" // Deployment and ClusterRole
	packageMetricsName       = "package-operator-metrics" // Service
)

// packageOperatorCRDs returns the kinds of packages, none unless o asks for the operator.
func packageOperatorCRDs(o Options) ([]client.Object, error) {
	if !o.PackageOperator {
		return nil, nil
	}
	crds, err := config.PackageOperatorCRDs()
	if err != nil {
		return nil, fmt.Errorf("reading the package operator's CustomResourceDefinitions: %w", err)
	}
	objs := make([]client.Object, len(crds))
	for i := range crds {
		objs[i] = crds[i]
	}
	return objs, nil
}

// packageOperator returns the operator of packages, nothing unless o asks for it.
func packageOperator(o Options) []client.Object {
	if !o.PackageOperator {
		return nil
	}
	ns := connect.Namespace(PackageOperatorNamespace)
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	objs := []client.Object{ns}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: packageOperatorName, Namespace: PackageOperatorNamespace}}
	if len(o.PullSecret) > 0 {
		secret := pullSecret(o)
		secret.Namespace = PackageOperatorNamespace
		objs = append(objs, secret)
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	objs = append(objs, account)
	objs = append(objs, trustBundle(o).objects(PackageOperatorNamespace)...)
	objs = append(objs, signaturePolicy(o).objects(PackageOperatorNamespace)...)
	objs = append(objs, packageOperatorRBAC()...)
	policy, binding := config.ConnectorPolicy()
	objs = append(objs, policy, binding)
	return append(objs, packageOperatorService(), packageOperatorDeployment(o))
}

// packageOperatorRules are the rights of the operator in the whole cluster. Packages may hold objects of any kind, so it may write all kinds, and roles
// with any rights. It may neither impersonate anybody nor delete collections.
func packageOperatorRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(group("*"), "*", read, write),
		rule(group("rbac.authorization.k8s.io"), "roles,clusterroles", "bind,escalate"),
	}
}

func packageOperatorRBAC() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: packageOperatorName, Namespace: PackageOperatorNamespace}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: packageManagerName}, Rules: packageOperatorRules()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: packageManagerName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: packageManagerName},
			Subjects:   subjects,
		},
	}
}

func packageOperatorLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": packageOperatorName}
}

func packageOperatorService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: packageMetricsName, Namespace: PackageOperatorNamespace, Labels: packageOperatorLabels()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: packageOperatorLabels(),
			Ports: []corev1.ServicePort{{Name: "metrics", Protocol: corev1.ProtocolTCP, Port: 8080, TargetPort: intstr.FromString("metrics")}},
		},
	}
}

func packageOperatorDeployment(o Options) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: packageManagerName, Namespace: PackageOperatorNamespace, Labels: packageOperatorLabels()},
		Spec: appsv1.DeploymentSpec{
			Replicas:             replicas(o),
			RevisionHistoryLimit: ptr.To[int32](2),
			Selector:             &metav1.LabelSelector{MatchLabels: packageOperatorLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: packageOperatorLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: packageOperatorName,
					// Add-ons of all hosted clusters hang on it.
					PriorityClassName: operatorPriorityClass,
					SecurityContext:   podSecurity(o),

					TopologySpreadConstraints: spread(o, packageOperatorLabels()),
					Containers:                []corev1.Container{packageOperatorContainer(o)},
					// Layers of packages are read in memory; what libraries spool goes here.
					Volumes: append([]corev1.Volume{{Name: "tmp-dir", VolumeSource: corev1.VolumeSource{
						EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("256Mi"))},
					}}}, o.Metrics.volumes()...),
				},
			},
		},
	}
	requireSignatures(o, &d.Spec.Template)
	trust(o, &d.Spec.Template)
	return d
}

// packageOperatorMemory is for caches (77 MiB with 400 deployments), for the content of images (10 at a time), and for renderings of templates that try
// to take as much as they can.
const packageOperatorMemory = "1Gi"

func packageOperatorContainer(o Options) corev1.Container {
	args := append([]string{"--enable-leader-election"}, o.overrides("--image-prefix-overrides")...)
	c := pod.Container(o.Image, packageManagerName, 10, 6, append(args, o.Metrics.args()...)...)
	c.ImagePullPolicy = o.ImagePullPolicy
	// The connectors to hosted clusters run from the same image.
	c.Env = append(c.Env, corev1.EnvVar{Name: "PKO_REMOTE_PHASE_MANAGER_IMAGE", Value: o.Image})
	c.Env = append(c.Env, leaseEnv(o)...)
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("80Mi")}
	c.VolumeMounts = append([]corev1.VolumeMount{{Name: "tmp-dir", MountPath: "/tmp"}}, o.Metrics.mounts()...)
	memorylimit.Set(&c, packageOperatorMemory)
	return c
}
