package create

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var agentTexts = texts{
	short: "Create a hosted cluster whose workers come from the pool of the assisted installer",
	long: `Create a hosted cluster whose workers come from the pool of the assisted installer: machines that booted the discovery image
and are Agents of a namespace of the management cluster.`,
	example: `  hypershift create cluster agent --name demo --agent-namespace machines --base-domain example.org --pull-secret pull-secret.json \
    --api-server-address api.demo.example.com --node-pool-replicas 2 --release-image registry.example.com/ocp/release:4.22`,
	poolExample: `  hypershift create nodepool agent --cluster-name demo --name demo-large --replicas 3 --agentLabelSelector size=large`,
}

// agent is platform Agent.
type agent struct {
	machines  agentMachines
	namespace string
	address   string
}

func (a *agent) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.namespace, "agent-namespace", "", "Namespace in which Agents are looked for (required)")
	fs.StringVar(&a.address, "api-server-address", "", "Publish by node port at this host name or address (default: the address of a node of the management cluster)")
	a.machines.addFlags(fs)
	if domain := fs.Lookup("external-dns-domain"); domain != nil { // of every platform; Options.Validate refuses it on this one
		domain.Usage = "Not in this version: services are published by node port, for which external-dns makes no records"
		domain.Hidden = true
	}
}

func (a *agent) load(fs *pflag.FlagSet, o *Options) error {
	o.APIServerAddress, o.NodePorts = a.address, true
	errs := []error{label("--agent-namespace", a.namespace), a.machines.load(fs, &o.NodePool)}
	if o.infraJSON != "" {
		errs = append(errs, errors.New("--infra-json: platform Agent has no infrastructure to describe; leave it out"))
	}
	return errors.Join(errs...)
}

func (a *agent) cluster(_ Options, _ Generated, hc *hyperv1.HostedCluster) {
	hc.Spec.Platform.Agent = &hyperv1.AgentPlatformSpec{AgentNamespace: a.namespace}
}

func (a *agent) objects(Options, Generated) []client.Object { return nil }

func (a *agent) pools(_ Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	a.machines.fill(shared)
	return []*hyperv1.NodePool{shared}
}

// agentMachines are machines of the assisted installer's pool.
type agentMachines struct {
	selfContained
	selector string
	parsed   *metav1.LabelSelector
}

func (m *agentMachines) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.selector, "agentLabelSelector", "", "Labels of the Agents that may become workers, as in kubectl --selector (default: any)")
}

func (m *agentMachines) load(*pflag.FlagSet, *NodePoolOptions) error {
	if m.selector == "" {
		return nil
	}
	var err error
	if m.parsed, err = metav1.ParseToLabelSelector(m.selector); err != nil {
		return fmt.Errorf("--agentLabelSelector %q: %w", m.selector, err)
	}
	return nil
}

func (m *agentMachines) fill(np *hyperv1.NodePool) {
	np.Spec.Platform.Agent = &hyperv1.AgentNodePoolPlatform{AgentLabelSelector: m.parsed}
}
