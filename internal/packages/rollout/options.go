package rollout

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Annotations of a HostedClusterPackage that ask for more than its fields can. All are off by default.
const (
	// SoakAnnotation is a duration, as "10m": how long a group has to stay done before the next one starts.
	SoakAnnotation = "package-operator.run/rollout-soak"
	// DeadlineAnnotation is a duration: how long after its change a Package may be down before it counts as failed.
	DeadlineAnnotation = "package-operator.run/rollout-deadline"
	// OnFailureAnnotation is "hold" (default), "return-cluster" or "return-group": what to do with a failed Package. Needs the deadline.
	OnFailureAnnotation = "package-operator.run/rollout-on-failure"
	// PausedAnnotation is "true" while no Package is to be changed. Those of new clusters are made all the same.
	PausedAnnotation = "package-operator.run/rollout-paused"
)

// ReturnedAnnotation of a Package holds the hash of the template that was taken back from it.
const ReturnedAnnotation = "package-operator.run/rollout-returned-from"

// OnFailure is what happens to a Package that missed its deadline.
type OnFailure string

// What can happen to a Package that missed its deadline.
const (
	Hold          OnFailure = "hold"
	ReturnCluster OnFailure = "return-cluster"
	ReturnGroup   OnFailure = "return-group"
)

// longestOption bounds a duration in an annotation.
const longestOption = 30 * 24 * time.Hour

// Options are the annotations, read.
type Options struct {
	Soak, Deadline time.Duration // 0 is off
	OnFailure      OnFailure
	Paused         bool
}

// ParseOptions reads the annotations of a HostedClusterPackage. An error names the annotations and what to write instead; the options are
// then those that can be read, with failures held.
func ParseOptions(annotations map[string]string) (Options, error) {
	o := Options{OnFailure: Hold}
	var wrong []string
	for key, to := range map[string]*time.Duration{SoakAnnotation: &o.Soak, DeadlineAnnotation: &o.Deadline} {
		text, ok := annotations[key]
		if !ok {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > longestOption {
			wrong = append(wrong, fmt.Sprintf("annotation %s: %.40q is not a duration from 0s to %s, as \"10m\"", key, text, longestOption))
			continue
		}
		*to = d
	}
	if text, ok := annotations[OnFailureAnnotation]; ok {
		switch OnFailure(text) {
		case Hold, ReturnCluster, ReturnGroup:
			o.OnFailure = OnFailure(text)
		default:
			wrong = append(wrong, fmt.Sprintf("annotation %s: %.40q is none of %s, %s, %s", OnFailureAnnotation, text, Hold, ReturnCluster, ReturnGroup))
		}
		if o.OnFailure != Hold && o.Deadline == 0 {
			wrong = append(wrong, fmt.Sprintf("annotation %s needs %s, for without a deadline nothing fails", OnFailureAnnotation, DeadlineAnnotation))
			o.OnFailure = Hold
		}
	}
	if text, ok := annotations[PausedAnnotation]; ok {
		if text != "true" && text != "false" {
			wrong = append(wrong, fmt.Sprintf("annotation %s: %.40q is neither true nor false, and is taken for true", PausedAnnotation, text))
		}
		o.Paused = text != "false"
	}
	if wrong != nil {
		sort.Strings(wrong)
		return o, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return o, nil
}
