package dump

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"hcp.internal/platform/internal/cli/kubeconfig"
)

// guestDir holds what comes from the hosted cluster, apart from what can be trusted.
const guestDir = "hosted-cluster"

// guestTimeout bounds one request to a hosted cluster, which may be dead, or mean.
const guestTimeout = 20 * time.Second

// guestKinds are dumped from a hosted cluster: what tells whether it works, not what its users keep there.
var guestKinds = []string{
	"nodes", "namespaces", "events", "pods", "services", "endpointslices", "certificatesigningrequests", "apiservices",
	"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "clusterroles", "clusterrolebindings",
	"deployments", "daemonsets", "customresourcedefinitions", "clusteroperators", "clusterversions",
}

// guest dumps objects of the hosted cluster through its published kubeconfig. A cluster that doesn't answer is a problem
// to note, not an error: that is when dumps are made.
func (d *dumper) guest(ctx context.Context, o Options) {
	d.progress.Printf("reading the hosted cluster")
	raw, err := kubeconfig.Kubeconfig(ctx, d.client, kubeconfig.Options{Name: o.Name, Namespace: o.Namespace}, nil)
	if err != nil {
		d.problem("hosted cluster: %v", err)
		return
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		d.problem("hosted cluster: its kubeconfig can't be used")
		return
	}
	config.Timeout = guestTimeout
	guest := &dumper{dir: filepath.Join(d.dir, guestDir), progress: d.progress}
	if err := guest.connect(config); err != nil {
		d.problem("hosted cluster: %v", err)
		return
	}
	for _, k := range guest.kinds {
		if slices.Contains(guestKinds, k.resource) {
			guest.list(ctx, k, "")
		}
	}
	d.written = append(d.written, guest.written...)
	for _, problem := range guest.problems {
		d.problem("hosted cluster: %s", problem)
	}
}
