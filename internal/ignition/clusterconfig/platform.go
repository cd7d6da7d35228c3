package clusterconfig

import (
	"cmp"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// platform are the parts of the Infrastructure that one platform has: of its spec, of its status, and which file configures the cloud.
func platform(hcp *hyperv1.HostedControlPlane) (spec, status, cloud map[string]any) {
	spec, status, cloud = map[string]any{}, map[string]any{}, map[string]any{"name": ""}
	switch p := hcp.Spec.Platform; {
	case p.Type == hyperv1.AWSPlatform && p.AWS != nil:
		tags := []any{}
		for _, t := range p.AWS.ResourceTags {
			if !strings.HasPrefix(t.Key, "kubernetes.io") {
				tags = append(tags, map[string]any{"key": t.Key, "value": t.Value})
			}
		}
		spec["aws"] = map[string]any{}
		aws := map[string]any{"region": p.AWS.Region}
		if len(tags) > 0 {
			aws["resourceTags"] = tags
		}
		status["aws"] = aws
	case p.Type == hyperv1.AzurePlatform && p.Azure != nil:
		cloud["name"] = "cloud.conf"
		status["azure"] = map[string]any{"cloudName": cmp.Or(p.Azure.Cloud, "AzurePublicCloud"), "resourceGroupName": p.Azure.ResourceGroupName}
	case p.Type == hyperv1.PowerVSPlatform && p.PowerVS != nil:
		status["powervs"] = map[string]any{"region": p.PowerVS.Region, "zone": p.PowerVS.Zone, "cisInstanceCRN": p.PowerVS.CISInstanceCRN,
			"resourceGroup": p.PowerVS.ResourceGroup}
	case p.Type == hyperv1.OpenStackPlatform:
		spec["openstack"] = map[string]any{}
		cloud["name"], cloud["key"] = "cloud-provider-config", "cloud.conf"
		status["openstack"] = map[string]any{"cloudName": "openstack", "loadBalancer": map[string]any{"type": "UserManaged"},
			"apiServerInternalIPs": []any{}, "ingressIPs": []any{}}
	case p.Type == hyperv1.GCPPlatform && p.GCP != nil:
		labels := []any{}
		for _, l := range p.GCP.ResourceLabels {
			if !strings.HasPrefix(l.Key, "kubernetes-io") {
				labels = append(labels, map[string]any{"key": l.Key, "value": ptr.Deref(l.Value, "")})
			}
		}
		gcp := map[string]any{"projectID": p.GCP.Project, "region": p.GCP.Region}
		if len(labels) > 0 {
			gcp["resourceLabels"] = labels
		}
		status["gcp"] = gcp
	}
	return spec, status, cloud
}
