package cloudcontrollermanager

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// healthProbe is how load balancers of the cloud see whether a node takes requests for Services.
type healthProbe struct {
	mode string
	// path and port of a shared probe; empty and zero are left to the cloud controller manager.
	path string
	port int
}

// healthProbeOf reads the annotations of the HostedControlPlane; the first of modes is the default, and the one that has a path and a port.
func healthProbeOf(hcp *hyperv1.HostedControlPlane, annotation string, modes ...string) (healthProbe, error) {
	p := healthProbe{mode: cmp.Or(hcp.Annotations[annotation], modes[0])}
	if !slices.Contains(modes, p.mode) {
		return p, fmt.Errorf("annotation %s is %q: write %s", annotation, p.mode, strings.Join(modes, " or "))
	}
	if p.mode != modes[0] {
		return p, nil
	}
	p.path = hcp.Annotations[hyperv1.SharedLoadBalancerHealthProbePathAnnotation]
	if text := hcp.Annotations[hyperv1.SharedLoadBalancerHealthProbePortAnnotation]; text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return p, fmt.Errorf("annotation %s is %q: write a port, 1 to 65535", hyperv1.SharedLoadBalancerHealthProbePortAnnotation, text)
		}
		p.port = port
	}
	return p, nil
}
