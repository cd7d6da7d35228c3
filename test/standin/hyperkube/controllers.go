package hyperkube

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ControllerManager translates a KubeControllerManagerConfig. Args are the other arguments of the container.
func ControllerManager(raw []byte, args []string) (Start, error) {
	var c struct {
		APIVersion       string              `json:"apiVersion"`
		Kind             string              `json:"kind"`
		Extended         map[string][]string `json:"extendedArguments"`
		ServiceServingCA struct {
			CertFile string `json:"certFile,omitempty"`
		} `json:"serviceServingCert,omitzero"`
	}
	if err := strict(raw, &c, "kubecontrolplane.config.openshift.io/v1", "KubeControllerManagerConfig"); err != nil {
		return Start{}, err
	}
	if c.APIVersion != "kubecontrolplane.config.openshift.io/v1" || c.Kind != "KubeControllerManagerConfig" {
		return Start{}, fmt.Errorf("the configuration is a %s %s, not a KubeControllerManagerConfig", c.APIVersion, c.Kind)
	}
	s := Start{}
	if c.ServiceServingCA.CertFile != "" {
		s.Needs = append(s.Needs, c.ServiceServingCA.CertFile)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Extended)) {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--"+name+"=") }) {
			for _, v := range c.Extended[name] {
				s.Args = append(s.Args, "--"+name+"="+v)
			}
		}
	}
	s.Args = append(s.Args, PlainFlags(args)...)
	return s, nil
}

// PlainFlags leaves out gates of OpenShift that are given as --feature-gates=NAME=BOOL.
func PlainFlags(args []string) []string {
	return without(args, func(a string) bool {
		gates, ok := strings.CutPrefix(a, "--feature-gates=")
		return ok && len(PlainGates(strings.Split(gates, ","))) == 0
	})
}
