// Package agent is the platform of hosted clusters whose machines are hosts that the assisted installer has found: Agents, chosen by their labels.
package agent

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

const (
	// ignitionCA is the Secret of the control plane's namespace with the authority of the ignition server.
	ignitionCA = "ignition-server-ca-cert"
	// rightsLabel is on what the provider may do beyond the control plane's namespace.
	rightsLabel = "hypershift.openshift.io/capi-provider-agent-rbac"
	// sharedRole is what earlier operators gave to the providers of all clusters together.
	sharedRole = "capi-provider-role"
	// defaultImage is what the provider runs from unless somebody names another: no release has it.
	defaultImage = "quay.io/edge-infrastructure/cluster-api-provider-agent:latest"
)

var (
	groupVersion = schema.GroupVersion{Group: "capi-provider.agent-install.openshift.io", Version: "v1beta1"}
	clusterKind  = groupVersion.WithKind("AgentCluster")
	templateKind = groupVersion.WithKind("AgentMachineTemplate")
)

type clusterSpec struct {
	IgnitionEndpoint     ignitionEndpoint `json:"ignitionEndpoint"`
	ControlPlaneEndpoint *cloud.Endpoint  `json:"controlPlaneEndpoint,omitempty"`
}

type ignitionEndpoint struct {
	URL string    `json:"url"`
	CA  reference `json:"caCertificateReference"`
}

type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type machineSpec struct {
	AgentLabelSelector *metav1.LabelSelector `json:"agentLabelSelector,omitempty"`
}

// InfraCR implements platform.Platform: an AgentCluster, once hosts can be told where to get their configuration. Its provider keeps it, and says when it is ready.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	if hc.Status.IgnitionEndpoint == "" {
		return nil, nil
	}
	spec := clusterSpec{
		IgnitionEndpoint: ignitionEndpoint{
			URL: "https://" + hc.Status.IgnitionEndpoint + "/ignition", CA: reference{Namespace: hcpNamespace, Name: ignitionCA},
		},
		ControlPlaneEndpoint: cloud.EndpointOf(endpoint),
	}
	return cloud.Cluster(clusterKind, hc, hcpNamespace, hc.Name, &spec)
}

// CAPIProvider implements platform.Platform.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	return cloud.Provider{
		Tag: defaultImage, Annotation: hyperv1.ClusterAPIAgentProviderImage, Memory: "20Mi", CPU: "100m", Health: 8081, LivenessDelay: 15, LivenessPeriod: 20,
		Command: []string{"/manager"},
		Args: []string{
			"--namespace", "$(MY_NAMESPACE)", "--health-probe-bind-address=:8081", "--metrics-bind-address=127.0.0.1:8080", "--leader-elect",
			"--agent-namespace", agentNamespace(hc),
		},
	}.Deployment(hc), nil
}

func agentNamespace(hc *hyperv1.HostedCluster) string {
	if a := hc.Spec.Platform.Agent; a != nil {
		return a.AgentNamespace
	}
	return ""
}

// CAPIProviderPolicyRules implements platform.Platform. Agents themselves are in another namespace, see Credentials.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		cloud.Everything("extensions.hive.openshift.io", "agentclusterinstalls"),
		cloud.Everything("capi-provider.agent-install.openshift.io", "*"),
		cloud.Everything("hive.openshift.io", "clusterdeployments"),
	}
}

// Names of the provider's rights in the Agents' namespace.
func roleName(hcpNamespace string) string    { return sharedRole + "-" + hcpNamespace }
func bindingName(hcpNamespace string) string { return "cluster-api-agent-" + hcpNamespace }

// Credentials implements platform.Platform: not Secrets, but the right to use Agents of another namespace.
func (Platform) Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	namespace := agentNamespace(hc)
	if namespace == "" {
		return nil, errors.New("spec.platform.agent.agentNamespace is empty: name the namespace of the Agents")
	}
	err := reader.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("Namespace %s, which spec.platform.agent.agentNamespace names, does not exist: create it, with the Agents in it", namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", namespace, err)
	}
	return rights(hc, namespace, hcpNamespace), nil
}

func rights(hc *hyperv1.HostedCluster, namespace, hcpNamespace string) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{rightsLabel: "true"},
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)},
		}
	}
	return []client.Object{
		&rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta(roleName(hcpNamespace)),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"agent-install.openshift.io"}, Resources: []string{"agents"}, Verbs: []string{"get", "list", "watch", "update", "patch"},
			}},
		},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta(bindingName(hcpNamespace)),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName(hcpNamespace)},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hcpNamespace, Name: names.CAPIProvider}},
		},
	}
}

// DeleteCredentials implements platform.Platform. The role that earlier operators shared between clusters goes with the last binding that names it.
func (Platform) DeleteCredentials(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, hcpNamespace string) error {
	namespace := agentNamespace(hc)
	if namespace == "" {
		return nil
	}
	var errs []error
	for _, obj := range rights(hc, namespace, hcpNamespace) {
		errs = append(errs, remove(ctx, c, obj))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	shared := &rbacv1.Role{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sharedRole}, shared); err != nil {
		return client.IgnoreNotFound(err)
	}
	bindings := &rbacv1.RoleBindingList{}
	if err := c.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing RoleBindings of namespace %s: %w", namespace, err)
	}
	for _, b := range bindings.Items {
		if b.RoleRef.Kind == "Role" && b.RoleRef.Name == sharedRole {
			return nil
		}
	}
	return remove(ctx, c, shared)
}

// remove deletes what is ours: an object of that name without our label, but for the shared role, is somebody else's.
func remove(ctx context.Context, c client.Client, obj client.Object) error {
	key := client.ObjectKeyFromObject(obj)
	live := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, key, live); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading %T %s: %w", obj, key, err)
	}
	if live.GetLabels()[rightsLabel] != "true" && key.Name != sharedRole {
		return nil
	}
	uid := live.GetUID()
	if err := c.Delete(ctx, live, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %T %s: %w", obj, key, err)
	}
	return nil
}

// Traits implements platform.Platform: hosts boot slowly.
func (Platform) Traits() machine.Traits {
	return machine.Traits{
		Managed: true, TemplateKind: templateKind, SlowBoot: true,
		Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64, hyperv1.ArchitecturePPC64LE},
	}
}

// MachineTemplate implements platform.Platform.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	spec := machineSpec{}
	if a := in.NodePool.Spec.Platform.Agent; a != nil && a.AgentLabelSelector != nil {
		if _, err := metav1.LabelSelectorAsSelector(a.AgentLabelSelector); err != nil {
			return nil, fmt.Errorf("spec.platform.agent.agentLabelSelector can't select anything: %w", err)
		}
		spec.AgentLabelSelector = a.AgentLabelSelector
	}
	object, err := cloud.Template(templateKind, &spec)
	if err != nil {
		return nil, err
	}
	return &machine.Template{Object: object}, nil
}

// Mistakes implements platform.Validator.
func (Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	if agentNamespace(hc) == "" {
		return []string{"spec.platform.agent.agentNamespace is empty: name the namespace of the Agents"}
	}
	return nil
}
