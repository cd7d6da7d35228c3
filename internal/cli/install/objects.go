package install

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
)

// Objects returns everything that o asks for, in the order of application: CRDs, then the Namespace, then what is in it.
func Objects(o Options) ([]client.Object, error) {
	crds, err := CRDs(o)
	if err != nil {
		return nil, err
	}
	return append(crds, Resources(o)...), nil
}

// CRDs returns the CustomResourceDefinitions of o's feature set and those of Cluster API, none when o's scope leaves them out.
func CRDs(o Options) ([]client.Object, error) {
	if o.Scope == ScopeResources {
		return nil, nil
	}
	o = o.offlineCAPI()
	set := "default"
	if o.TechPreview {
		set = "techpreview"
	}
	crds, err := config.CRDs(set)
	if err != nil {
		return nil, fmt.Errorf("reading the %s CustomResourceDefinitions: %w", set, err)
	}
	capi, err := capiCRDs(o)
	if err != nil {
		return nil, err
	}
	providers, err := providerCRDs(o)
	if err != nil {
		return nil, err
	}
	crds = slices.Concat(o.capi.withoutStandard(crds), capi, providers)
	var objs []client.Object
	for i := range crds {
		if o.wanted(crds[i].Name) {
			objs = append(objs, crds[i])
		}
	}
	packages, err := packageOperatorCRDs(o)
	return marked(append(objs, packages...)), err
}

// Resources returns everything but the CRDs, nothing when o's scope leaves it out.
func Resources(o Options) []client.Object {
	if o.Scope == ScopeCRDs {
		return nil
	}
	o = o.offlineCAPI()
	policy, binding := config.NamePolicy()
	unserved, unservedBinding := config.UnservedPolicy(o.off()...)
	overrides, overridesBinding := config.OverridePolicy(o.overrideAction())
	protected, protectedBinding := config.ProtectionPolicy(o.Namespace)
	objs := []client.Object{policy, binding, unserved, unservedBinding, overrides, overridesBinding, protected, protectedBinding, namespace(o)}
	for _, class := range priorityClasses {
		objs = append(objs, class.object())
	}
	if len(o.PullSecret) > 0 {
		objs = append(objs, pullSecret(o))
	}
	objs = append(objs, trustBundle(o).objects(o.Namespace)...)
	objs = append(objs, signaturePolicy(o).objects(o.Namespace)...)
	objs = append(objs, awsObjects(o)...)
	objs = append(objs, azureObjects(o)...)
	objs = append(objs, serviceAccount(o))
	objs = append(objs, clusterRBAC(o)...)
	objs = append(objs, namespacedRBAC(o)...)
	if o.AdminRBAC {
		objs = append(objs, adminRBAC()...)
	}
	objs = append(objs, metricsReader(o)...)
	objs = append(objs, capiState(o), service(o))
	objs = append(objs, capiConversion(o)...)
	objs = append(objs, deployments(o)...)
	objs = append(objs, packageOperator(o)...)
	objs = append(objs, disruptionBudgets(o)...)
	objs = append(objs, console(o)...)
	objs = append(objs, sharedIngress(o)...)
	objs = append(objs, monitoringObjects(o)...)
	objs = append(objs, capiMonitoring(o)...)
	objs = append(objs, dashboards(o)...)
	return labelled(append(objs, externalDNS(o)...), o.Namespace)
}

// overrideAction is what becomes of an override by a user who lacks the verb for it.
func (o Options) overrideAction() admissionv1.ValidationAction {
	if o.RestrictOverrides {
		return admissionv1.Deny
	}
	return admissionv1.Warn
}

func namespace(o Options) *corev1.Namespace {
	ns := connect.Namespace(o.Namespace)
	// The operator needs nothing that the strictest level refuses, so nothing else should be able to run beside it.
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if o.Monitoring.Platform == MonitorOperator || o.Monitoring.Platform == MonitorAll {
		ns.Labels["openshift.io/cluster-monitoring"] = "true"
	}
	return ns
}

func pullSecret(o Options) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: pullSecretName, Namespace: o.Namespace},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: o.PullSecret},
	}
}

func serviceAccount(o Options) *corev1.ServiceAccount {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: operatorName, Namespace: o.Namespace}}
	if len(o.PullSecret) > 0 {
		sa.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	if o.Azure.ClientID != "" {
		sa.Annotations = map[string]string{azureClientID: o.Azure.ClientID}
	}
	return sa
}

func service(o Options) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: operatorName, Namespace: o.Namespace, Labels: operatorLabels()},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: operatorLabels(),
			Ports: []corev1.ServicePort{
				{Name: "metrics", Protocol: corev1.ProtocolTCP, Port: 9393, TargetPort: intstr.FromString("metrics")},
				{Name: "manager", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromString("manager")},
			},
		},
	}
}

func operatorLabels() map[string]string { return map[string]string{"name": operatorName} }

func subjects(o Options) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: operatorName, Namespace: o.Namespace}}
}

func clusterRBAC(o Options) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}, Rules: slices.Concat(clusterRules(*o.capi), o.Metrics.reviewRules(), o.sizeRules(), o.auditLogRules(), o.gatewayRules())},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roleName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
			Subjects:   subjects(o),
		},
	}
}

func namespacedRBAC(o Options) []client.Object {
	meta := metav1.ObjectMeta{Name: roleName, Namespace: o.Namespace}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: namespacedRules()},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName},
			Subjects:   subjects(o),
		},
	}
}

// adminRBAC is for people: clients create and change hosted clusters, readers look at them.
func adminRBAC() []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: clientRoleName}, Rules: []rbacv1.PolicyRule{
			// Not verb override: whoever has it runs images of his choice in the management cluster.
			rule(group(hypershiftGroup), "hostedclusters,nodepools", every),
			rule(group(""), "secrets,configmaps,namespaces", read, write),
		}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: readersRoleName}, Rules: []rbacv1.PolicyRule{
			rule(group(hypershiftGroup), "*", read),
			rule(group(""), "namespaces,pods,pods/log,services,events", read),
			rule(group("apps"), "deployments,statefulsets", read),
		}},
	}
}

func replicas(o Options) *int32 {
	if o.Development {
		return ptr.To[int32](0)
	}
	return ptr.To(max(o.Replicas, 1))
}
