package aws

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/memorylimit"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform, and the hooks beside it.
type Platform struct{}

// Group and version of the provider's kinds.
const (
	apiGroup   = "infrastructure.cluster.x-k8s.io"
	apiVersion = "v1beta2"
)

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: apiGroup, Version: apiVersion, Kind: name}
}

// managedByAnnotation keeps the provider from making a network: what there is has been made with the infrastructure.
const managedByAnnotation = "cluster.x-k8s.io/managed-by"

func object(name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind(name))
	return u
}

// specOf is the platform's part of a HostedCluster; an empty one while it has none, of which Mistakes tells.
func specOf(hc *hyperv1.HostedCluster) *hyperv1.AWSPlatformSpec {
	if hc.Spec.Platform.AWS == nil {
		return &hyperv1.AWSPlatformSpec{}
	}
	return hc.Spec.Platform.AWS
}

// InfraCR implements platform.Platform: an AWSCluster named after the HostedCluster, which the provider reads and leaves alone.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	aws := specOf(hc)
	spec := map[string]any{
		"region":               aws.Region,
		"controlPlaneEndpoint": map[string]any{"host": endpoint.Host, "port": int64(endpoint.Port)},
	}
	if c := aws.CloudProviderConfig; c != nil && c.VPC != "" {
		spec["network"] = map[string]any{"vpc": map[string]any{"id": c.VPC}}
	}
	if tags := clusterTags(aws.ResourceTags); len(tags) > 0 {
		spec["additionalTags"] = tags
	}
	u := object("AWSCluster", map[string]any{"spec": spec})
	u.SetNamespace(hcpNamespace)
	u.SetName(hc.Name)
	u.SetAnnotations(map[string]string{managedByAnnotation: "external"})
	return u, nil
}

// CompleteInfra implements platform.PoolAware: machines get public addresses in subnets only that the AWSCluster calls public.
func (Platform) CompleteInfra(infra client.Object, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) error {
	u, ok := infra.(*unstructured.Unstructured)
	if !ok || !publicAddresses(hc) {
		return nil
	}
	var ids []string
	for _, pool := range pools {
		if aws := pool.Spec.Platform.AWS; aws != nil && ptr.Deref(aws.Subnet.ID, "") != "" {
			ids = append(ids, *aws.Subnet.ID)
		}
	}
	slices.Sort(ids)
	var subnets []any
	for _, id := range slices.Compact(ids) {
		subnets = append(subnets, map[string]any{"id": id, "isPublic": true})
	}
	if len(subnets) == 0 {
		return nil
	}
	return unstructured.SetNestedSlice(u.Object, subnets, "spec", "network", "subnets")
}

func publicAddresses(hc *hyperv1.HostedCluster) bool {
	return hc.Annotations[hyperv1.AWSMachinePublicIPs] == "true"
}

// InfraStatus implements platform.InfraKeeper.
func (Platform) InfraStatus() map[string]any { return map[string]any{"ready": true} }

const (
	// providerTag is the provider's image in a release.
	providerTag = "aws-cluster-api-controllers"
	// providerMemory is some times what the provider of a few machines needs.
	providerMemory = "512Mi"
	credentialsDir = "/home/.aws"
	tokenDir       = "/var/run/secrets/openshift/serviceaccount"
	kubeconfigDir  = "/etc/kubernetes"
)

// featureGates leave out what needs definitions and rights that there are none of.
const featureGates = "EKS=false,ROSA=false,MachinePool=false,AutoControllerIdentityCreator=false,ExternalResourceGC=false,TagUnmanagedNetworkResources=false"

// CAPIProvider implements platform.Platform: the stock provider, and beside it what keeps its token fresh. OpenShift payloads have a form of
// their own, see internal/controlplane/openshift/capiprovider.
func (Platform) CAPIProvider(hc *hyperv1.HostedCluster, _ *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	manager := corev1.Container{
		Name:  "manager",
		Image: cmp.Or(hc.Annotations[hyperv1.ClusterAPIProviderAWSImage], providerTag),
		Args:  []string{"--namespace=$(MY_NAMESPACE)", "--v=4", "--leader-elect=true", "--feature-gates=" + featureGates},
		Env: []corev1.EnvVar{
			{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: credentialsDir + "/" + credentialsKey}, {Name: "AWS_SDK_LOAD_CONFIG", Value: "true"},
		},
		Resources: requests("10m", "100Mi"),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "credentials", MountPath: credentialsDir, ReadOnly: true}, {Name: "token", MountPath: tokenDir, ReadOnly: true},
		},
	}
	memorylimit.Set(&manager, providerMemory)
	minter := corev1.Container{
		Name: "token-minter", Image: "token-minter", Command: []string{"/usr/bin/control-plane-operator", "token-minter"},
		Args: []string{
			"--token-audience=openshift", "--service-account-namespace=kube-system", "--service-account-name=capa-controller-manager",
			"--token-file=" + tokenDir + "/token", "--kubeconfig=" + kubeconfigDir + "/kubeconfig",
		},
		Resources:    requests("10m", "30Mi"),
		VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: tokenDir}, {Name: "svc-kubeconfig", MountPath: kubeconfigDir, ReadOnly: true}},
	}
	spec := &appsv1.DeploymentSpec{}
	spec.Template.Spec = corev1.PodSpec{
		Containers:  []corev1.Container{manager, minter},
		Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}},
		Volumes: []corev1.Volume{
			secretVolume("credentials", nodeManagementSecret),
			{Name: "token", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			secretVolume("svc-kubeconfig", names.ServiceNetworkKubeconfig),
		},
	}
	return spec, nil
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o640)}}}
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// CAPIProviderPolicyRules implements platform.Platform: what all providers may is enough.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule { return nil }

// Traits implements platform.Platform. The provider writes what an instance type offers into the template's status.
func (Platform) Traits() machine.Traits {
	return machine.Traits{
		Managed: true, TemplateKind: kind("AWSMachineTemplate"), Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64}, ScaleFromZero: true,
	}
}

// maxTags is how many resourceTags the API takes.
const maxTags = 25

// Default implements platform.Defaulter: everything that is made for the cluster bears its tag, by which it is found again. Where there is no place for it the
// API would refuse all that is written with it; Mistakes tells.
func (Platform) Default(hc *hyperv1.HostedCluster) bool {
	aws := hc.Spec.Platform.AWS
	if aws == nil || hc.Spec.InfraID == "" {
		return false
	}
	key := clusterTag(hc.Spec.InfraID)
	for i := range aws.ResourceTags {
		if tag := &aws.ResourceTags[i]; tag.Key == key {
			changed := tag.Value != owned
			tag.Value = owned
			return changed
		}
	}
	if len(aws.ResourceTags) >= maxTags {
		return false
	}
	aws.ResourceTags = append(aws.ResourceTags, hyperv1.AWSClusterResourceTag{AWSResourceTag: hyperv1.AWSResourceTag{Key: key, Value: owned}})
	return true
}

// Supported implements platform.Supporter: private access needs VPC endpoint services, which lead to load balancers of the management cluster's region.
func (Platform) Supported(hc *hyperv1.HostedCluster, getenv func(string) string) error {
	aws := specOf(hc)
	if aws.EndpointAccess == "" || aws.EndpointAccess == hyperv1.Public {
		return nil
	}
	switch region := getenv("AWS_REGION"); {
	case region == "" || getenv("AWS_SHARED_CREDENTIALS_FILE") == "":
		return fmt.Errorf("spec.platform.aws.endpointAccess is %s, and the operator supports no private clusters: install it with --private-platform AWS and credentials for it, or make the cluster with endpointAccess Public", aws.EndpointAccess)
	case region != aws.Region:
		return fmt.Errorf("spec.platform.aws.region is %s, and the operator only supports private clusters in region %s: make the cluster there, or with endpointAccess Public", aws.Region, region)
	}
	return nil
}

// Mistakes implements platform.Validator.
func (Platform) Mistakes(hc *hyperv1.HostedCluster) []string {
	aws := hc.Spec.Platform.AWS
	if aws == nil {
		return []string{"spec.platform.aws: is missing: name region, rolesRef and cloudProviderConfig"}
	}
	var mistakes []string
	if aws.Region == "" {
		mistakes = append(mistakes, "spec.platform.aws.region: is empty: name the region of the machines")
	}
	if c := aws.CloudProviderConfig; c == nil || c.VPC == "" {
		mistakes = append(mistakes, "spec.platform.aws.cloudProviderConfig.vpc: is missing: name the VPC of the machines")
	}
	for i, s := range hc.Spec.Services {
		if s.Service != hyperv1.APIServer {
			continue
		}
		strategy := s.ServicePublishingStrategy
		switch host := strategy.Route != nil && strategy.Route.Hostname != ""; {
		case strategy.Type == hyperv1.LoadBalancer, strategy.Type == hyperv1.NodePort: // the latter for management clusters without a cloud
		case strategy.Type == hyperv1.Route && (host || aws.EndpointAccess == hyperv1.Private):
		default:
			mistakes = append(mistakes, fmt.Sprintf("spec.services[%d] (APIServer): on AWS it is published by LoadBalancer, or by Route with a hostname", i))
		}
	}
	return append(mistakes, tagMistakes(hc)...)
}

// tagMistakes are those in spec.platform.aws.resourceTags.
func tagMistakes(hc *hyperv1.HostedCluster) (mistakes []string) {
	list, own := hc.Spec.Platform.AWS.ResourceTags, clusterTag(hc.Spec.InfraID)
	seen := map[string]int{}
	for i, tag := range list {
		if strings.HasPrefix(strings.ToLower(tag.Key), "aws:") {
			mistakes = append(mistakes, fmt.Sprintf("spec.platform.aws.resourceTags[%d]: keys that begin with aws: are reserved: choose another", i))
		}
		if first, again := seen[tag.Key]; again && list[first].Value != tag.Value {
			mistakes = append(mistakes, fmt.Sprintf("spec.platform.aws.resourceTags[%d]: key %s has another value in resourceTags[%d]: keep one", i, tag.Key, first))
		}
		seen[tag.Key] = i
	}
	if _, there := seen[own]; !there && len(list) >= maxTags {
		mistakes = append(mistakes, fmt.Sprintf("spec.platform.aws.resourceTags: has %d tags, and the cluster's own, %s, needs a place among at most %d: take one out", len(list), own, maxTags))
	}
	return mistakes
}

// ForbiddenChanges implements platform.ChangeValidator: machines reach a control plane by another name once it is private, and those that are there don't learn of it.
func (Platform) ForbiddenChanges(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) []string {
	if hc.Spec.Platform.AWS == nil || hcp.Spec.Platform.AWS == nil {
		return nil
	}
	was, wanted := cmp.Or(hcp.Spec.Platform.AWS.EndpointAccess, hyperv1.Public), cmp.Or(hc.Spec.Platform.AWS.EndpointAccess, hyperv1.Public)
	if (was == hyperv1.Public) == (wanted == hyperv1.Public) {
		return nil
	}
	return []string{fmt.Sprintf("spec.platform.aws.endpointAccess: was %s and can't become %s, since a change from or to %s is not supported: set it back to %[1]s, or make another cluster",
		was, wanted, hyperv1.Public)}
}
