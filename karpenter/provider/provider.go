package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"hcp.internal/karpenter/api"
)

const (
	// zone is the only one.
	zone = "local"
	// Prices of a type that names none.
	processorPrice, gibPrice = 1.0, 0.25
	// podsPerNode is the kubelet's own bound.
	podsPerNode = 110
	// evictionMemory is what the kubelet keeps free.
	evictionMemory = "100Mi"
	disk           = "20Gi"

	// unhealthyAfter is how long a node may be away before it is replaced, where gate NodeRepair is on.
	unhealthyAfter = 10 * time.Minute
)

// Why a NodeClaim has drifted.
const (
	TemplateDrift cloudprovider.DriftReason = "NodePoolTemplateChanged"
	TypeDrift     cloudprovider.DriftReason = "InstanceTypeGone"
)

// Provider is Karpenter's cloud provider.
type Provider struct {
	// Hosted reads node classes.
	Hosted   client.Reader
	Machines Machines
	// Retire: no more machines are made.
	Retire bool
}

// errRetired is why none is made.
var errRetired = errors.New("spec.autoNode of the hosted cluster asks for no Karpenter any more")

var _ cloudprovider.CloudProvider = &Provider{}

// Name implements CloudProvider.
func (*Provider) Name() string { return "hypershift" }

// GetSupportedNodeClasses implements CloudProvider.
func (*Provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&api.HyperShiftNodeClass{}}
}

// RepairPolicies implements CloudProvider.
func (*Provider) RepairPolicies() (list []cloudprovider.RepairPolicy) {
	for _, s := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		list = append(list, cloudprovider.RepairPolicy{ConditionType: corev1.NodeReady, ConditionStatus: s, TolerationDuration: unhealthyAfter})
	}
	return list
}

// class reads a node class; nil: there is none.
func (p *Provider) class(ctx context.Context, ref *v1.NodeClassReference) (*api.HyperShiftNodeClass, error) {
	if ref == nil || ref.Group != api.GroupVersion.Group || ref.Kind != api.Kind {
		return nil, nil
	}
	class := &api.HyperShiftNodeClass{}
	if err := p.Hosted.Get(ctx, client.ObjectKey{Name: ref.Name}, class); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading HyperShiftNodeClass %s: %w", ref.Name, err)
	}
	return class, nil
}

// GetInstanceTypes implements CloudProvider: those of the node class.
func (p *Provider) GetInstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if p.Retire {
		return nil, nil
	}
	class, err := p.class(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if class == nil || err != nil {
		return nil, err
	}
	var list []*cloudprovider.InstanceType
	for _, t := range class.Spec.InstanceTypes {
		list = append(list, typeOf(t))
	}
	return list, nil
}

func price(t api.InstanceType) float64 {
	if t.Price != nil {
		return t.Price.AsApproximateFloat64()
	}
	return t.CPU.AsApproximateFloat64()*processorPrice + t.Memory.AsApproximateFloat64()/(1<<30)*gibPrice
}

// capacity is what the node of a machine reports: whole processors.
func capacity(t api.InstanceType) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(math.Ceil(t.CPU.AsApproximateFloat64())), resource.DecimalSI),
		corev1.ResourceMemory:           t.Memory.DeepCopy(),
		corev1.ResourcePods:             *resource.NewQuantity(podsPerNode, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: resource.MustParse(disk),
	}
}

// typeOf describes a size as Karpenter's scheduler wants it. Machines are Pods of the management cluster: of its architecture, and of one zone.
func typeOf(t api.InstanceType) *cloudprovider.InstanceType {
	in := func(key, value string) *scheduling.Requirement {
		return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value)
	}
	return &cloudprovider.InstanceType{
		Name: t.Name,
		Requirements: scheduling.NewRequirements(
			in(corev1.LabelInstanceTypeStable, t.Name), in(corev1.LabelArchStable, runtime.GOARCH), in(corev1.LabelOSStable, "linux"),
			in(corev1.LabelTopologyZone, zone), in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
		),
		Offerings: cloudprovider.Offerings{{
			Requirements: scheduling.NewRequirements(in(corev1.LabelTopologyZone, zone), in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)),
			Price:        price(t), Available: true,
		}},
		Capacity: capacity(t),
		Overhead: &cloudprovider.InstanceTypeOverhead{EvictionThreshold: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(evictionMemory)}},
	}
}

// choose is the cheapest type that a claim allows; of two that cost the same, the first by name.
func choose(class *api.HyperShiftNodeClass, claim *v1.NodeClaim) (api.InstanceType, bool) {
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	var best api.InstanceType
	found := false
	for _, t := range slices.SortedFunc(slices.Values(class.Spec.InstanceTypes), func(a, b api.InstanceType) int {
		switch x, y := price(a), price(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		default:
			return 0
		}
	}) {
		it := typeOf(t)
		if !found && wanted.Compatible(it.Requirements, scheduling.AllowUndefinedWellKnownLabels) == nil && fits(claim.Spec.Resources.Requests, it.Allocatable()) {
			best, found = t, true
		}
	}
	return best, found
}

func fits(requests, allocatable corev1.ResourceList) bool {
	for name, want := range requests {
		if have, ok := allocatable[name]; !ok && !want.IsZero() || ok && want.Cmp(have) > 0 {
			return false
		}
	}
	return true
}

// Create implements CloudProvider. The machine has the name of the claim, so that doing it again makes no second one.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	if p.Retire {
		return nil, cloudprovider.NewInsufficientCapacityError(errRetired)
	}
	class, err := p.class(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("there is no %s %s", api.Kind, claim.Spec.NodeClassRef.Name))
	}
	if ready := class.StatusConditions().Get(status.ConditionReady); ready.IsFalse() {
		return nil, cloudprovider.NewNodeClassNotReadyError(errors.New(ready.Message))
	}
	t, err := p.Machines.Template(ctx, class.Spec.NodePool)
	if unfit := (Unfit{}); errors.As(err, &unfit) {
		return nil, cloudprovider.NewNodeClassNotReadyError(unfit)
	} else if err != nil {
		return nil, cloudprovider.NewCreateError(err, "TemplateUnreadable", err.Error())
	}
	size, ok := choose(class, claim)
	if !ok {
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("no instance type of %s %s is large enough", api.Kind, class.Name))
	}
	labels := maps.Clone(claim.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range typeOf(size).Requirements {
		if r.Len() == 1 && r.Operator() == corev1.NodeSelectorOpIn {
			labels[r.Key] = r.Values()[0]
		}
	}
	if err := p.Machines.Create(ctx, claim.Name, t, size, labels); err != nil {
		return nil, cloudprovider.NewCreateError(err, "MachineRefused", err.Error())
	}
	out := p.claim(&Made{Name: claim.Name, Labels: labels})
	out.Status.Capacity, out.Status.Allocatable = capacity(size), typeOf(size).Allocatable()
	return out, nil
}

// claim is a machine as Karpenter knows it.
func (p *Provider) claim(m *Made) *v1.NodeClaim {
	out := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: m.Labels}}
	if m.Deleting {
		out.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	out.Status.ProviderID, out.Status.NodeName = p.Machines.ProviderID(m.Name), m.Name
	return out
}

var errGone = errors.New("the machine is gone")

// Delete implements CloudProvider.
func (p *Provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	gone, err := p.Machines.Delete(ctx, claim.Name)
	if err != nil {
		return err
	}
	if gone {
		return cloudprovider.NewNodeClaimNotFoundError(errGone)
	}
	return nil
}

// Get implements CloudProvider.
func (p *Provider) Get(ctx context.Context, providerID string) (*v1.NodeClaim, error) {
	name := p.Machines.Name(providerID)
	if name == "" {
		return nil, cloudprovider.NewNodeClaimNotFoundError(errGone)
	}
	m, err := p.Machines.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, cloudprovider.NewNodeClaimNotFoundError(errGone)
	}
	return p.claim(m), nil
}

// List implements CloudProvider.
func (p *Provider) List(ctx context.Context) ([]*v1.NodeClaim, error) {
	list, err := p.Machines.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []*v1.NodeClaim
	for _, m := range list {
		out = append(out, p.claim(m))
	}
	return out, nil
}

// IsDrifted implements CloudProvider: a machine has drifted when the NodePool's are made otherwise by now, or its type is none any more.
func (p *Provider) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	class, err := p.class(ctx, claim.Spec.NodeClassRef)
	if class == nil || err != nil {
		return "", err
	}
	m, err := p.Machines.Get(ctx, claim.Name)
	if m == nil || err != nil {
		return "", err
	}
	t, err := p.Machines.Template(ctx, class.Spec.NodePool)
	if errors.As(err, &Unfit{}) {
		return "", nil // the class says so; what runs goes on
	}
	if err != nil {
		return "", err
	}
	if m.Hash != t.Hash() {
		return TemplateDrift, nil
	}
	known := slices.ContainsFunc(class.Spec.InstanceTypes, func(it api.InstanceType) bool { return it.Name == m.Labels[corev1.LabelInstanceTypeStable] })
	if !known {
		return TypeDrift, nil
	}
	return "", nil
}
