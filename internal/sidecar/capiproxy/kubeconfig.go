package capiproxy

import (
	"fmt"
	"strconv"

	"hcp.internal/platform/internal/atomicfile"
)

// kubeconfig leads to the proxy. It is written by hand because the sidecar links no more of client-go than it has to. There are no
// credentials in it: clients send none over plain HTTP, which is why pods give their proxy --inject-token.
func kubeconfig(port int) string {
	return `apiVersion: v1
kind: Config
clusters:
- name: management
  cluster:
    server: http://127.0.0.1:` + strconv.Itoa(port) + `
contexts:
- name: management
  context:
    cluster: management
    user: ""
current-context: management
`
}

// writeKubeconfig replaces the file as a whole, so that nobody reads half of it.
func (o *Options) writeKubeconfig() error {
	if o.WriteKubeconfig == "" {
		return nil
	}
	// Containers beside this one may run as other users. No secret is in it.
	if err := atomicfile.Write(o.WriteKubeconfig, []byte(kubeconfig(o.Port)), 0o644); err != nil {
		return fmt.Errorf("--write-kubeconfig: %w", err)
	}
	return nil
}
