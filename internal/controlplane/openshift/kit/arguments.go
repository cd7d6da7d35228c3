package kit

import (
	"cmp"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// ProfilingArgs are the flag that keeps a program from offering profiles of itself, for those that annotation disable-profiling names.
func ProfilingArgs(hcp *hyperv1.HostedControlPlane, program string) []string {
	for name := range strings.SplitSeq(hcp.Annotations[hyperv1.DisableProfilingAnnotation], ",") {
		if strings.TrimSpace(name) == program {
			return []string{"--profiling=false"}
		}
	}
	return nil
}

// FeatureGateArgs are the gates of the payload as flags, one for each.
func FeatureGateArgs(ctx component.WorkloadContext) ([]string, error) {
	gates, err := FeatureGates(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gates {
		gates[i] = "--feature-gates=" + gates[i]
	}
	return gates, nil
}

// MapFlag is a flag's list of a=b pairs; OpenShift's programs want = for none.
func MapFlag(pairs string) string {
	return cmp.Or(strings.Trim(pairs, ","), "=")
}
