package process

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// KubeconfigUsage describes the flag whose value Connect takes.
const KubeconfigUsage = "kubeconfig of the management cluster; empty: KUBECONFIG, or the credentials of the pod"

// Connect finds the management cluster: by a kubeconfig, else by KUBECONFIG, else by the credentials of the pod. agent is the name under which
// the API server's logs and field managers know the process; empty leaves client-go's. It returns once the API server answers, or ctx has ended: what
// an API server that works would say as well is no reason to wait, such as that it does not know who asks; nor is a certificate that isn't trusted.
func Connect(ctx context.Context, kubeconfig, agent string) (*rest.Config, error) {
	cfg, err := find(kubeconfig, agent)
	if err != nil {
		return nil, err
	}
	return cfg, await(ctx, cfg)
}

func find(kubeconfig, agent string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil && kubeconfig != "" {
		return nil, fmt.Errorf("reading the management cluster's kubeconfig %q: %w", kubeconfig, err)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the management cluster (outside of it, give a kubeconfig): %w", err)
	}
	cfg.QPS = -1 // priority and fairness of the API server does this job
	TellRefusals(cfg)
	if agent != "" {
		cfg.UserAgent = agent
	}
	return cfg, nil
}

// Scheme is a scheme of the kinds that these functions add. Most are called AddToScheme.
func Scheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, kinds := range add {
		if err := kinds(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}
