package autoscaler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Ways to choose among groups that could grow. Each narrows what the one before left.
const (
	LeastWaste = "least-waste"
	Priority   = "priority"
	Random     = "random"
)

// Options are the settings of spec.autoscaling. Their flags, and the defaults, are those of the cluster autoscaler.
type Options struct {
	ScaleDown                                          bool
	DelayAfterAdd, DelayAfterDelete, DelayAfterFailure time.Duration
	Unneeded                                           time.Duration
	// Utilization below which a node may be removed, between 0 and 1.
	Utilization float64
	// MaxNodesTotal bounds the nodes of all groups and outside of them; 0: no bound.
	MaxNodesTotal int
	// MaxProvision is how long a machine counts as a node that is on its way.
	MaxProvision time.Duration
	// PriorityCutoff: pods below it cause no growth, and don't keep nodes.
	PriorityCutoff int32
	// Expanders, the first first.
	Expanders []string
	Balance   bool
	// IgnoredLabels may differ between groups that are kept at the same size; MaxFreeDifference is by how much their free resources may.
	IgnoredLabels     []string
	MaxFreeDifference float64
	// MaxRemovals bounds the empty nodes that go in one pass.
	MaxRemovals int
}

// Defaults are those of the cluster autoscaler.
func Defaults() Options {
	return Options{
		ScaleDown: true, DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute, Unneeded: 10 * time.Minute, Utilization: 0.5,
		MaxProvision: 15 * time.Minute, PriorityCutoff: -10, Expanders: []string{LeastWaste}, MaxFreeDifference: 0.05, MaxRemovals: 10,
	}
}

// addFlags adds the flags by which the component gives the options.
func (o *Options) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.ScaleDown, "scale-down-enabled", o.ScaleDown, "remove nodes that are not needed")
	f.DurationVar(&o.DelayAfterAdd, "scale-down-delay-after-add", o.DelayAfterAdd, "how long after a node was added nodes are removed again")
	f.DurationVar(&o.DelayAfterDelete, "scale-down-delay-after-delete", o.DelayAfterDelete, "how long after a node was removed nodes are removed again")
	f.DurationVar(&o.DelayAfterFailure, "scale-down-delay-after-failure", o.DelayAfterFailure, "how long after a removal failed nodes are removed again")
	f.DurationVar(&o.Unneeded, "scale-down-unneeded-time", o.Unneeded, "how long a node must not have been needed before it is removed")
	f.Float64Var(&o.Utilization, "scale-down-utilization-threshold", o.Utilization, "share of requested resources below which a node may be removed")
	f.IntVar(&o.MaxNodesTotal, "max-nodes-total", o.MaxNodesTotal, "most nodes altogether; 0 for no bound")
	f.DurationVar(&o.MaxProvision, "max-node-provision-time", o.MaxProvision, "how long a machine may take to become a node")
	f.Int32Var(&o.PriorityCutoff, "expendable-pods-priority-cutoff", o.PriorityCutoff, "priority below which pods cause no growth and keep no node")
	f.StringSliceVar(&o.Expanders, "expander", o.Expanders, "how to choose among groups that could grow: "+strings.Join([]string{LeastWaste, Priority, Random}, ", "))
	f.BoolVar(&o.Balance, "balance-similar-node-groups", o.Balance, "keep groups whose nodes are alike at the same size")
	f.StringArrayVar(&o.IgnoredLabels, "balancing-ignore-label", o.IgnoredLabels, "label by which groups that are alike may differ")
	f.Float64Var(&o.MaxFreeDifference, "max-free-difference-ratio", o.MaxFreeDifference, "by how much free resources of groups that are alike may differ")
	f.IntVar(&o.MaxRemovals, "max-empty-bulk-delete", o.MaxRemovals, "most empty nodes that are removed at a time")
}

func (o *Options) validate() error {
	var errs []error
	for _, e := range o.Expanders {
		if !slices.Contains([]string{LeastWaste, Priority, Random}, e) {
			errs = append(errs, fmt.Errorf("--expander: unknown %q; known are %s, %s, %s", e, LeastWaste, Priority, Random))
		}
	}
	for name, d := range map[string]time.Duration{
		"scale-down-delay-after-add": o.DelayAfterAdd, "scale-down-delay-after-delete": o.DelayAfterDelete, "scale-down-delay-after-failure": o.DelayAfterFailure,
		"scale-down-unneeded-time": o.Unneeded, "max-node-provision-time": o.MaxProvision,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("--%s: must not be negative", name))
		}
	}
	if o.Utilization < 0 || o.Utilization > 1 {
		errs = append(errs, errors.New("--scale-down-utilization-threshold: must be between 0 and 1"))
	}
	if o.MaxFreeDifference < 0 || o.MaxNodesTotal < 0 || o.MaxRemovals < 1 {
		errs = append(errs, errors.New("--max-free-difference-ratio and --max-nodes-total must not be negative, --max-empty-bulk-delete not below 1"))
	}
	return errors.Join(errs...)
}
