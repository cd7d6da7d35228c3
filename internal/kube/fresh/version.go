package fresh

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older says whether a resourceVersion is from before another of the same kind. Versions that can't be compared, such as those of an API server that
// counts otherwise, are not: whoever asks goes on with what was read, as without this.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
