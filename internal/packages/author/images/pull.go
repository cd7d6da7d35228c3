package images

import (
	"context"
	"net/http"
	"sync"
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
	"hcp.internal/platform/internal/oci/reach"
	"hcp.internal/platform/internal/oci/signature"
	"hcp.internal/platform/internal/packages/author/load"
)

const (
	// pullTime bounds one pull, all requests together.
	pullTime = 60 * time.Second
	// tagLife is how long a tag is believed to hold what it did; short, since a developer pushes again and wants to see it.
	tagLife = 5 * time.Second
	// digestLife is how long what was pulled by digest is kept: a rollout over many packages pulls the same image again and again.
	digestLife = 10 * time.Minute
	// maxCached bounds what is kept, in bytes.
	maxCached = 32 << 20
	// dialTime bounds a connection's beginning. The library's own 30 s would be half of a pull.
	dialTime = 10 * time.Second
	// maxResponse bounds one answer of a registry.
	maxResponse = maxCompressed + 1<<20
)

// Puller pulls packages from registries. It is safe for concurrent use.
type Puller struct {
	// Refused are networks that are never asked, besides those that never are.
	Refused reach.Refused
	Rewrite Rewrite
	// Credentials are asked for before every pull; nil pulls anonymously.
	Credentials func(ctx context.Context) (credentials.Keyring, error)
	// Signatures says which images need signatures; nil: none.
	Signatures *signature.Policy
	// Transport is what requests go through; nil is the library's, with a limit on what it reads.
	Transport http.RoundTripper
	Clock     clock.PassiveClock

	flights singleflight.Group
	mu      sync.Mutex
	cache   map[string]cached
	waiting *desk.Desk[Pulled]
	own     http.RoundTripper
}

// Pulled is what a reference led to.
type Pulled struct {
	// Files are those of the package. They are shared: nobody changes them.
	Files load.Files
	// Digest is that of the manifest or index, as sha256:…: it leads to the same files when a tag has moved.
	Digest string
}

type cached struct {
	Pulled
	size  int
	until time.Time
}

// patience is how long a worker waits for a pull. Workers are few and for all tenants; what a package usually weighs takes a fraction of it.
const patience = 3 * time.Second

// Ask is Pull for a worker: it returns desk.ErrPending when that takes longer, or too much is being pulled for the namespace of asker. Those who subscribed
// hear when to ask again. A failure is believed for some seconds, whoever asks.
func (p *Puller) Ask(ctx context.Context, asker types.NamespacedName, image string) (Pulled, error) {
	if got, ok := p.cached(image); ok {
		return got, nil
	}
	return p.desk().Ask(ctx, image, asker, patience, func(ctx context.Context) (Pulled, error) { return p.Pull(ctx, image) })
}

// Subscribe has hear called when a pull has ended that an asker did not wait for. It must not block.
func (p *Puller) Subscribe(hear func(asker types.NamespacedName)) { p.desk().Subscribe(hear) }

func (p *Puller) desk() *desk.Desk[Pulled] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = desk.New[Pulled](p.Clock)
	}
	return p.waiting
}

// Pull returns a package. image has its prefix replaced already. Content that can't be a package gives a violation.
func (p *Puller) Pull(ctx context.Context, image string) (Pulled, error) {
	if got, ok := p.cached(image); ok {
		return got, nil
	}
	// Callers share one pull, which ends with its own limit and not when one of them does.
	pulled := p.flights.DoChan(image, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullTime)
		defer cancel()
		got, err := p.pull(ctx, image)
		return got, explain(image, err)
	})
	select {
	case <-ctx.Done():
		return Pulled{}, ctx.Err()
	case result := <-pulled:
		if result.Err != nil {
			return Pulled{}, result.Err
		}
		return result.Val.(Pulled), nil
	}
}

func (p *Puller) pull(ctx context.Context, image string) (Pulled, error) {
	begin := p.Clock.Now()
	ref, err := p.Rewrite.Pull(image)
	if err != nil {
		return Pulled{}, &PullError{Image: image, Text: err.Error(), cause: err}
	}
	keys := credentials.Keyring{}
	if p.Credentials != nil {
		if keys, err = p.Credentials(ctx); err != nil {
			return Pulled{}, &PullError{Image: image, Text: err.Error(), cause: err}
		}
	}
	var img v1.Image
	var got Pulled
	for _, auth := range keys.For(ref.Context().Name()) {
		if img, got.Digest, err = p.image(ctx, image, ref, remote.WithAuth(auth), remote.WithTransport(p.transport())); !pull.Denied(err) {
			break
		}
	}
	if err != nil {
		return Pulled{}, err
	}
	if got.Files, err = Files(ctx, img); err != nil {
		return Pulled{}, err
	}
	p.keep(image, ref, got, p.Clock.Since(begin))
	return got, nil
}

func (p *Puller) transport() http.RoundTripper {
	if p.Transport != nil {
		return pull.Guard(p.Transport, maxResponse)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil {
		p.own = pull.Guard(pull.Transport(p.Refused, pull.Timeouts{Dial: dialTime}), maxResponse)
	}
	return p.own
}

// image is Image of one that has the signatures that the policy wants, and its digest. What is read is what they are for, whatever a tag holds by then.
func (p *Puller) image(ctx context.Context, image string, ref name.Reference, options ...remote.Option) (v1.Image, string, error) {
	named, err := name.ParseReference(image)
	if err != nil {
		return nil, "", err
	}
	descriptor, err := describeImage(ctx, ref, options...)
	if err != nil {
		return nil, "", err
	}
	if _, required := p.Signatures.For(named.Context().Name()); required {
		if err := p.Signatures.Check(ctx, named.Context().Name(), ref.Context(), descriptor.Digest, options...); err != nil {
			return nil, "", err
		}
	}
	img, _, err := pull.Image(descriptor, func(v1.Descriptor) bool { return true })
	return img, descriptor.Digest.String(), err
}

func describeImage(ctx context.Context, ref name.Reference, options ...remote.Option) (*remote.Descriptor, error) {
	return remote.Get(ref, append([]remote.Option{remote.WithContext(ctx), remote.WithTransport(pull.Guard(remote.DefaultTransport, maxResponse))}, options...)...)
}

// Image reads an image; of an index the one for linux/amd64, else the first.
func Image(ctx context.Context, ref name.Reference, options ...remote.Option) (v1.Image, error) {
	descriptor, err := describeImage(ctx, ref, options...)
	if err != nil {
		return nil, err
	}
	img, _, err := pull.Image(descriptor, func(v1.Descriptor) bool { return true })
	return img, err
}

func (p *Puller) cached(image string) (Pulled, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, ok := p.cache[image]
	if !ok || p.Clock.Now().After(entry.until) {
		return Pulled{}, false
	}
	return entry.Pulled, true
}

// keep remembers what a pull gave that took a while: a tag no less long than that, since who asked for it may have gone away meanwhile.
func (p *Puller) keep(image string, ref name.Reference, got Pulled, took time.Duration) {
	entry := cached{Pulled: got, until: p.Clock.Now().Add(tagLife + took)}
	if _, ok := ref.(name.Digest); ok {
		entry.until = p.Clock.Now().Add(digestLife)
	}
	for path, data := range got.Files {
		entry.size += len(path) + len(data)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	total, now := entry.size, p.Clock.Now()
	for key, other := range p.cache {
		if now.After(other.until) {
			delete(p.cache, key)
			continue
		}
		total += other.size
	}
	if total > maxCached || p.cache == nil {
		p.cache = map[string]cached{} // all are pulled again when they are needed
	}
	if entry.size <= maxCached {
		p.cache[image] = entry
	}
}
