package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// uploads is how many blobs are sent at a time.
const uploads = 3

// backoff is how long a request that failed waits before it is sent again: registries behind load balancers answer 502 for some seconds when they
// are upgraded.
var backoff = remote.Backoff{Duration: time.Second, Factor: 3, Jitter: 0.1, Steps: 4}

// Registry is where a bundle goes to.
type Registry struct {
	// Prefix is the registry and, where wanted, a path in it: "registry.example.com/team". Repositories of the bundle follow behind it.
	Prefix string
	// PlainHTTP talks HTTP; for a registry on a loopback or private address that isn't necessary.
	PlainHTTP bool
	// ReplaceReleases moves the tag of a release that has another content, such as parts of another version of ours. Hosted clusters that name it by that
	// tag are then rolled out; without it the release that is there stays, and the new one gets a tag of its own.
	ReplaceReleases bool
	// Options are credentials, and the transport.
	Options []remote.Option
}

// Check refuses a prefix that no reference can begin with.
func (r Registry) Check() error {
	host, path, _ := strings.Cut(r.Prefix, "/")
	if host == "" || strings.Contains(r.Prefix, "://") || strings.HasSuffix(r.Prefix, "/") || (!strings.ContainsAny(host, ".:") && host != "localhost") {
		return fmt.Errorf("%q is no registry: write HOST[:PORT][/PATH], as registry.example.com/team", r.Prefix)
	}
	if path != "" {
		if _, err := name.NewRepository(r.Prefix + "/x"); err != nil {
			return fmt.Errorf("%q is no registry with a path: %w", r.Prefix, err)
		}
	}
	return nil
}

// Reference is where an entry is in the registry.
func (r Registry) Reference(e Entry) string { return r.Prefix + "/" + e.Name() }

func (r Registry) parse(e Entry) (name.Reference, error) {
	options := []name.Option{name.StrictValidation}
	if r.PlainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(r.Reference(e), options...)
	if err != nil {
		return nil, fmt.Errorf("naming %s in the registry: %w", e.Name(), err)
	}
	return ref, nil
}

func (r Registry) options(ctx context.Context) []remote.Option {
	return append([]remote.Option{remote.WithContext(ctx), remote.WithJobs(uploads), remote.WithRetryBackoff(backoff)}, r.Options...)
}

// Pushed is what became of an entry.
type Pushed struct {
	Entry     Entry  // with the tag that it has in the registry
	Reference string // by digest: "registry.example.com/a/b@sha256:…"
	There     bool   // already; nothing was sent
	Beside    bool   // beside another content that has the tag of the bundle
}

// beside is the entry with a tag that only this content has: "1.36.3-0123456789ab".
func (e Entry) beside(digest v1.Hash) Entry {
	e.Tag += "-" + digest.Hex[:12]
	return e
}

// Push uploads an entry. What the registry has isn't sent again, so that a push that was interrupted goes on where it was. sent is told how many
// bytes have been read for it so far; it may be called from several goroutines.
func (b *Bundle) Push(ctx context.Context, r Registry, e Entry, sent func(total int64)) (Pushed, error) {
	counting := &Bundle{src: counted{b.src, sent, new(atomic.Int64)}}
	what, err := counting.taggable(e, r.Prefix)
	if err != nil {
		return Pushed{}, fmt.Errorf("reading %s from the bundle: %w", e.Name(), err)
	}
	ref, err := r.parse(e)
	if err != nil {
		return Pushed{}, err
	}
	want, err := digestOf(what)
	if err != nil {
		return Pushed{}, err
	}
	done := Pushed{Entry: e, Reference: ref.Context().Digest(want.String()).String()}
	have, err := remote.Head(ref, r.options(ctx)...)
	if err == nil && have.Digest != want && e.Kind == Release && !r.ReplaceReleases {
		done.Beside, done.Entry = true, e.beside(want)
		if ref, err = r.parse(done.Entry); err != nil {
			return Pushed{}, err
		}
		have, err = remote.Head(ref, r.options(ctx)...)
	}
	if err == nil && have.Digest == want {
		done.There = true
		return done, nil
	}
	if err := remote.Push(ref, what, r.options(ctx)...); err != nil {
		return Pushed{}, fmt.Errorf("pushing %s: %w", r.Reference(done.Entry), explain(err))
	}
	return done, nil
}

// DigestIn is an entry in a registry by its digest there: "registry.example.com/a/b@sha256:…". The registry isn't asked.
func (b *Bundle) DigestIn(r Registry, e Entry) (string, error) {
	what, err := b.taggable(e, r.Prefix)
	if err != nil {
		return "", fmt.Errorf("reading %s from the bundle: %w", e.Name(), err)
	}
	digest, err := digestOf(what)
	if err != nil {
		return "", err
	}
	return r.Prefix + "/" + e.Repository + "@" + digest.String(), nil
}

func digestOf(t remote.Taggable) (v1.Hash, error) {
	if m, ok := t.(partial.WithRawManifest); ok {
		return partial.Digest(m)
	}
	return v1.Hash{}, errors.New("it has no manifest")
}

// explain adds what to do about a refusal.
func explain(err error) error {
	var t *transport.Error
	if !errors.As(err, &t) {
		return err
	}
	switch t.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: log in to the registry with an account that may push (docker login, podman login or helm registry login)", err)
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: the registry, or a proxy before it, takes no blobs of this size; raise its limit", err)
	}
	return err
}

// Verify says what is wrong with an entry in a registry: nothing, that it is missing, is another one, or lacks parts. It downloads manifests only.
func (b *Bundle) Verify(ctx context.Context, r Registry, e Entry) error {
	what, err := b.taggable(e, r.Prefix)
	if err != nil {
		return fmt.Errorf("reading %s from the bundle: %w", e.Name(), err)
	}
	want, err := digestOf(what)
	if err != nil {
		return err
	}
	ref, err := r.parse(e)
	if err != nil {
		return err
	}
	found, err := remote.Get(ref, r.options(ctx)...)
	if err == nil && found.Digest != want && e.Kind == Release { // which may be beside another
		if own, ownErr := r.parse(e.beside(want)); ownErr == nil {
			if beside, besideErr := remote.Get(own, r.options(ctx)...); besideErr == nil {
				ref, found = own, beside
			}
		}
	}
	switch {
	case isMissing(err):
		return fmt.Errorf("%s is missing", ref)
	case err != nil:
		return fmt.Errorf("reading %s: %w", ref, explain(err))
	case found.Digest != want:
		return fmt.Errorf("%s is %s, want %s", ref, found.Digest, want)
	}
	images := []func() (v1.Image, error){found.Image}
	if found.MediaType.IsIndex() {
		images = nil
		idx, err := found.ImageIndex()
		if err != nil {
			return fmt.Errorf("reading %s: %w", ref, err)
		}
		manifest, err := idx.IndexManifest()
		if err != nil {
			return fmt.Errorf("reading %s: %w", ref, err)
		}
		for _, d := range manifest.Manifests {
			images = append(images, func() (v1.Image, error) { return idx.Image(d.Digest) })
		}
	}
	var errs []error
	for _, image := range images {
		errs = append(errs, lacks(ref, image))
	}
	return errors.Join(errs...)
}

// lacks says which parts of an image a registry doesn't have.
func lacks(ref name.Reference, open func() (v1.Image, error)) error {
	img, err := open()
	if isMissing(err) {
		return fmt.Errorf("%s lacks an image of its index", ref)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", ref, err)
	}
	if _, err := img.RawConfigFile(); err != nil {
		return fmt.Errorf("%s lacks its config: %w", ref, err)
	}
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("reading %s: %w", ref, err)
	}
	var errs []error
	for _, l := range layers {
		if there, err := partial.Exists(l); err != nil || !there {
			digest, _ := l.Digest() // of a manifest that was parsed
			errs = append(errs, errors.Join(fmt.Errorf("%s lacks layer %s", ref, digest), err))
		}
	}
	return errors.Join(errs...)
}

func isMissing(err error) bool {
	var t *transport.Error
	return errors.As(err, &t) && t.StatusCode == http.StatusNotFound
}

// counted is a source that tells how much was read of it.
type counted struct {
	source
	tell  func(total int64)
	total *atomic.Int64
}

func (c counted) open(name string) (io.ReadCloser, int64, error) {
	r, size, err := c.source.open(name)
	if err != nil {
		return nil, 0, err
	}
	return &countedReader{r, c}, size, nil
}

type countedReader struct {
	io.ReadCloser
	c counted
}

// Read implements io.Reader.
func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if total := r.c.total.Add(int64(n)); r.c.tell != nil {
		r.c.tell(total)
	}
	return n, err
}
