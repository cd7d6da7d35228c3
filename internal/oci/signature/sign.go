package signature

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Sign returns a statement about an image with a digest, and its signature in base64.
func Sign(key *ecdsa.PrivateKey, reference string, digest v1.Hash) (statement []byte, sig string, err error) {
	var p payload
	p.Critical.Identity.Reference, p.Critical.Image.Digest, p.Critical.Type = reference, digest.String(), payloadType
	if statement, err = json.Marshal(p); err != nil {
		return nil, "", fmt.Errorf("encoding the statement: %w", err)
	}
	sum := sha256.Sum256(statement)
	raw, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return nil, "", fmt.Errorf("signing: %w", err)
	}
	return statement, base64.StdEncoding.EncodeToString(raw), nil
}

// Attach signs an image in its registry. Signatures of others stay. One by this key that is there already is left alone, so that it may be run again.
func Attach(ctx context.Context, key *ecdsa.PrivateKey, repository name.Repository, digest v1.Hash, options ...remote.Option) (added bool, err error) {
	options = append([]remote.Option{remote.WithContext(ctx)}, options...)
	tag := Tag(repository, digest)
	img, err := remote.Image(tag, options...)
	var answer *transport.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		img = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	case err != nil:
		return false, fmt.Errorf("reading the signatures at %s: %w", tag, err)
	default:
		manifest, err := img.Manifest()
		if err != nil {
			return false, fmt.Errorf("reading the signatures at %s: %w", tag, err)
		}
		if len(manifest.Layers) >= maxSignatures {
			return false, fmt.Errorf("%s has %d signatures already, more are not looked at", tag, len(manifest.Layers))
		}
		for _, d := range manifest.Layers {
			if ok, err := verify(img, d, []*ecdsa.PublicKey{&key.PublicKey}, digest); ok && err == nil {
				return false, nil
			}
		}
	}
	statement, sig, err := Sign(key, repository.Name(), digest)
	if err != nil {
		return false, err
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer: static.NewLayer(statement, payloadMedia), Annotations: map[string]string{signatureAnnotation: sig}, MediaType: payloadMedia,
	})
	if err != nil {
		return false, fmt.Errorf("adding a signature: %w", err)
	}
	if err := remote.Write(tag, img, options...); err != nil {
		return false, fmt.Errorf("pushing %s: %w", tag, err)
	}
	return true, nil
}
