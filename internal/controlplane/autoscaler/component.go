// Package autoscaler is the component that sizes NodePools with spec.autoScaling: the payload's cluster autoscaler on OpenShift releases,
// and on Kubernetes releases our own, which takes the same flags.
//
// It exists where there are machines to manage, and has no replica while no NodePool asks for it.
package autoscaler

import (
	"embed"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/pki"
)

// Name of the component, of the program, and of its tag in OpenShift releases.
const Name = "cluster-autoscaler"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		WithAdaptFunction(adaptDeployment).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: "cloud-config"}).
		Build()
}

// wanted is false where there are no machines to manage, where the release has no autoscaler, and until there is a hosted API to look at.
func wanted(ctx component.WorkloadContext) (bool, error) {
	if _, disabled := ctx.HCP.Annotations[hyperv1.DisableMachineManagement]; disabled {
		return false, nil
	}
	if !ctx.Release.Kubernetes && len(ctx.Release.Missing(Name)) > 0 {
		return false, nil
	}
	return component.HasKubeconfig(ctx, pki.CAPIKubeconfig(ctx.HCP.Spec.InfraID))
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, main := ctx.HCP, component.Container(&d.Spec.Template.Spec, Name)
	if !ctx.Release.Kubernetes {
		main.Image, main.Command = Name, []string{"/usr/bin/" + Name}
	}
	if image := strings.TrimSpace(hcp.Annotations[hyperv1.ClusterAutoscalerImage]); image != "" {
		main.Image = image
	}
	if hcp.Annotations[hyperv1.DisableClusterAutoscalerAnnotation] == "true" {
		d.Spec.Replicas = ptr.To[int32](0)
	}
	main.Args = append(main.Args, "--node-group-auto-discovery=clusterapi:namespace="+hcp.Namespace)
	main.Args = append(main.Args, flags(hcp.Spec.Autoscaling)...)
	if n := hcp.Spec.Autoscaling.MaxPodGracePeriod; n != nil && !ctx.Release.Kubernetes { // ours leaves draining to Cluster API
		main.Args = append(main.Args, "--max-graceful-termination-sec="+strconv.Itoa(int(*n)))
	}
	for _, label := range platformLabels[hcp.Spec.Platform.Type] {
		main.Args = append(main.Args, "--balancing-ignore-label="+label)
	}
	for i := range d.Spec.Template.Spec.Volumes {
		if v := &d.Spec.Template.Spec.Volumes[i]; v.Name == "kubeconfig" {
			v.Secret.SecretName = pki.CAPIKubeconfig(hcp.Spec.InfraID)
		}
	}
	return nil
}

// platformLabels differ between nodes of otherwise similar pools, by platform.
var platformLabels = map[hyperv1.PlatformType][]string{
	hyperv1.AWSPlatform: {
		"lifecycle", "k8s.amazonaws.com/eniConfig", "topology.ebs.csi.aws.com/zone", "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name",
		"eks.amazonaws.com/nodegroup",
	},
	hyperv1.AzurePlatform:    {"agentpool", "kubernetes.azure.com/agentpool", "topology.disk.csi.azure.com/zone"},
	hyperv1.GCPPlatform:      {"topology.gke.io/zone"},
	hyperv1.IBMCloudPlatform: {"ibm-cloud.kubernetes.io/worker-id", "vpc-block-csi-driver-labels"},
}

// expanders by their names in the API.
var expanders = map[hyperv1.ExpanderString]string{
	hyperv1.LeastWasteExpander: "least-waste", hyperv1.PriorityExpander: "priority", hyperv1.RandomExpander: "random",
}

// flags say what spec.autoscaling asks for. What is not given is left to the autoscaler.
func flags(a hyperv1.ClusterAutoscaling) []string {
	var list []string
	add := func(flag, value string) { list = append(list, "--"+flag+"="+value) }
	number := func(flag string, n *int32) {
		if n != nil {
			add(flag, strconv.Itoa(int(*n)))
		}
	}
	number("max-nodes-total", a.MaxNodesTotal)
	number("expendable-pods-priority-cutoff", a.PodPriorityThreshold)
	if a.MaxNodeProvisionTime != "" {
		add("max-node-provision-time", a.MaxNodeProvisionTime)
	}
	if n := a.MaxFreeDifferenceRatioPercent; n != nil {
		add("max-free-difference-ratio", hundredth(*n))
	}
	if a.Scaling == hyperv1.ScaleUpOnly {
		add("scale-down-enabled", "false")
	} else if d := a.ScaleDown; d != nil {
		add("scale-down-enabled", "true")
		seconds := func(flag string, n *int32) {
			if n != nil {
				add(flag, strconv.Itoa(int(*n))+"s")
			}
		}
		seconds("scale-down-delay-after-add", d.DelayAfterAddSeconds)
		seconds("scale-down-delay-after-delete", d.DelayAfterDeleteSeconds)
		seconds("scale-down-delay-after-failure", d.DelayAfterFailureSeconds)
		seconds("scale-down-unneeded-time", d.UnneededDurationSeconds)
		if n := d.UtilizationThresholdPercent; n != nil {
			add("scale-down-utilization-threshold", hundredth(*n))
		}
	}
	names := []string{"priority", "least-waste"}
	if len(a.Expanders) > 0 {
		names = nil
		for _, e := range a.Expanders {
			names = append(names, expanders[e])
		}
	}
	add("expander", strings.Join(names, ","))
	for _, label := range a.BalancingIgnoredLabels {
		add("balancing-ignore-label", label)
	}
	return list
}

// hundredth is a number of percent as a fraction with two decimals.
func hundredth(percent int32) string { return strconv.FormatFloat(float64(percent)/100, 'f', 2, 64) }
