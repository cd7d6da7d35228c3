package release

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// tagLife is how long a tag is believed to point where it did. Short: a developer pushes a tag again and wants to see it.
	tagLife = time.Minute
	// digestLife is how long a pull secret is believed to be good for a digest. The content itself never goes stale.
	digestLife = time.Hour
	// staleLife is how long an old answer may stand in for a registry that can't be reached.
	staleLife = 24 * time.Hour
	// maxContents and maxResolutions bound the memory: a release takes about 60 KiB (200 tags, 100 regions with boot images), a resolution some hundred bytes.
	maxContents    = 64
	maxResolutions = 1024
)

// need is what a caller wants to know of an image, as bits.
type need int

const (
	needLabels need = 1 << iota
	needRelease
)

// content is what is known of a digest. It is immutable once it is in the cache.
type content struct {
	digest     string
	arch       string
	labels     map[string]string
	release    *Release
	notRelease string // why there is no release
	have       need
}

// errorFor says that the image is not a release, if that is what was asked.
func (c *content) errorFor(ref string, what need) error {
	if what&needRelease != 0 && c.release == nil {
		return &LookupError{Image: ref, Kind: ErrNotARelease, Detail: c.notRelease}
	}
	return nil
}

// cacheKey is one right to read: a reference as seen with one pull secret.
type cacheKey struct{ ref, secret string }

type resolution struct {
	digest string
	at     time.Time
}

// cache remembers content by digest for ever (within its bounds), and for a while which digest a reference with a pull secret leads to.
type cache struct {
	clock clock.PassiveClock

	mu          sync.Mutex
	contents    map[string]*content
	used        map[string]time.Time // last use of a content
	resolutions map[cacheKey]resolution
}

func newCache(c clock.PassiveClock) *cache {
	return &cache{clock: c, contents: map[string]*content{}, used: map[string]time.Time{}, resolutions: map[cacheKey]resolution{}}
}

// get answers without the registry while the resolution is fresh.
func (c *cache) get(key cacheKey, what need) *content {
	life := tagLife
	if isDigest(key.ref) {
		life = digestLife
	}
	return c.within(key, what, life)
}

// stale answers with what was true up to staleLife ago.
func (c *cache) stale(key cacheKey, what need) *content { return c.within(key, what, staleLife) }

func (c *cache) within(key cacheKey, what need, life time.Duration) *content {
	c.mu.Lock()
	defer c.mu.Unlock()
	res, ok := c.resolutions[key]
	if !ok || c.clock.Since(res.at) >= life {
		return nil
	}
	return c.content(res.digest, what)
}

// resolve records that the registry has just led key to digest, and gives the content if it is known.
func (c *cache) resolve(key cacheKey, digest string, what need) *content {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.content(digest, what)
	if found != nil {
		c.record(key, digest)
	}
	return found
}

func (c *cache) put(key cacheKey, got *content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.contents[got.digest]; old != nil {
		got = merge(old, got)
	}
	c.contents[got.digest], c.used[got.digest] = got, c.clock.Now()
	c.record(key, got.digest)
	if len(c.contents) > maxContents {
		oldest := ""
		for digest, at := range c.used {
			if oldest == "" || at.Before(c.used[oldest]) {
				oldest = digest
			}
		}
		delete(c.contents, oldest)
		delete(c.used, oldest)
	}
}

// merge keeps what an earlier read learned, say the labels, when a later one adds the release.
func merge(old, got *content) *content {
	m := *got
	m.have |= old.have
	if got.have&needLabels == 0 {
		m.labels, m.arch = old.labels, old.arch
	}
	if got.have&needRelease == 0 {
		m.release, m.notRelease = old.release, old.notRelease
	}
	return &m
}

func (c *cache) content(digest string, what need) *content {
	found := c.contents[digest]
	if found == nil || found.have&what != what {
		return nil
	}
	c.used[digest] = c.clock.Now()
	return found
}

func (c *cache) record(key cacheKey, digest string) {
	if len(c.resolutions) >= maxResolutions {
		oldest, first := cacheKey{}, true
		for k, r := range c.resolutions {
			if first || r.at.Before(c.resolutions[oldest].at) {
				oldest, first = k, false
			}
		}
		delete(c.resolutions, oldest)
	}
	c.resolutions[key] = resolution{digest: digest, at: c.clock.Now()}
}

// fingerprint stands for a pull secret in cache keys, so that what one secret may read is not given to another.
func fingerprint(pullSecret []byte) string {
	sum := sha256.Sum256(pullSecret)
	return hex.EncodeToString(sum[:])
}
