package component

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// sdkServices are names of services, as spec.platform.aws.serviceEndpoints has them, whose variables SDKs call otherwise than by the same name in capitals.
var sdkServices = map[string][]string{
	"elasticloadbalancing":   {"ELASTIC_LOAD_BALANCING", "ELASTIC_LOAD_BALANCING_V2"},
	"elasticloadbalancingv2": {"ELASTIC_LOAD_BALANCING_V2"},
	"route53":                {"ROUTE_53"},
	"tagging":                {"RESOURCE_GROUPS_TAGGING_API"},
	"autoscaling":            {"AUTO_SCALING"},
	"secretsmanager":         {"SECRETS_MANAGER"},
}

// AWSEndpoints are the variables by which programs that call AWS for a hosted cluster learn of endpoints other than AWS's own: that of the installation for
// all services, and over it those that the cluster names for single ones. nil on other platforms.
func AWSEndpoints(ctx WorkloadContext) []corev1.EnvVar {
	if ctx.HCP.Spec.Platform.Type != hyperv1.AWSPlatform {
		return nil
	}
	var named []hyperv1.AWSServiceEndpoint
	if aws := ctx.HCP.Spec.Platform.AWS; aws != nil {
		named = aws.ServiceEndpoints
	}
	var list []corev1.EnvVar
	if endpoint := ctx.Environment.AWSEndpoint; endpoint != "" {
		list = append(list, corev1.EnvVar{Name: EnvAWSEndpoint, Value: endpoint})
	}
	seen := map[string]bool{}
	for _, e := range named {
		for _, service := range sdkNames(e.Name) {
			if name := EnvAWSEndpoint + "_" + service; !seen[name] { // the first counts, as it did for machines that exist
				seen[name] = true
				list = append(list, corev1.EnvVar{Name: name, Value: e.URL})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// sdkNames are the names of a service in variables; none for what can't be in one.
func sdkNames(service string) []string {
	service = strings.ToLower(service)
	if names, ok := sdkServices[service]; ok {
		return names
	}
	name := strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(service))
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' }) {
		return nil
	}
	return []string{name}
}
