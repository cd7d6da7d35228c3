package create

import (
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// platform is what the command line knows about a platform. A new one is an entry of the table and a file.
type platform struct {
	kind hyperv1.PlatformType
	arg  string // how the command line writes it
	text texts
	// cluster and pool return what the platform adds to hosted clusters and to pools; nil: nothing.
	cluster func() clusterPlatform
	pool    func() poolPlatform
	// inPlace: nobody makes machines, so workers get a new release where they are.
	inPlace bool
}

// selfContained is a poolPlatform that needs nothing of the HostedCluster.
type selfContained struct{}

func (selfContained) leftOpen() []string                    { return nil }
func (selfContained) complete(*hyperv1.HostedCluster) error { return nil }

type texts struct{ short, long, example, poolExample string }

// clusterPlatform is what a platform adds to a hosted cluster.
type clusterPlatform interface {
	// addFlags declares the platform's own flags, those of its machines included.
	addFlags(fs *pflag.FlagSet)
	// load reads the files that flags name, refuses what flags make no sense of, and sets what they decide of the rest of o.
	// All problems are reported at once.
	load(fs *pflag.FlagSet, o *Options) error
	// cluster fills in the HostedCluster.
	cluster(o Options, g Generated, hc *hyperv1.HostedCluster)
	// objects returns what the HostedCluster refers to.
	objects(o Options, g Generated) []client.Object
	// pools returns the cluster's first pools, made from one that has what all of them share.
	pools(o Options, g Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool
}

// poolPlatform is what a platform adds to a pool of its own.
type poolPlatform interface {
	addFlags(fs *pflag.FlagSet)
	// load is that of clusterPlatform.
	load(fs *pflag.FlagSet, o *NodePoolOptions) error
	// leftOpen are the flags that were not given and that complete takes from the HostedCluster.
	leftOpen() []string
	// complete takes from the HostedCluster what flags don't say, and says which flag to give when it has none. It isn't called when a pool
	// is rendered and nothing is left open.
	complete(cluster *hyperv1.HostedCluster) error
	// fill fills in the NodePool.
	fill(np *hyperv1.NodePool)
}

var platforms = []platform{
	{kind: hyperv1.NonePlatform, arg: "none", text: noneTexts, inPlace: true},
	{kind: hyperv1.LocalPlatform, arg: "local", text: localTexts},
	{kind: hyperv1.AWSPlatform, arg: "aws", text: awsTexts,
		cluster: func() clusterPlatform { return newAWS() }, pool: func() poolPlatform { return newAWSMachines() }},
	{kind: hyperv1.AzurePlatform, arg: "azure", text: azureTexts,
		cluster: func() clusterPlatform { return newAzure() }, pool: func() poolPlatform { return newAzureMachines() }},
	{kind: hyperv1.GCPPlatform, arg: "gcp", text: gcpTexts,
		cluster: func() clusterPlatform { return newGCP() }, pool: func() poolPlatform { return &gcpMachines{} }},
	{kind: hyperv1.KubevirtPlatform, arg: "kubevirt", text: kubevirtTexts,
		cluster: func() clusterPlatform { return newKubevirt() }, pool: func() poolPlatform { return newKubevirtMachines() }},
	{kind: hyperv1.AgentPlatform, arg: "agent", text: agentTexts, inPlace: true,
		cluster: func() clusterPlatform { return &agent{} }, pool: func() poolPlatform { return &agentMachines{} }},
	{kind: hyperv1.OpenStackPlatform, arg: "openstack", text: openStackTexts,
		cluster: func() clusterPlatform { return newOpenStack() }, pool: func() poolPlatform { return &openStackMachines{} }},
	{kind: hyperv1.PowerVSPlatform, arg: "powervs", text: powerVSTexts,
		cluster: func() clusterPlatform { return newPowerVS() }, pool: func() poolPlatform { return newPowerVSMachines() }},
}

// platformOf is the entry of a platform; the zero one for a platform that isn't in the table.
func platformOf(kind hyperv1.PlatformType) platform {
	for _, p := range platforms {
		if p.kind == kind {
			return p
		}
	}
	return platform{kind: kind}
}

// PlatformArgs are the platforms as the CLI writes them.
func PlatformArgs() []string {
	var args []string
	for _, p := range platforms {
		args = append(args, p.arg)
	}
	return args
}

// PlatformArg is the platform as the CLI writes it; empty for one that has no commands.
func PlatformArg(kind hyperv1.PlatformType) string { return platformOf(kind).arg }

var noneTexts = texts{
	short: "Create a hosted cluster whose workers you bring yourself",
	long: `Create a hosted cluster whose workers you bring yourself.

The API is published by node port, at the address of a node of the management cluster unless you name one, or by a load
balancer. Creating the same cluster again changes what you changed and keeps keys.

Any machine with a kubelet that reaches the API can become a worker: it asks for certificates, and you approve them with
kubectl. docs/bring-your-own-nodes.md says how, with a script.`,
	example: `  # Publish by a load balancer and wait until the API answers
  hypershift create cluster none --name demo --pull-secret ~/pull-secret.json \
    --release-image registry.example.com/hypershift/release:1.36.3 --expose-through-load-balancer --wait

  # Look first, apply with your own tools
  hypershift create cluster none --name demo --pull-secret ~/pull-secret.json --external-api-server-address api.example.com \
    --release-image registry.example.com/hypershift/release:1.36.3 --render --render-sensitive > demo.yaml`,
}

var localTexts = texts{
	short: "Create a hosted cluster in the local management cluster",
	long: `Create a hosted cluster in the management cluster that ` + "`hypershift local up`" + ` started on this machine.

The API gets an address of its own on this machine. No pull secret is needed for the local registry.`,
	example: `  hypershift create cluster local --name demo --wait
  hypershift create cluster local --name big --control-plane-availability-policy HighlyAvailable \
    --release-image 10.244.0.1:5000/hypershift/release:1.36.3`,
}
