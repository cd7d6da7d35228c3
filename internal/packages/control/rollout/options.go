package rollout

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

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
	// Remove is how many Packages may be removed at once because their clusters are not selected any more, whatever part of all that is.
	Remove int
}

// ParseOptions reads the annotations of a HostedClusterPackage. An error names the annotations and what to write instead; the options are
// then those that can be read, with failures held.
func ParseOptions(annotations map[string]string) (Options, error) {
	o := Options{OnFailure: Hold}
	var wrong []string
	for key, to := range map[string]*time.Duration{packagesv1.RolloutSoakAnnotation: &o.Soak, packagesv1.RolloutDeadlineAnnotation: &o.Deadline} {
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
	if text, ok := annotations[packagesv1.RolloutOnFailureAnnotation]; ok {
		switch OnFailure(text) {
		case Hold, ReturnCluster, ReturnGroup:
			o.OnFailure = OnFailure(text)
		default:
			wrong = append(wrong, fmt.Sprintf("annotation %s: %.40q is none of %s, %s, %s", packagesv1.RolloutOnFailureAnnotation, text, Hold, ReturnCluster, ReturnGroup))
		}
		if o.OnFailure != Hold && o.Deadline == 0 {
			wrong = append(wrong, fmt.Sprintf("annotation %s needs %s, for without a deadline nothing fails", packagesv1.RolloutOnFailureAnnotation, packagesv1.RolloutDeadlineAnnotation))
			o.OnFailure = Hold
		}
	}
	if text, ok := annotations[packagesv1.RolloutPausedAnnotation]; ok {
		if text != "true" && text != "false" {
			wrong = append(wrong, fmt.Sprintf("annotation %s: %.40q is neither true nor false, and is taken for true", packagesv1.RolloutPausedAnnotation, text))
		}
		o.Paused = text != "false"
	}
	if text, ok := annotations[packagesv1.RolloutRemoveAnnotation]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			wrong = append(wrong, fmt.Sprintf("annotation %s: %.40q is no number of Packages, as \"12\"", packagesv1.RolloutRemoveAnnotation, text))
			n = 0
		}
		o.Remove = n
	}
	if wrong != nil {
		sort.Strings(wrong)
		return o, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return o, nil
}
