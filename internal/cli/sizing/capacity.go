package sizing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/hostedcluster"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/sizing"
)

// Fit is how many more hosted clusters of a size there is room for.
type Fit struct {
	// Size is empty where there are no sizes.
	Size string `json:"size,omitempty"`
	// Count is how many fit; with More set, at least that many.
	Count int  `json:"count"`
	More  bool `json:"more,omitempty"`
	// Needs is what one asks for.
	Needs string `json:"needs"`
	// Lack says why not one more.
	Lack string `json:"lack,omitempty"`
	// Nodes are those that one may use, with what is free there now.
	Nodes []FitNode `json:"nodes"`
	// Unsuited is how many other nodes there are that take pods, Closed how many take none.
	Unsuited int `json:"unsuited"`
	Closed   int `json:"closed"`
}

// FitNode is a node of the management cluster with room.
type FitNode struct {
	Name string `json:"name"`
	Free string `json:"free"`
}

// most is how many clusters are tried.
const most = 200

// CapacityCommand is "capacity".
func CapacityCommand() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	like, namespace, availability := "", connect.DefaultNamespace, string(hyperv1.SingleReplica)
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Show how many more hosted clusters of each size fit, where, and why not more",
		Long: `Show how many more hosted clusters of each size fit on the nodes of the management cluster, where, and why not more.

The calculation is the operator's own before it starts a control plane: by requests, with room reserved for what was admitted before, each size by itself.
Without sizes, it is for a cluster without their effects.`,
		Example: `  hypershift capacity
  hypershift capacity --availability-policy HighlyAvailable
  hypershift capacity --like demo -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.Client()
			if err != nil {
				return err
			}
			model, err := template(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: like}, availability)
			if err != nil {
				return err
			}
			fits, err := Capacity(cmd.Context(), c, model)
			if err != nil {
				return err
			}
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), fits)
			}
			return printFits(cmd.OutOrStdout(), fits)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&like, "like", "", "HostedCluster that the others would be like, effects of its size apart (default: one on platform None)")
	fs.StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the HostedCluster of --like")
	fs.StringVar(&availability, "availability-policy", availability, "Without --like: SingleReplica or HighlyAvailable")
	flags.AddFlags(fs)
	format.AddFlag(cmd)
	connect.CompleteHostedClusters(cmd, &flags, "like", &namespace)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	return cmd
}

// template is the HostedCluster that is counted.
func template(ctx context.Context, c client.Reader, key client.ObjectKey, availability string) (*hyperv1.HostedCluster, error) {
	if key.Name != "" {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, key, hc); apierrors.IsNotFound(err) {
			return nil, exit.With(exit.NotFound, fmt.Errorf("--like: there is no HostedCluster %s: `kubectl get hostedclusters -A` lists them", key))
		} else if err != nil {
			return nil, fmt.Errorf("reading HostedCluster %s: %w", key, err)
		}
		for name := range maps.Clone(hc.Annotations) {
			if sizing.IsEffect(hc, name) {
				delete(hc.Annotations, name)
			}
		}
		return hc, nil
	}
	policy := hyperv1.AvailabilityPolicy(availability)
	if policy != hyperv1.SingleReplica && policy != hyperv1.HighlyAvailable {
		return nil, fmt.Errorf("--availability-policy %q: must be SingleReplica or HighlyAvailable", availability)
	}
	return &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capacity", Name: "one"},
		Spec: hyperv1.HostedClusterSpec{
			Platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}, ControllerAvailabilityPolicy: policy,
			Etcd:       hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}},
			Networking: hyperv1.ClusterNetworking{ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}, ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}},
		},
	}, nil
}

// Capacity counts for each size how many control planes like that of a HostedCluster fit.
func Capacity(ctx context.Context, c client.Client, model *hyperv1.HostedCluster) ([]Fit, error) {
	caps, err := management.CapabilitiesOf(c.RESTMapper())
	if err != nil {
		return nil, fmt.Errorf("finding out what the management cluster offers: %w", err)
	}
	queue := admission.New(admission.Wait, admission.Options{
		Reader: c, Live: c, Clock: clock.RealClock{}, Capabilities: caps,
		Management: &management.Cluster{Reader: c, Mapper: c.RESTMapper(), NativeSidecars: true, Clock: clock.RealClock{}},
		Render: func(hc *hyperv1.HostedCluster) *hyperv1.HostedControlPlane {
			return hostedcluster.PreviewControlPlane(hc, nil)
		},
	})
	world, err := queue.Room(ctx)
	if err != nil {
		return nil, err
	}
	config, err := read.Optional(ctx, c, client.ObjectKey{Name: sizing.ConfigurationName}, &schedulingv1alpha1.ClusterSizingConfiguration{})
	if err != nil {
		return nil, err
	}
	sizes := []schedulingv1alpha1.SizeConfiguration{{}}
	if config != nil && sizing.Check(&config.Spec) == nil {
		sizes = config.Spec.Sizes
	}
	serving, err := dedicatedFor(ctx, c, model)
	if err != nil {
		return nil, err
	}
	fits := []Fit{}
	for i := range sizes {
		hc := model.DeepCopy()
		for key, value := range sizing.Effects(&sizes[i]) {
			metav1.SetMetaDataAnnotation(&hc.ObjectMeta, key, value)
		}
		groups, spare, err := queue.Demands(ctx, hostedcluster.PreviewControlPlane(hc, nil), nil)
		if err != nil {
			return nil, fmt.Errorf("working out what a control plane of size %q asks for: %w", sizes[i].Name, err)
		}
		if len(groups) == 0 {
			return nil, errors.New("a control plane would ask for nothing: this is a fault of the program")
		}
		n, next := capacity.HowMany(world, serving.others(capacity.Candidate{Groups: groups, Spare: spare}), most)
		fit := Fit{Size: sizes[i].Name, Count: n, More: next.Admitted, Needs: capacity.Text(next.Needed), Lack: next.Lack, Unsuited: next.Unsuited, Closed: world.Closed, Nodes: []FitNode{}}
		for _, node := range next.Nodes {
			free := capacity.Amounts{}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				free[name] = max(node.Free[name], 0)
			}
			fit.Nodes = append(fit.Nodes, FitNode{Name: node.Object.Name, Free: capacity.Text(free)})
		}
		fits = append(fits, serving.bound(fit))
	}
	return fits, nil
}

func printFits(w io.Writer, fits []Fit) error {
	table := [][]string{{"SIZE", "MORE FIT", "ONE NEEDS", "WHY NOT MORE"}}
	for _, f := range fits {
		count, why := fmt.Sprint(f.Count), f.Lack
		if f.More {
			count, why = count+" at least", "-"
		}
		table = append(table, []string{dash(f.Size), count, f.Needs, why})
	}
	if err := output.Table(w, table); err != nil {
		return err
	}
	for _, f := range fits[:min(1, len(fits))] {
		if _, err := fmt.Fprintf(w, "\nFree now on nodes that suit (%d other nodes don't, %d take no pods):\n", f.Unsuited, f.Closed); err != nil {
			return err
		}
		for _, n := range f.Nodes {
			if _, err := fmt.Fprintf(w, "  %s: %s\n", n.Name, n.Free); err != nil {
				return err
			}
		}
	}
	return nil
}
