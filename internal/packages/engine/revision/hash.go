// Package revision has what ObjectDeployments and their revisions agree on: the hash of a template and names.
package revision

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/davecgh/go-spew/spew"
	"k8s.io/apimachinery/pkg/util/rand"

	"hcp.internal/api/packages/v1alpha1"
)

// dump prints a value in a form that only depends on its content.
var dump = spew.ConfigState{Indent: " ", SortKeys: true, DisableMethods: true, SpewKeys: true}

// Hash is the FNV-1a hash of a value and of a count of collisions (nil for none), as used in names: letters and digits without vowels.
//
// It covers names and order of Go fields, so that clusters which already run revisions keep them; see the package documentation of
// the API.
func Hash(value any, collisions *int32) string {
	h := fnv.New32a()
	_, _ = dump.Fprintf(h, "%#v", value) // a hash takes everything
	if collisions != nil {
		count := make([]byte, 8)
		binary.LittleEndian.PutUint32(count, uint32(*collisions)) // a count of collisions is small and positive
		h.Write(count)
	}
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// TemplateHash is the hash of an ObjectDeployment's template.
func TemplateHash(template v1alpha1.ObjectSetTemplate, collisions *int32) string {
	return Hash(template, collisions)
}

// ObjectSetName is the name of a revision.
func ObjectSetName(deployment, hash string) string { return deployment + "-" + hash }

// PhaseName is the name of the ObjectSetPhase of a phase with a class.
func PhaseName(objectSet, phase string) string { return objectSet + "-" + phase }

// SliceName is the name of an ObjectSlice.
func SliceName(deployment, hash string) string { return deployment + "-" + hash }
