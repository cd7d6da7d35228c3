package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/kube/desk"
	"hcp.internal/platform/internal/oci/credentials"
	"hcp.internal/platform/internal/oci/pull"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/oci/signature"
)

// Limits bound what one lookup may cost. The zero value of a field means the default.
type Limits struct {
	Time              time.Duration // for one reference, all requests together; default 30 s: a release layer of 50 MB on a slow line
	AllTime           time.Duration // for one lookup, all mirrors together; default 60 s
	Layers            int           // layers of an image; default 128, the most that overlay file systems take
	CompressedBytes   int64         // of all layers that are read together; default 512 MiB
	UncompressedBytes int64         // the same after decompression; default 1 GiB, about 5 s of CPU for a hostile archive
	FileBytes         int64         // of image-references; default 8 MiB, real ones have 0.2 MiB
	Entries           int           // tar entries of one layer; default 200 000
}

func (l Limits) withDefaults() Limits {
	set(&l.Time, 30*time.Second)
	set(&l.AllTime, 60*time.Second)
	set(&l.Layers, 128)
	set(&l.CompressedBytes, 512<<20)
	set(&l.UncompressedBytes, 1<<30)
	set(&l.FileBytes, 8<<20)
	set(&l.Entries, 200_000)
	return l
}

func set[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Options configure a Registry. All fields may be left empty.
type Options struct {
	Overrides []rewrite.Override // applied to the release reference and to every image in it
	Mirrors   []rewrite.Mirror   // tried in order before the image itself
	// MoreMirrors, if set, are tried behind Mirrors. It is asked for every lookup that the cache does not answer.
	MoreMirrors func(context.Context) ([]rewrite.Mirror, error)
	Limits      Limits
	// Signatures says which images need signatures; nil: none. An image that needs one has to be named by digest, because a tag may hold another image by
	// the time that somebody else reads it.
	Signatures *signature.Policy
	// Patience is how long a lookup For somebody takes at the most: what comes later is ErrPending, and told to subscribers. 0: until the end.
	Patience time.Duration
	Clock    clock.PassiveClock // default: the real clock
	// Transport is what requests go through; default: a pooled transport with time-outs.
	Transport http.RoundTripper
}

// Registry is a Provider that reads images from their registries.
type Registry struct {
	options Options
	client  http.RoundTripper
	cache   *cache
	flights *singleflight.Group
	desk    *desk.Desk[*content]
	asker   types.NamespacedName
	trusts  *trusts
	trust   string // hash of the authorities that are trusted besides the process's own; empty: none
}

// NewRegistryProvider makes a Registry. It starts nothing; the cache lives as long as the value.
func NewRegistryProvider(o Options) *Registry {
	o.Limits = o.Limits.withDefaults()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Transport == nil {
		o.Transport = pull.Transport(nil, timeouts)
	}
	return &Registry{options: o, client: pull.Guard(o.Transport, maxResponse), cache: newCache(o.Clock), flights: &singleflight.Group{}, desk: desk.New[*content](o.Clock), trusts: &trusts{}}
}

// WithMirrors is a view that tries mirrors before those of r. It shares the cache of r, so it is cheap to make for one lookup.
func (r *Registry) WithMirrors(mirrors []rewrite.Mirror) *Registry {
	if len(mirrors) == 0 {
		return r
	}
	view := *r
	view.options.Mirrors = append(append([]rewrite.Mirror{}, mirrors...), r.options.Mirrors...)
	return &view
}

// For is a view for a worker that has no time: see Options.Patience. asker is the object that waits for the answer, as subscribers hear of it.
func (r *Registry) For(asker types.NamespacedName) *Registry {
	view := *r
	view.asker = asker
	return &view
}

// Subscribe has hear called when a lookup has ended that somebody did not wait for. It must not block. Call it before the first lookup.
func (r *Registry) Subscribe(hear func(asker types.NamespacedName)) {
	r.desk.Subscribe(hear)
}

// Lookup implements Provider.
func (r *Registry) Lookup(ctx context.Context, image string, pullSecret []byte) (*Release, error) {
	content, err := r.fetch(ctx, image, pullSecret, needRelease)
	if err != nil {
		return nil, err
	}
	release := content.release.clone()
	release.Image, release.Digest, release.Arch = image, content.digest, content.arch
	for tag, spec := range release.Images {
		release.Images[tag] = rewrite.Under(spec, r.options.Overrides)
	}
	return release, nil
}

// Info is what an image says about itself.
type Info struct {
	Digest string
	Arch   string // as Release.Arch
	Labels map[string]string
}

// Inspect reads the labels of any image. The result is shared: treat it as read-only.
func (r *Registry) Inspect(ctx context.Context, image string, pullSecret []byte) (*Info, error) {
	content, err := r.fetch(ctx, image, pullSecret, needLabels)
	if err != nil {
		return nil, err
	}
	return &Info{Digest: content.digest, Arch: content.arch, Labels: content.labels}, nil
}

// fetch tries the mirrors of image and then image itself.
func (r *Registry) fetch(ctx context.Context, image string, pullSecret []byte, what need) (*content, error) {
	keys, err := credentials.Parse(pullSecret)
	if err != nil {
		return nil, &LookupError{Image: image, Kind: ErrBadPullSecret, Detail: trimPrefix(err, ErrBadPullSecret)}
	}
	mirrors := r.options.Mirrors
	if r.options.MoreMirrors != nil {
		// Without them an image may still be had; that they cannot be read is reported by who else asks for them.
		if more, err := r.options.MoreMirrors(ctx); err == nil {
			mirrors = slices.Concat(mirrors, more)
		}
	}
	refs, secret := rewrite.Candidates(rewrite.Under(image, r.options.Overrides), mirrors), fingerprint(pullSecret)+r.trust
	signed, err := r.mustBeSigned(image)
	if err != nil {
		return nil, err
	}
	if signed != "" {
		secret += "\x00" + signed // what was read without a look at signatures doesn't count
	}
	for _, ref := range refs {
		if got := r.cache.get(cacheKey{ref: ref, secret: secret}, what); got != nil && got.errorFor(ref, what) == nil {
			return got, nil
		}
	}
	got, err := r.settle(ctx, refs, keys, secret, signed, what)
	if err == nil {
		return got, nil
	}
	var lookup *LookupError
	if errors.As(err, &lookup) { // say it about the reference that the user knows
		lookup = &LookupError{Image: image, Kind: lookup.Kind, Detail: lookup.Detail, cause: lookup.cause}
		return nil, lookup
	}
	if errors.Is(err, ErrPending) {
		return nil, &LookupError{Image: image, Kind: ErrPending}
	}
	return nil, err
}

// settle asks the registries: to the end, or in the background when the caller has no time for that. Such a caller gets what was true before, if that is known.
func (r *Registry) settle(ctx context.Context, refs []string, keys credentials.Keyring, secret, signed string, what need) (*content, error) {
	if r.options.Patience == 0 || r.asker == (types.NamespacedName{}) {
		return r.tryAll(ctx, refs, keys, secret, signed, what)
	}
	key := fmt.Sprintf("%s %d %q", secret, what, refs)
	got, err := r.desk.Ask(ctx, key, r.asker, r.options.Patience, func(ctx context.Context) (*content, error) {
		return r.tryAll(ctx, refs, keys, secret, signed, what)
	})
	if errors.Is(err, ErrPending) {
		for _, ref := range refs {
			if stale := r.cache.stale(cacheKey{ref: ref, secret: secret}, what); stale != nil && stale.errorFor(ref, what) == nil {
				return stale, nil
			}
		}
	}
	return got, err
}

// tryAll tries references one after the other, within one deadline. It returns the error of the last, which is the image that the user wrote.
func (r *Registry) tryAll(ctx context.Context, refs []string, keys credentials.Keyring, secret, signed string, what need) (got *content, err error) {
	deadline := time.Now().Add(r.options.Limits.AllTime)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for i, ref := range refs {
		// Each has its part of what is left to begin to answer, so that the last has one, too.
		first := time.Until(deadline) / time.Duration(len(refs)-i)
		if got, err = r.fetchOne(ctx, cacheKey{ref: ref, secret: secret}, keys, signed, what, first); err == nil || ctx.Err() != nil {
			return got, err
		}
	}
	return nil, err
}

// fetchOne reads one reference, from the cache when it can. Concurrent calls for the same reference and secret share one request.
func (r *Registry) fetchOne(ctx context.Context, key cacheKey, keys credentials.Keyring, signed string, what need, first time.Duration) (*content, error) {
	ref := key.ref
	if got := r.cache.get(key, what); got != nil {
		return got, got.errorFor(ref, what)
	}
	flight := r.flights.DoChan(fmt.Sprintf("%s %s %d", key.secret, ref, what), func() (any, error) {
		// The work outlives the caller that started it: others wait for the same result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.Limits.Time)
		defer cancel()
		return r.pull(ctx, key, keys, signed, what, first)
	})
	select {
	case <-ctx.Done():
		return nil, classify(ctx, ref, ctx.Err())
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		got := result.Val.(*content)
		return got, got.errorFor(ref, what)
	}
}

// pull resolves the reference, within first, which also proves that the pull secret may read it, and reads what is not known of its digest yet.
func (r *Registry) pull(ctx context.Context, key cacheKey, keys credentials.Keyring, signed string, what need, first time.Duration) (*content, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ref, err := name.ParseReference(key.ref)
	if err != nil {
		return nil, &LookupError{Image: key.ref, Kind: ErrBadReference}
	}
	options := []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(keys),
		remote.WithTransport(r.client),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), // the controller retries, with backoff and a condition that says so
		remote.WithUserAgent("hypershift-operator"),
	}
	tooLate := time.AfterFunc(first, cancel)
	desc, err := remote.Get(ref, options...)
	tooLate.Stop()
	if err == nil && signed != "" {
		err = r.options.Signatures.Check(ctx, signed, ref.Context(), desc.Digest, options...)
	}
	if err != nil {
		err = classify(ctx, key.ref, err)
		if stale := r.cache.stale(key, what); stale != nil && Temporary(err) {
			return stale, nil // a registry that is down must not stop clusters whose release is known
		}
		return nil, err
	}
	if known := r.cache.resolve(key, desc.Digest.String(), what); known != nil {
		return known, nil
	}
	got, err := r.read(ctx, desc, what)
	if err != nil {
		return nil, classify(ctx, key.ref, err)
	}
	r.cache.put(key, got)
	return got, nil
}

// timeouts are of one request; Limits.Time bounds the whole.
var timeouts = pull.Timeouts{Dial: 5 * time.Second, Answer: 15 * time.Second}

// maxResponse bounds any single response; layers are bounded more tightly while they are read.
const maxResponse = 1 << 30
