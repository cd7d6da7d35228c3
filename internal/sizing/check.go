package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

// ConfigurationName is the name of the only ClusterSizingConfiguration that counts.
const ConfigurationName = "cluster"

// maxSizes bounds how many sizes are looked at: more are a mistake.
const maxSizes = 100

// sizeName is what can be both the reason of a condition and the value of a label.
var sizeName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_]{0,61}[A-Za-z0-9])?$`)

// Check says what is wrong with the sizes: nil, or an error that names each field and what to write there. What the definition of the kind
// refuses (two sizes from 0, none without an end) is found here, too, because it may have been stored before.
func Check(spec *schedulingv1alpha1.ClusterSizingConfigurationSpec) error {
	if len(spec.Sizes) == 0 {
		return errors.New("spec.sizes is empty: write one size with criteria.from 0 at least")
	}
	if len(spec.Sizes) > maxSizes {
		return fmt.Errorf("spec.sizes has %d entries: write %d at most", len(spec.Sizes), maxSizes)
	}
	errs := checkRanges(spec.Sizes)
	known := map[string]bool{}
	perZone := 0
	for i := range spec.Sizes {
		s := &spec.Sizes[i]
		path := fmt.Sprintf("spec.sizes[%s]", s.Name)
		if !sizeName.MatchString(s.Name) {
			errs = append(errs, fmt.Errorf("spec.sizes[%d].name %q can't be the reason of a condition and the value of a label: begin with a letter, and write letters, digits and _ only, 63 at most", i, s.Name))
		}
		if known[s.Name] {
			errs = append(errs, fmt.Errorf("%s is there twice: give each size a name of its own", path))
		}
		known[s.Name] = true
		if s.Management != nil && s.Management.NonRequestServingNodesPerZone != nil {
			perZone++
		}
		errs = append(errs, checkEffects(path+".effects", s.Effects)...)
	}
	if perZone > 0 && perZone < len(spec.Sizes) {
		errs = append(errs, fmt.Errorf("management.nonRequestServingNodesPerZone is set for %d of %d sizes: set it for all or for none", perZone, len(spec.Sizes)))
	}
	if f := spec.ResourceBasedAutoscaling.KubeAPIServerMemoryFraction; f != nil && (f.Sign() <= 0 || f.Cmp(resource.MustParse("1")) > 0) {
		errs = append(errs, fmt.Errorf("spec.resourceBasedAutoscaling.kubeAPIServerMemoryFraction %s: write more than 0 and at most 1", f))
	}
	errs = append(errs, checkDelays(spec)...)
	return errors.Join(append(errs, checkCapacity(spec.Sizes)...)...)
}

func checkDelays(spec *schedulingv1alpha1.ClusterSizingConfigurationSpec) (errs []error) {
	if spec.Concurrency.SlidingWindow.Duration < 0 || spec.TransitionDelay.Increase.Duration < 0 || spec.TransitionDelay.Decrease.Duration < 0 {
		errs = append(errs, errors.New("spec.concurrency.slidingWindow and spec.transitionDelay can't be negative: write 0s for none"))
	}
	return errs
}

// byRange are the sizes from the smallest to the largest.
func byRange(sizes []schedulingv1alpha1.SizeConfiguration) []schedulingv1alpha1.SizeConfiguration {
	sorted := slices.Clone(sizes)
	slices.SortStableFunc(sorted, func(a, b schedulingv1alpha1.SizeConfiguration) int {
		return cmp.Compare(a.Criteria.From, b.Criteria.From)
	})
	return sorted
}

// checkRanges compares neighbours: each range has to begin where the one before it ends.
func checkRanges(sizes []schedulingv1alpha1.SizeConfiguration) (errs []error) {
	sorted := byRange(sizes)
	if first := sorted[0]; first.Criteria.From != 0 {
		errs = append(errs, fmt.Errorf("no size is for 0 nodes: set criteria.from of %s, the smallest, to 0", first.Name))
	}
	for i, s := range sorted {
		last := i == len(sorted)-1
		switch {
		case s.Criteria.To == nil && last:
		case s.Criteria.To == nil:
			errs = append(errs, fmt.Errorf("size %s has no criteria.to, so it overlaps with %s: set it to %d", s.Name, sorted[i+1].Name, sorted[i+1].Criteria.From-1))
		case *s.Criteria.To < s.Criteria.From:
			errs = append(errs, fmt.Errorf("size %s ends at %d before it begins at %d: criteria.to must not be less than criteria.from", s.Name, *s.Criteria.To, s.Criteria.From))
		case last:
			errs = append(errs, fmt.Errorf("no size is for more than %d nodes: take criteria.to from %s, the largest", *s.Criteria.To, s.Name))
		case int64(sorted[i+1].Criteria.From) != int64(*s.Criteria.To)+1:
			word := "a gap"
			if sorted[i+1].Criteria.From <= *s.Criteria.To {
				word = "an overlap"
			}
			errs = append(errs, fmt.Errorf("between size %s, which ends at %d, and size %s, which begins at %d, is %s: let %s begin at %d",
				s.Name, *s.Criteria.To, sorted[i+1].Name, sorted[i+1].Criteria.From, word, sorted[i+1].Name, int64(*s.Criteria.To)+1))
		}
	}
	return errs
}

func checkEffects(path string, e *schedulingv1alpha1.Effects) (errs []error) {
	if e == nil {
		return nil
	}
	for field, name := range map[string]*string{
		"controlPlanePriorityClassName": e.ControlPlanePriorityClassName, "etcdPriorityClassName": e.EtcdPriorityClassName, "APICriticalPriorityClassName": e.APICriticalPriorityClassName,
	} {
		if name != nil && len(validation.IsDNS1123Subdomain(*name)) > 0 {
			errs = append(errs, fmt.Errorf("%s.%s %q is no name of a PriorityClass", path, field, *name))
		}
	}
	for field, n := range map[string]*int{"maximumRequestsInflight": e.MaximumRequestsInflight, "maximumMutatingRequestsInflight": e.MaximumMutatingRequestsInflight} {
		if n != nil && *n < 1 {
			errs = append(errs, fmt.Errorf("%s.%s %d: write 1 or more", path, field, *n))
		}
	}
	if t := e.MachineHealthCheckTimeout; t != nil && t.Duration <= 0 {
		errs = append(errs, fmt.Errorf("%s.machineHealthCheckTimeout %s: write more than 0s", path, t.Duration))
	}
	for i, r := range e.ResourceRequests {
		at := fmt.Sprintf("%s.resourceRequests[%d]", path, i)
		if problems := validation.IsQualifiedName(requestKey(r)); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("%s: %s and %s make no name of an annotation: %s", at, r.DeploymentName, r.ContainerName, strings.Join(problems, "; ")))
		}
		if r.Memory == nil && r.CPU == nil {
			errs = append(errs, fmt.Errorf("%s asks for nothing: set memory or cpu", at))
		}
		if r.Memory != nil && r.Memory.Sign() < 0 || r.CPU != nil && r.CPU.Sign() < 0 {
			errs = append(errs, fmt.Errorf("%s: memory and cpu can't be negative", at))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }) // maps have no order
	return errs
}

// checkCapacity: a larger size whose nodes are smaller would be chosen first by what API servers use.
func checkCapacity(sizes []schedulingv1alpha1.SizeConfiguration) (errs []error) {
	var before *schedulingv1alpha1.SizeConfiguration
	for _, s := range byRange(sizes) {
		if memoryOf(&s) == nil {
			continue
		}
		if before != nil && memoryOf(&s).Cmp(*memoryOf(before)) < 0 {
			errs = append(errs, fmt.Errorf("spec.sizes[%s].capacity.memory %s is less than that of the smaller size %s: nodes of a larger size must not be smaller", s.Name, memoryOf(&s), before.Name))
		}
		before = &s
	}
	return errs
}

func memoryOf(s *schedulingv1alpha1.SizeConfiguration) *resource.Quantity {
	if s.Capacity == nil {
		return nil
	}
	return s.Capacity.Memory
}

// requestKey is the annotation of a resource request.
func requestKey(r schedulingv1alpha1.ResourceRequest) string {
	const maxName = 63 // of an annotation, without its prefix
	name := r.DeploymentName + "." + r.ContainerName
	if len(name) > maxName && r.DeploymentName == r.ContainerName {
		name = r.DeploymentName // which means the same
	}
	return hyperv1.ResourceRequestOverrideAnnotationPrefix + "/" + name
}
