package signature

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The format.
const (
	payloadMedia        = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	payloadType         = "cosign container image signature"
)

// Bounds of what is read of a registry, which may be hostile.
const (
	maxPayload    = 64 << 10
	maxSignatures = 50
	maxSignature  = 1 << 10
)

// ErrUnsigned is returned by Check, wrapped, when an image has no signature by a key that the policy names. It doesn't pass by itself: somebody has to sign
// the image, or to change the policy.
var ErrUnsigned = errors.New("the image has no valid signature, which the policy of this installation requires")

// payload is a statement about an image.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// Tag is where signatures of a digest are, in the repository of the image.
func Tag(repository name.Repository, digest v1.Hash) name.Tag {
	return repository.Tag(digest.Algorithm + "-" + digest.Hex + ".sig")
}

// Check says whether an image with a digest is signed as the policy wants it. wanted is the repository as the user names it, by which the rule is found;
// from is where the image was read, a mirror for instance, which has its signatures, too. Without a rule nothing is asked for.
//
// The statement has to be about the digest; the name in it isn't compared, because images keep their signatures when they are carried to another registry.
func (p *Policy) Check(ctx context.Context, wanted string, from name.Repository, digest v1.Hash, options ...remote.Option) error {
	keys, required := p.For(wanted)
	if !required {
		return nil
	}
	tag := Tag(from, digest)
	img, err := remote.Image(tag, append([]remote.Option{remote.WithContext(ctx)}, options...)...)
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: there is no %s", ErrUnsigned, tag)
	}
	if err != nil {
		return fmt.Errorf("reading the signatures at %s: %w", tag, err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return fmt.Errorf("reading the signatures at %s: %w", tag, err)
	}
	if len(manifest.Layers) > maxSignatures {
		return fmt.Errorf("%w: %s has %d signatures, at most %d are looked at", ErrUnsigned, tag, len(manifest.Layers), maxSignatures)
	}
	why := "none of its signatures is by a key of the policy"
	for _, d := range manifest.Layers {
		ok, err := verify(img, d, keys, digest)
		if err != nil {
			why = err.Error()
		}
		if ok {
			return nil
		}
	}
	return fmt.Errorf("%w: %s: %s", ErrUnsigned, tag, why)
}

// verify tells whether a layer is a statement about the digest by one of the keys. An error says more than no.
func verify(img v1.Image, d v1.Descriptor, keys []*ecdsa.PublicKey, digest v1.Hash) (bool, error) {
	text := d.Annotations[signatureAnnotation]
	if d.MediaType != payloadMedia || text == "" || len(text) > maxSignature || d.Size > maxPayload {
		return false, nil // none that we know
	}
	sig, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false, errors.New("a signature is no base64")
	}
	layer, err := img.LayerByDigest(d.Digest)
	if err != nil {
		return false, fmt.Errorf("reading a statement: %w", err)
	}
	r, err := layer.Compressed()
	if err != nil {
		return false, fmt.Errorf("reading a statement: %w", err)
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, maxPayload+1))
	if err != nil || len(raw) > maxPayload {
		return false, errors.New("a statement can't be read, or is too large")
	}
	if !signed(raw, sig, keys) {
		return false, nil
	}
	if err := about(raw, digest); err != nil {
		return false, err
	}
	return true, nil
}

// signed tells whether one of the keys has signed. The statement isn't looked into before.
func signed(raw, sig []byte, keys []*ecdsa.PublicKey) bool {
	sum := sha256.Sum256(raw)
	for _, key := range keys {
		if ecdsa.VerifyASN1(key, sum[:], sig) {
			return true
		}
	}
	return false
}

// about returns an error unless a statement is of the digest.
func about(raw []byte, digest v1.Hash) error {
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("a statement is no JSON: %w", err)
	}
	if p.Critical.Type != payloadType {
		return fmt.Errorf("a statement is of type %.60q, not %q", p.Critical.Type, payloadType)
	}
	if p.Critical.Image.Digest != digest.String() {
		return fmt.Errorf("a statement is about %.80s, not about %s", p.Critical.Image.Digest, digest)
	}
	return nil
}
