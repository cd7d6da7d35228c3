package install

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/memorylimit"
)

const (
	consoleName = "hypershift-console" // all that belongs to the web console
	consolePort = 8080
	// consoleMemory is for rows of a fleet and lists on their way in; it needs half of it with a thousand hosted clusters.
	consoleMemory = "128Mi"
)

func consoleLabels() map[string]string { return map[string]string{"name": consoleName} }

// console returns the web console, nothing unless o asks for it. There is no Ingress: people reach it by kubectl port-forward, or by a proxy of theirs that
// encrypts and puts their token into header Authorization.
func console(o Options) []client.Object {
	if !o.Console || o.Development {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: consoleName, Namespace: o.Namespace}}
	if len(o.PullSecret) > 0 {
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	meta := metav1.ObjectMeta{Name: consoleName, Namespace: o.Namespace, Labels: consoleLabels()}
	return []client.Object{
		account,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: consoleName}, Rules: consoleRules()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: consoleName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: consoleName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: consoleName, Namespace: o.Namespace}},
		},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: consoleLabels(),
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("http")}}}},
		// It takes requests at its one port and nothing else. Whom it may call is left open: the port of an API server is anybody's choice.
		&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: consoleLabels()}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(consolePort))}}}}}},
		consoleDeployment(o, meta),
	}
}

// consoleRules are the rights of the console's own account: what lists show, and to ask who somebody is and what they may do. Everything else it reads with the
// tokens of those who ask. No Secrets, no ConfigMaps, nothing to write.
func consoleRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(group("hypershift.openshift.io"), "hostedclusters,nodepools", read),
		rule(group("package-operator.run"), "packages,hostedclusterpackages", read),
		rule(group("authentication.k8s.io"), "tokenreviews", "create"),
		rule(group("authorization.k8s.io"), "subjectaccessreviews", "create"),
	}
}

func consoleDeployment(o Options, meta metav1.ObjectMeta) *appsv1.Deployment {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 6, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}}}
	}
	c := corev1.Container{
		Name: "console", Image: o.Image, ImagePullPolicy: o.ImagePullPolicy,
		Command:        []string{"/usr/bin/hcp-operators", "console"},
		Args:           []string{"--addr=:8080", "--operator-namespace=" + o.Namespace},
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: consolePort, Protocol: corev1.ProtocolTCP}},
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		SecurityContext: containerSecurity(),
	}
	memorylimit.Set(&c, consoleMemory)
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), RevisionHistoryLimit: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: consoleLabels()},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: consoleLabels()},
			Spec: corev1.PodSpec{ServiceAccountName: consoleName, SecurityContext: podSecurity(o), Containers: []corev1.Container{c}}}}}
}
