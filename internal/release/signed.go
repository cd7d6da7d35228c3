package release

import (
	"github.com/google/go-containerregistry/pkg/name"

	"hcp.internal/platform/internal/oci/rewrite"
)

// mustBeSigned returns the repository whose rule says that an image must be signed, as the user names it or as an override makes of it; empty when none does.
func (r *Registry) mustBeSigned(image string) (string, error) {
	for _, named := range []string{image, rewrite.Under(image, r.options.Overrides)} {
		ref, err := name.ParseReference(named)
		if err != nil {
			return "", &LookupError{Image: image, Kind: ErrBadReference}
		}
		if _, required := r.options.Signatures.For(ref.Context().Name()); !required {
			continue
		}
		if !isDigest(named) {
			return "", &LookupError{Image: image, Kind: ErrUnsigned, Detail: "it is named by a tag, which may move after the signature was looked at: name it by digest"}
		}
		return ref.Context().Name(), nil
	}
	return "", nil
}
