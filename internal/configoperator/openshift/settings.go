package openshift

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// settings are the singletons of config.openshift.io, from spec.configuration and what else the HostedControlPlane says.
func settings(in Input) ([]Action, error) {
	infrastructure, err := infrastructure(in)
	if err != nil {
		return nil, err
	}
	network, err := networkConfig(in)
	actions := []Action{infrastructure, dnsConfig(in), copied("Image", in.configuration().Image), ingressConfig(in)}
	if err == nil {
		actions = append(actions, network)
	}
	proxy, proxyErr := proxyConfig(in)
	actions = append(actions, proxy...)
	actions = append(actions, mirrors(in)...)
	actions = append(actions,
		edit(operatorV1, "CloudCredential", "", cluster, func(live map[string]any) {
			spec := section(live, "spec")
			setIfEmpty(spec, "managementState", "Managed")
			spec["credentialsMode"] = "Manual"
		}),
		authenticationConfig(in),
		copied("APIServer", in.configuration().APIServer))
	return append(actions, observedSettings(in)...), errors.Join(err, proxyErr)
}

// settingAnnotation is on a singleton of which spec.configuration says something, so that this goes when it says no more: nobody else may change it, see
// admissionPolicies. On the Network it names the fields.
const settingAnnotation = "hypershift.io/hosted-cluster-config"

// take makes the spec of a singleton what spec.configuration says of it, and empties it when that says no more. A spec that it never decided is the hosted
// cluster's own.
func take[T any](live map[string]any, annotation string, wanted *T) (spec map[string]any) {
	annotations := peek(live, "metadata", "annotations")
	switch {
	case wanted != nil:
		live["spec"] = encoded(wanted)
		section(live, "metadata", "annotations")[annotation] = "true"
	case annotations[annotation] != nil:
		live["spec"] = map[string]any{}
		delete(annotations, annotation)
	}
	return section(live, "spec")
}

// copied is a singleton whose spec is that of spec.configuration.
func copied[T any](kind string, wanted *T) Action {
	return edit(configV1, kind, "", cluster, func(live map[string]any) { take(live, settingAnnotation, wanted) })
}

// infrastructure says what the hosted cluster runs on.
func infrastructure(in Input) (Action, error) {
	hcp := in.HCP
	external, internal, err := payload.APIServerURLs(hcp)
	if err != nil {
		return Action{}, err
	}
	topology := "SingleReplica"
	if in.highlyAvailable() {
		topology = "HighlyAvailable"
	}
	return edit(configV1, "Infrastructure", "", cluster, func(live map[string]any) {
		spec, status := section(live, "spec"), section(live, "status")
		section(spec, "platformSpec")["type"] = string(hcp.Spec.Platform.Type)
		status["platform"] = string(hcp.Spec.Platform.Type)
		section(status, "platformStatus")["type"] = string(hcp.Spec.Platform.Type)
		status["apiServerURL"], status["apiServerInternalURI"] = external, internal
		status["etcdDiscoveryDomain"] = payload.BaseDomain(hcp)
		status["infrastructureName"] = hcp.Spec.InfraID
		status["controlPlaneTopology"], status["infrastructureTopology"] = "External", topology
		infrastructurePlatform(hcp, spec, section(status, "platformStatus"))
	}), nil
}

// infrastructurePlatform is the part of one platform.
func infrastructurePlatform(hcp *hyperv1.HostedControlPlane, spec, status map[string]any) {
	switch p := hcp.Spec.Platform; {
	case p.Type == hyperv1.AWSPlatform && p.AWS != nil:
		section(spec, "platformSpec", "aws")
		aws := section(status, "aws")
		aws["region"] = p.AWS.Region
		tags := []any{}
		for _, t := range p.AWS.ResourceTags {
			if !strings.HasPrefix(t.Key, "kubernetes.io") {
				tags = append(tags, map[string]any{"key": t.Key, "value": t.Value})
			}
		}
		setList(aws, "resourceTags", tags)
	case p.Type == hyperv1.AzurePlatform && p.Azure != nil:
		spec["cloudConfig"] = map[string]any{"name": "cloud.conf"}
		azure := section(status, "azure")
		azure["cloudName"], azure["resourceGroupName"] = cmp.Or(p.Azure.Cloud, "AzurePublicCloud"), p.Azure.ResourceGroupName
	case p.Type == hyperv1.PowerVSPlatform && p.PowerVS != nil:
		power := section(status, "powervs")
		power["region"], power["zone"] = p.PowerVS.Region, p.PowerVS.Zone
		power["cisInstanceCRN"], power["resourceGroup"] = p.PowerVS.CISInstanceCRN, p.PowerVS.ResourceGroup
	case p.Type == hyperv1.OpenStackPlatform:
		section(spec, "platformSpec", "openstack")
		spec["cloudConfig"] = map[string]any{"name": cloudProviderConfig, "key": "cloud.conf"}
		openstack := section(status, "openstack")
		openstack["cloudName"] = "openstack"
		openstack["loadBalancer"] = map[string]any{"type": "UserManaged"}
		openstack["apiServerInternalIPs"], openstack["ingressIPs"] = []any{}, []any{}
	case p.Type == hyperv1.GCPPlatform && p.GCP != nil:
		gcp := section(status, "gcp")
		gcp["projectID"], gcp["region"] = p.GCP.Project, p.GCP.Region
		labels := []any{}
		for _, l := range p.GCP.ResourceLabels {
			if !strings.HasPrefix(l.Key, "kubernetes-io") {
				labels = append(labels, map[string]any{"key": l.Key, "value": ptr.Deref(l.Value, "")})
			}
		}
		setList(gcp, "resourceLabels", labels)
	}
}

// dnsConfig is the domain of the hosted cluster, and the zones in which its operators make names.
func dnsConfig(in Input) Action {
	hcp := in.HCP
	return edit(configV1, "DNS", "", cluster, func(live map[string]any) {
		spec := section(live, "spec")
		spec["baseDomain"] = payload.BaseDomain(hcp)
		for field, id := range map[string]string{"publicZone": hcp.Spec.DNS.PublicZoneID, "privateZone": hcp.Spec.DNS.PrivateZoneID} {
			if id != "" {
				section(spec, field)["id"] = id
			}
		}
		if aws := hcp.Spec.Platform.AWS; in.on(hyperv1.AWSPlatform) && aws != nil && aws.SharedVPC != nil {
			spec["platform"] = map[string]any{"type": "AWS", "aws": map[string]any{"privateZoneIAMRole": aws.SharedVPC.RolesRef.IngressARN}}
		}
	})
}

func ingressConfig(in Input) Action {
	wanted := in.configuration().Ingress
	return edit(configV1, "Ingress", "", cluster, func(live map[string]any) {
		spec := take(live, settingAnnotation, wanted)
		if wanted == nil || wanted.Domain == "" {
			spec["domain"] = payload.IngressDomain(in.HCP)
		}
	})
}

// networkConfig is the address plan.
func networkConfig(in Input) (Action, error) {
	pods, services, err := payload.Networks(in.HCP)
	if err != nil {
		return Action{}, err
	}
	more := in.configuration().Network
	return edit(configV1, "Network", "", cluster, func(live map[string]any) {
		spec := section(live, "spec")
		spec["clusterNetwork"], spec["serviceNetwork"], spec["networkType"] = pods, services, string(in.HCP.Spec.Networking.NetworkType)
		takeNetwork(live, more)
		// The network operator copies these itself, but waits for the Proxy, which waits for these.
		status := peek(live, "status")
		if in.configuration().Proxy != nil && status["clusterNetwork"] == nil && status["serviceNetwork"] == nil {
			status = section(live, "status")
			status["clusterNetwork"], status["serviceNetwork"] = pods, services
		}
	}), nil
}

// takeNetwork is take for the Network, whose other fields are those of the address plan.
func takeNetwork(live map[string]any, more *configv1.NetworkSpec) {
	const diagnostics = "networkDiagnostics"
	wanted := map[string]any{}
	if more != nil {
		if more.ExternalIP != nil {
			wanted["externalIP"] = encoded(more.ExternalIP)
		}
		if more.ServiceNodePortRange != "" {
			wanted["serviceNodePortRange"] = more.ServiceNodePortRange
		}
		if !equality.Semantic.DeepEqual(more.NetworkDiagnostics, configv1.NetworkDiagnostics{}) {
			wanted[diagnostics] = encoded(more.NetworkDiagnostics)
		}
	}
	spec, taken := section(live, "spec"), strings.Split(text(live, "metadata", "annotations", settingAnnotation), ",")
	for _, field := range []string{"externalIP", "serviceNodePortRange", diagnostics} {
		switch value, ok := wanted[field]; {
		case ok:
			spec[field] = value
		// Diagnostics that are left out are the hosted cluster's own, unless they were ours.
		case slices.Contains(taken, field), more != nil && field != diagnostics:
			delete(spec, field)
		}
	}
	if len(wanted) == 0 {
		delete(peek(live, "metadata", "annotations"), settingAnnotation)
		return
	}
	section(live, "metadata", "annotations")[settingAnnotation] = strings.Join(slices.Sorted(maps.Keys(wanted)), ",")
}

func authenticationConfig(in Input) Action {
	wanted := in.configuration().Authentication
	return edit(configV1, "Authentication", "", cluster, func(live map[string]any) {
		take(live, settingAnnotation, wanted)["serviceAccountIssuer"] = in.HCP.Spec.IssuerURL
	})
}

// mirrors tell nodes and imports of images where copies are. The older kind that said so is removed.
func mirrors(in Input) []Action {
	sets := []any{}
	for _, s := range in.HCP.Spec.ImageContentSources {
		sets = append(sets, map[string]any{"source": s.Source, "mirrors": list(s.Mirrors...)})
	}
	return []Action{
		remove("operator.openshift.io/v1alpha1", "ImageContentSourcePolicy", "", cluster),
		edit(configV1, "ImageDigestMirrorSet", "", cluster, func(live map[string]any) {
			section(live, "metadata", "labels")["machineconfiguration.openshift.io/role"] = "worker"
			section(live, "spec")["imageDigestMirrors"] = sets
		}),
	}
}
