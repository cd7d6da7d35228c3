package configoperator

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/kubeconfig"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/responses"
)

// maxAnswer bounds an answer of the hosted API, watches apart (whose decoder bounds each event). An object has at most 1.5 MiB
// and we list one at a time; discovery of a cluster with thousands of custom resources may have a few MiB.
const maxAnswer = 16 << 20

// hostedConfig is the connection to the hosted API in a kubeconfig file.
func hostedConfig(path string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the hosted cluster's kubeconfig %q: %w", path, err)
	}
	return bounded(cfg), nil
}

// bounded gives a connection to a hosted API its limits. No timeout: it would cut watches, so callers bound their contexts.
func bounded(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the hosted API server's priority and fairness does that job
	cfg.UserAgent = names.ConfigOperator
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // that Endpoints are deprecated is known
	responses.Limit(cfg, maxAnswer)
	process.TellRefusals(cfg)
	return cfg
}

func hostedClient(cfg *rest.Config, scheme *runtime.Scheme) (client.WithWatch, error) {
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building a client of the hosted cluster: %w", err)
	}
	return c, nil
}

// infraClient is for the cluster that runs virtual machines, nil without a kubeconfig. The kubeconfig is the user's.
func infraClient(path string) (client.Client, error) {
	if path == "" {
		return nil, nil
	}
	const flag = "--kubevirt-infra-kubeconfig"
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	config, err := kubeconfig.Foreign(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, path, err)
	}
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("%s: cluster %q has its authority from a file: embed it", flag, name)
		}
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	c, err := client.New(bounded(cfg), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("building a client of the cluster that runs virtual machines: %w", err)
	}
	return c, nil
}
