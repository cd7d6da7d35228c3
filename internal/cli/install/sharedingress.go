package install

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/memorylimit"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/sharedingress"
)

const (
	// SharedIngressNamespace is where the shared endpoint of hosted clusters runs.
	SharedIngressNamespace = netpolicy.SharedIngressNamespace
	sharedIngressName      = "router"
	sharedIngressRole      = "hypershift-shared-ingress"

	// sharedIngressMemory is for 20,000 connections of at most 32 KiB each, and 2,000 of 64 KiB that have not said yet where they want to go: 750 MiB.
	// See docs/shared-ingress.md.
	sharedIngressMemory = "1Gi"
)

func sharedIngressLabels() map[string]string { return map[string]string{"app": sharedIngressName} }

// sharedIngress is everything that the shared endpoint needs.
func sharedIngress(o Options) []client.Object {
	if !o.SharedIngress {
		return nil
	}
	meta := metav1.ObjectMeta{Name: sharedIngressName, Namespace: SharedIngressNamespace, Labels: sharedIngressLabels()}
	ns := connect.Namespace(SharedIngressNamespace)
	ns.Labels = map[string]string{netpolicy.SharedIngressLabel: netpolicy.SharedIngressComponent, "pod-security.kubernetes.io/enforce": "restricted"}
	objs := []client.Object{ns}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	if len(o.PullSecret) > 0 {
		secret := pullSecret(o)
		secret.Namespace = SharedIngressNamespace
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret.Name}}
		objs = append(objs, secret)
	}
	ports := func(kind func(name string, port, target int32)) {
		kind("names", 443, 8443)
		kind("clusters", 6443, 6443)
	}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Selector: sharedIngressLabels(),
		// The addresses of clients are kept: what a hosted cluster allows is compared with them.
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
	}}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: sharedIngressLabels()}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
	open := networkingv1.NetworkPolicyIngressRule{}
	allow := func(port int32) {
		open.Ports = append(open.Ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))})
	}
	ports(func(name string, port, target int32) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(name)})
		allow(target)
	})
	allow(8080) // metrics
	policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{open}
	return append(objs, account,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: sharedIngressRole}, Rules: []rbacv1.PolicyRule{
			rule(group(hypershiftGroup), "hostedclusters", read), rule(group(""), "services,namespaces", read)}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: sharedIngressRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: sharedIngressRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: sharedIngressName, Namespace: SharedIngressNamespace}},
		},
		policy, service, sharedIngressDeployment(o, meta),
		&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: sharedIngressLabels()},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		}})
}

func sharedIngressDeployment(o Options, meta metav1.ObjectMeta) *appsv1.Deployment {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}}, PeriodSeconds: 10, FailureThreshold: 6}
	}
	c := corev1.Container{
		Name: sharedIngressName, Image: o.Image, ImagePullPolicy: o.ImagePullPolicy,
		Command: []string{"/usr/bin/hypershift-operator"}, Args: []string{"shared-ingress"},
		Ports: []corev1.ContainerPort{
			{Name: "names", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}, {Name: "clusters", ContainerPort: 6443, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "health", ContainerPort: 9444, Protocol: corev1.ProtocolTCP},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, SecurityContext: containerSecurity(),
	}
	memorylimit.Set(&c, sharedIngressMemory)
	spread := func(key string) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: sharedIngressLabels()}}
	}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), RevisionHistoryLimit: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: sharedIngressLabels()},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: sharedIngressLabels()}, Spec: corev1.PodSpec{
			ServiceAccountName: sharedIngressName, PriorityClassName: operatorPriorityClass, SecurityContext: podSecurity(o), Containers: []corev1.Container{c},
			// Longer than it may take by itself.
			TerminationGracePeriodSeconds: ptr.To(int64((sharedingress.DefaultLimits().Stop() + 5*time.Second).Seconds())),
			TopologySpreadConstraints:     []corev1.TopologySpreadConstraint{spread(corev1.LabelTopologyZone), spread(corev1.LabelHostname)},
		}},
	}}
}
