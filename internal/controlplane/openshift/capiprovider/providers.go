package capiprovider

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

const (
	manager  = "manager"
	webhooks = "capi-webhooks-tls"
	tokenDir = "/var/run/secrets/openshift/serviceaccount"
)

// provider says how that of a platform runs.
type provider struct {
	// tag is the image in the payload, empty where it has none; annotation names another.
	tag, annotation string
	command, args   []string
	env             []corev1.EnvVar
	memory          string
	// probed is false for those that don't say how they are.
	probed bool
	// secret of credentials, and where it is mounted; optional.
	secret, dir string
	rules       []rbacv1.PolicyRule
	// complete adds what this platform has alone.
	complete func(ctx component.WorkloadContext, pod *corev1.PodSpec)
}

// namespaceFlag restricts a provider to its namespace.
const namespaceFlag = "--namespace=$(MY_NAMESPACE)"

// providerOf is the provider of a control plane's platform, nil where there are no machines for Cluster API.
func providerOf(hcp *hyperv1.HostedControlPlane) *provider {
	everything := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
	}
	platform := hcp.Spec.Platform
	switch {
	case platform.Type == hyperv1.AWSPlatform && platform.AWS != nil:
		return &provider{
			tag: "aws-cluster-api-controllers", annotation: hyperv1.ClusterAPIProviderAWSImage, memory: "100Mi", probed: true,
			args:   []string{"--namespace", "$(MY_NAMESPACE)", "--v=4", "--leader-elect=true"},
			env:    []corev1.EnvVar{{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: "/home/.aws/credentials"}, {Name: "AWS_SDK_LOAD_CONFIG", Value: "true"}},
			secret: "node-management-creds", dir: "/home/.aws", complete: completeAWS,
		}
	case platform.Type == hyperv1.AzurePlatform && platform.Azure != nil:
		return &provider{
			tag: "azure-cluster-api-controllers", annotation: hyperv1.ClusterAPIAzureProviderImage, memory: "10Mi",
			args:     []string{namespaceFlag, "--leader-elect=true", "--feature-gates=MachinePool=false,ASOAPI=false", "--disable-controllers-or-webhooks=DisableASOSecretController"},
			complete: completeAzure,
		}
	case platform.Type == hyperv1.GCPPlatform && platform.GCP != nil:
		return &provider{
			tag: "gcp-cluster-api-controllers", annotation: hyperv1.ClusterAPIGCPProviderImage, memory: "128Mi",
			args:   []string{namespaceFlag, "--leader-elect=true", "--feature-gates=MachinePool=false", "--v=2"},
			env:    []corev1.EnvVar{{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: "/home/.gcp/application_default_credentials.json"}, {Name: "GOOGLE_CLOUD_PROJECT", Value: platform.GCP.Project}},
			secret: "node-management-creds", dir: "/home/.gcp",
		}
	case platform.Type == hyperv1.KubevirtPlatform:
		return &provider{
			annotation: hyperv1.ClusterAPIKubeVirtProviderImage, memory: "100Mi", probed: true,
			args: []string{namespaceFlag, "--v=4", "--leader-elect=true"},
			rules: []rbacv1.PolicyRule{
				everything("", "services"), everything("kubevirt.io", "virtualmachines", "virtualmachineinstances"),
				{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes"}, Verbs: []string{"get", "list", "watch"}},
			},
		}
	case platform.Type == hyperv1.OpenStackPlatform && platform.OpenStack != nil:
		return &provider{
			tag: "openstack-cluster-api-controllers", annotation: hyperv1.ClusterAPIOpenStackProviderImage, memory: "100Mi", probed: true,
			args:  []string{namespaceFlag, "--leader-elect", "--v=2", "--skip-crd-migration-phases=StorageVersionMigration", "--skip-crd-migration-phases=CleanupManagedFields"},
			rules: []rbacv1.PolicyRule{everything("ipam.cluster.x-k8s.io", "*"), everything("openstack.k-orc.cloud", "*")}, complete: completeOpenStack,
		}
	case platform.Type == hyperv1.PowerVSPlatform && platform.PowerVS != nil:
		return &provider{
			tag: "ibmcloud-cluster-api-controllers", annotation: hyperv1.ClusterAPIPowerVSProviderImage, memory: "100Mi", probed: true,
			command: []string{"/bin/cluster-api-provider-ibmcloud-controller-manager"},
			args:    []string{namespaceFlag, "--leader-elect=true", "--provider-id-fmt=v2"},
			env:     []corev1.EnvVar{{Name: "IBM_CREDENTIALS_FILE", Value: "/home/.ibmcloud/ibm-credentials.env"}},
			secret:  platform.PowerVS.NodePoolManagementCreds.Name, dir: "/home/.ibmcloud",
		}
	}
	return nil
}

// deployment is the platform's part of the Deployment.
func (p *provider) deployment(ctx component.WorkloadContext) (*appsv1.DeploymentSpec, error) {
	image := cmp.Or(ctx.HCP.Annotations[p.annotation], p.tag)
	if image == "" {
		return nil, fmt.Errorf("no image of the provider of Cluster API: annotation %s names one", p.annotation)
	}
	c := corev1.Container{
		Name: manager, Image: image, Command: p.command, Args: append([]string{}, p.args...),
		Env:          append([]corev1.EnvVar{{Name: "MY_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}, p.env...),
		Resources:    requests("10m", p.memory),
		VolumeMounts: []corev1.VolumeMount{{Name: webhooks, MountPath: "/tmp/k8s-webhook-server/serving-certs", ReadOnly: true}},
	}
	if p.probed {
		c.Ports = []corev1.ContainerPort{{Name: "healthz", ContainerPort: 9440, Protocol: corev1.ProtocolTCP}}
		probe := func(path string) *corev1.Probe {
			return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("healthz")}}}
		}
		c.LivenessProbe, c.ReadinessProbe = probe("/healthz"), probe("/readyz")
	}
	pod := corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](10), Containers: []corev1.Container{c}, Volumes: []corev1.Volume{component.SecretVolume(webhooks, webhooks)},
	}
	if p.secret != "" {
		kit.Mount(&pod, manager, component.SecretVolume("credentials", p.secret), p.dir)
	}
	if p.complete != nil {
		p.complete(ctx, &pod)
	}
	if kit.AtLeast(ctx.Release.Version, 23) {
		main := component.Container(&pod, manager)
		main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	}
	return &appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Template: corev1.PodTemplateSpec{Spec: pod}}, nil
}

// completeAWS adds a token for the cloud.
func completeAWS(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	main, gates := component.Container(pod, manager), "--feature-gates=EKS=false"
	if kit.AtLeast(ctx.Release.Version, 16) {
		gates += ",ROSA=false"
	}
	main.Args = append(main.Args, gates)
	main.Env = append(main.Env, component.AWSEndpoints(ctx)...)
	addTokenMinter(pod, "token-minter", "token", "capa-controller-manager")
}

// completeAzure adds the provider's identity.
func completeAzure(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	if kit.ARO(ctx) {
		kit.MountIdentity(pod, manager, "nodepool-management-cert", "managed-azure-nodepool-management")
		return
	}
	identity := kit.WorkloadIdentities(ctx.HCP)
	if identity == nil {
		return
	}
	main := component.Container(pod, manager)
	kit.SetEnv(main, "AZURE_FEDERATED_TOKEN_FILE", tokenDir+"/token")
	kit.SetEnv(main, "AZURE_CLIENT_ID", string(identity.NodePoolManagement.ClientID))
	kit.SetEnv(main, "AZURE_TENANT_ID", ctx.HCP.Spec.Platform.Azure.TenantID)
	addTokenMinter(pod, "cloud-token-minter", "cloud-token", Name)
}

// completeOpenStack adds the manager of images, which payloads have from 4.19 on: machines boot from what it imports, and nobody else removes that.
func completeOpenStack(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	if !kit.AtLeast(ctx.Release.Version, 19) {
		return
	}
	c := corev1.Container{
		Name: "orc-manager", Image: "openstack-resource-controller", Command: []string{"/manager"},
		Args:      []string{namespaceFlag, "--leader-elect", "--health-probe-bind-address=:8081"},
		Env:       append([]corev1.EnvVar{}, component.Container(pod, manager).Env...),
		Ports:     []corev1.ContainerPort{{Name: "orc-healthz", ContainerPort: 8081, Protocol: corev1.ProtocolTCP}},
		Resources: requests("10m", "64Mi"),
	}
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	probe := func(path string, delay, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("orc-healthz")}},
			InitialDelaySeconds: delay, PeriodSeconds: period,
		}
	}
	c.LivenessProbe, c.ReadinessProbe = probe("/healthz", 15, 20), probe("/readyz", 5, 10)
	pod.Containers = append(pod.Containers, c)
}

// addTokenMinter keeps a token of a ServiceAccount of the hosted cluster in a file of the provider.
func addTokenMinter(pod *corev1.PodSpec, name, volume, account string) {
	main := component.Container(pod, manager)
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: tokenDir})
	const kubeconfig = "svc-kubeconfig"
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		component.SecretVolume(kubeconfig, names.ServiceNetworkKubeconfig))
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: name, Image: "token-minter", Command: []string{"/usr/bin/control-plane-operator", "token-minter"}, Resources: requests("10m", "30Mi"),
		Args: []string{
			"--token-audience=openshift", "--service-account-namespace=kube-system", "--service-account-name=" + account,
			"--token-file=" + tokenDir + "/token", "--kubeconfig=/etc/kubernetes/kubeconfig",
		},
		VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: tokenDir}, {Name: kubeconfig, MountPath: "/etc/kubernetes"}},
	})
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}
