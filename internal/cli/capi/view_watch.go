package capi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Both groups of a kind are different resources of the API server. A client that watches on in the other one, from where it was in the first, would
// neither see what is there nor that what it knows is gone. So when a namespace's objects are moved its watches end, and those that would go on from
// before have to list again, as an API server says it that has forgotten that time.

// watching is an open watch of a mapped kind in a namespace.
type watching struct {
	namespace string
	private   bool
	end       context.CancelFunc
}

// serve answers a request about a mapped kind in a namespace.
func (v *View) serve(w http.ResponseWriter, r *http.Request, parsed *translate.Request, m mode) {
	if r.Method == http.MethodGet && (parsed.Watch || parsed.List) {
		var expired bool
		if r, expired = since(r, parsed.Watch, m.flipped); expired {
			fail(w, http.StatusGone, metav1.StatusReasonExpired, errors.New("too old resource version: the objects of the namespace have been moved to another API group since"))
			return
		}
	}
	if !parsed.Watch {
		v.handler(m.private).ServeHTTP(w, r)
		return
	}
	ctx, end := v.watch(r.Context(), parsed.Namespace, m.private)
	defer end()
	defer func() {
		// A stream that is broken off is an error for some clients, and one that ends is not.
		if e := recover(); e != nil && (e != http.ErrAbortHandler || r.Context().Err() != nil || ctx.Err() == nil) {
			panic(e)
		}
	}()
	v.handler(m.private).ServeHTTP(w, r.WithContext(ctx))
}

// since looks at the version that a list or watch starts from. A watch, or a list of an exact version, that is older than the last flip has expired.
// Any other list becomes one of what is there now, or its watch could expire again and again.
func since(r *http.Request, watch bool, flipped uint64) (_ *http.Request, expired bool) {
	query := r.URL.Query()
	asked := query.Get("resourceVersion")
	version := versionOf(asked)
	if asked == "" || version >= flipped {
		return r, false
	}
	if watch {
		initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
		return r, version > 0 && !initial // those begin with what is there
	}
	if query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) {
		return r, true
	}
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	newest, to := *r, *r.URL
	to.RawQuery = query.Encode()
	newest.URL = &to
	return &newest, false
}

// versionOf is 0 for what is no number. Versions of one API server's storage can be compared, whichever their resources.
func versionOf(resourceVersion string) uint64 {
	n, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return n
}

// watch registers a watch and looks now and then how its namespace stores objects, as long as it is open. Its context ends when that has changed.
func (v *View) watch(ctx context.Context, namespace string, private bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	one := &watching{namespace, private, cancel}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watches[one] = true
	v.endFlipped(namespace) // it may have changed since the watch was let in
	go func() {
		tick := time.NewTicker(v.every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, _ = v.private(ctx, namespace) // without an answer nothing has changed
			}
		}
	}()
	return ctx, func() {
		cancel()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.watches, one)
	}
}

// endFlipped ends watches of a namespace that are of another mode than it has. The caller holds the lock.
func (v *View) endFlipped(namespace string) {
	m, known := v.modes[namespace]
	for one := range v.watches {
		if known && one.namespace == namespace && one.private != m.private {
			one.end()
		}
	}
}
