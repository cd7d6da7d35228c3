package bootstrap

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
)

// restartBehindProxy replaces this process by itself with the variables of the cluster's proxy, if they differ: Go reads them once. It returns only
// when there is no need, or when it fails.
func restartBehindProxy(proxy *manifests.PackageEnvironmentProxy) error {
	environment, changed := withProxy(os.Environ(), proxy)
	if !changed {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to start it with the cluster's proxy: %w", err)
	}
	if err := syscall.Exec(self, os.Args, environment); err != nil {
		return fmt.Errorf("starting %s with the cluster's proxy: %w", self, err)
	}
	return nil
}

// withProxy is an environment with the variables of a proxy, and whether it differs.
func withProxy(environment []string, proxy *manifests.PackageEnvironmentProxy) ([]string, bool) {
	if proxy == nil {
		return environment, false
	}
	out, changed := slices.Clone(environment), false
	for _, v := range [][2]string{{"HTTP_PROXY", proxy.HTTPProxy}, {"HTTPS_PROXY", proxy.HTTPSProxy}, {"NO_PROXY", proxy.NoProxy}} {
		have := ""
		out = slices.DeleteFunc(out, func(line string) bool {
			name, value, _ := strings.Cut(line, "=")
			if name == v[0] {
				have = value
			}
			return name == v[0]
		})
		if v[1] != "" {
			out = append(out, v[0]+"="+v[1])
		}
		changed = changed || have != v[1]
	}
	return out, changed
}
