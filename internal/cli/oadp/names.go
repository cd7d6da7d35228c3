package oadp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxName is what labels that repeat a name can hold.
	maxName = 63
	// hashLength is the length of what stands for a base that was cut.
	hashLength = 8
	// suffixLength is how many characters tell names of one hosted cluster apart.
	suffixLength = 6
)

// generated returns a new name for an object about a hosted cluster: NAME-NAMESPACE-xxxxxx, at most 63 characters.
func generated(name, namespace string) string {
	return join(name+"-"+namespace, utilrand.String(suffixLength))
}

// policyName is the name of the ConfigMap with the rules for volumes, the same for each backup of a hosted cluster.
func policyName(name, namespace string) string {
	base := name + "-" + namespace
	sum := sha256.Sum256([]byte(base))
	return join(base, hex.EncodeToString(sum[:])[:suffixLength])
}

// join is BASE-SUFFIX. A base that is too long is cut, and a hash of the whole takes the place of what went.
func join(base, suffix string) string {
	if len(base)+1+len(suffix) <= maxName {
		return base + "-" + suffix
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(base)) // never fails
	return fmt.Sprintf("%s-%0*x-%s", strings.TrimRight(base[:maxName-hashLength-2-len(suffix)], "-."), hashLength, h.Sum32(), suffix)
}

// checkName says what is wrong with a name that the user gave. kind is "backup", "restore" or "schedule".
func checkName(kind, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%s name '%s' is too long (%d characters). Kubernetes resource names must be %d characters or less. Use --name to specify a shorter custom name",
			kind, name, len(name), maxName)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%s name '%s' is invalid: %s", kind, name, strings.Join(problems, "; "))
	}
	return nil
}
