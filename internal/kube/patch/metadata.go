package patch

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Metadata is a merge patch of single labels and annotations, for objects that others write, too. A nil value removes its key.
type Metadata struct {
	// ResourceVersion that the object must have still; empty: whichever it has.
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
}

// Annotation sets one annotation, or removes it if value is nil.
func Annotation(name string, value *string) client.Patch {
	return Metadata{Annotations: map[string]*string{name: value}}.Patch()
}

// Patch is what a client sends.
func (m Metadata) Patch() client.Patch {
	body, err := json.Marshal(map[string]Metadata{"metadata": m})
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return client.RawPatch(types.MergePatchType, body)
}
