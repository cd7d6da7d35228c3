package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/certificates"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/pki"
)

var secrets = access.Resource{Name: "secrets"}

const (
	// soon is how long before its end a certificate is told about that nobody has replaced.
	soon = 14 * 24 * time.Hour
	// sweepKnown is how long what was found counts: what ends in two weeks is not missed by an hour.
	sweepKnown = time.Hour
	// sweepStep is how long one request goes on with looking, sweepRead what one hosted cluster may take. The page asks again until all were looked at.
	sweepStep = 2 * time.Second
	sweepRead = 20 * time.Second
	// maxSweeps bounds the people whose findings are remembered, maxEnding what is remembered of each.
	maxSweeps = 100
	maxEnding = 1000
)

// certificate is one of a hosted cluster's control plane. There is no key in it.
type certificate struct {
	Namespace string `json:"ns"`   // of the HostedCluster
	Cluster   string `json:"name"` // of the HostedCluster
	pki.Certificate
	// Soon: it ends soon, and should have been replaced.
	Soon bool `json:"soon,omitempty"`
}

func certificateOf(key world.Key, c pki.Certificate, now time.Time) certificate {
	c.Subject, c.Issuer, c.Secret, c.Key = clip.Line(c.Subject), clip.Line(c.Issuer), clip.Line(c.Secret), clip.Line(c.Key)
	return certificate{Namespace: key.Namespace, Cluster: key.Name, Certificate: c, Soon: c.EndsSoon(now, soon)}
}

// certificates are those of a hosted cluster, as `hypershift get certificates` lists them: read with the rights of whoever asks, who has to be allowed to list
// the Secrets that they are in. The console's own account is not.
func (s *Server) certificates(r *request) (any, error) {
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	key := world.Key{Namespace: r.PathValue("ns"), Name: r.PathValue("name")}
	list, err := certificates.List(ctx, r.viewer.Client, client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return nil, err
	}
	rows, now := []certificate{}, s.Clock.Now()
	for _, c := range list.Certificates[:min(len(list.Certificates), maxRows)] {
		rows = append(rows, certificateOf(key, c, now))
	}
	return map[string]any{"rows": rows, "command": "hypershift get certificates " + key.Name + " -n " + key.Namespace}, nil
}

// sweep is a look at the certificates of the fleet, a part of it with each request, so that nothing is read for people who don't look.
type sweep struct {
	// turn is held by the request that looks at more. Others don't wait for it, and tell what is known.
	turn sync.Mutex
	// mu is held for moments only.
	mu      sync.Mutex
	began   time.Time
	started bool
	left    []world.Key
	checked int
	refused int
	ending  []certificate
	trouble string
}

// sweeps are those of all people, by the ID of the viewer.
type sweeps struct {
	mu sync.Mutex
	of map[string]*sweep
}

// sweepAnswer is how far a sweep is, and what was found.
type sweepAnswer struct {
	Checked int `json:"checked"` // hosted clusters that were looked at
	Left    int `json:"left"`
	Refused int `json:"refused"` // those whose Secrets somebody may not list
	// At is when it began; it begins anew after an hour.
	At   time.Time     `json:"at"`
	Days int           `json:"days"` // soon, in days
	Rows []certificate `json:"rows"` // that end soon, the first at the beginning
	// Clusters is how many hosted clusters have any.
	Clusters int    `json:"clusters"`
	Trouble  string `json:"trouble,omitempty"`
}

// ending are the certificates of the fleet that end soon although they should have been replaced. Each request looks at some hosted clusters more.
func (s *Server) ending(r *request) (any, error) {
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	scope, err := r.viewer.ScopeOf(ctx, hostedClusters, s.World.Namespaces(world.Clusters))
	if err != nil {
		return nil, err
	}
	sw := s.sweepOf(r.viewer.ID)
	turn := sw.turn.TryLock()
	if turn {
		defer sw.turn.Unlock()
	}
	s.begin(sw, scope, turn)
	if turn {
		if err := s.advance(ctx, r.viewer, sw); err != nil {
			return nil, err
		}
	}
	return sweepAnswerFor(ctx, r.viewer, scope, sw)
}

// begin makes the list of hosted clusters to look at when there is none yet, and anew when what was found counts no more. The latter is for who has the turn:
// nobody else is at work with the list then.
func (s *Server) begin(sw *sweep, scope access.Scope, turn bool) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	now := s.Clock.Now()
	if sw.started && (!turn || now.Sub(sw.began) <= sweepKnown) {
		return
	}
	sw.started, sw.began, sw.checked, sw.refused, sw.ending, sw.left, sw.trouble = true, now, 0, 0, nil, nil, ""
	s.World.EachCluster(func(c *world.Cluster) {
		if scope.Has(c.Namespace) {
			sw.left = append(sw.left, world.Key{Namespace: c.Namespace, Name: c.Name})
		}
	})
	slices.SortFunc(sw.left, func(a, b world.Key) int { return strings.Compare(a.String(), b.String()) })
}

func (s *Server) sweepOf(viewer string) *sweep {
	s.sweeps.mu.Lock()
	defer s.sweeps.mu.Unlock()
	if s.sweeps.of[viewer] == nil {
		if len(s.sweeps.of) >= maxSweeps {
			clear(s.sweeps.of)
		}
		s.sweeps.of[viewer] = &sweep{}
	}
	return s.sweeps.of[viewer]
}

// advance looks at hosted clusters for as long as a request may, and at one at least. The caller has the turn.
func (s *Server) advance(ctx context.Context, viewer *access.Viewer, sw *sweep) error {
	until := time.Now().Add(sweepStep) // of this machine's clock: what a test sets is not the time that reading takes
	for {
		key, ok := sw.next()
		if !ok {
			return nil
		}
		may, err := viewer.May(ctx, "list", secrets, key.ControlPlane())
		if err != nil {
			return err
		}
		var found []certificate
		if may {
			found, err = s.look(ctx, viewer, key)
		}
		if ctx.Err() != nil {
			return ctx.Err() // this one is looked at again
		}
		sw.looked(key, may && !apierrors.IsForbidden(err), found, client.IgnoreNotFound(err))
		if time.Now().After(until) {
			return nil
		}
	}
}

// next is the hosted cluster to look at; false: all were looked at.
func (sw *sweep) next() (world.Key, bool) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if len(sw.left) == 0 {
		return world.Key{}, false
	}
	return sw.left[0], true
}

// looked notes what came of looking at the hosted cluster that is next.
func (sw *sweep) looked(key world.Key, may bool, found []certificate, err error) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.left = sw.left[1:]
	switch {
	case !may:
		sw.refused++
	case err == nil:
		sw.checked++
	default:
		sw.trouble = key.String() + ": " + clip.Line(err.Error())
	}
	if len(found) == 0 {
		return
	}
	sw.ending = append(sw.ending, found...)
	slices.SortFunc(sw.ending, func(a, b certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), strings.Compare(a.Namespace+"/"+a.Cluster, b.Namespace+"/"+b.Cluster), strings.Compare(a.Secret+a.Key, b.Secret+b.Key))
	})
	sw.ending = sw.ending[:min(len(sw.ending), maxEnding)]
}

// look returns the certificates of a hosted cluster that end soon.
func (s *Server) look(ctx context.Context, viewer *access.Viewer, key world.Key) ([]certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepRead)
	defer cancel()
	list, err := certificates.List(ctx, viewer.Client, client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return nil, err
	}
	var out []certificate
	for _, c := range list.Certificates {
		if row := certificateOf(key, c, s.Clock.Now()); row.Soon {
			out = append(out, row)
		}
	}
	return out, nil
}

// known is how far the sweep is, and what was found, for whoever it is for.
func (sw *sweep) known() (*sweepAnswer, []certificate) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return &sweepAnswer{Checked: sw.checked, Left: len(sw.left), Refused: sw.refused, At: sw.began.UTC(), Days: int(soon.Hours() / 24), Rows: []certificate{}, Trouble: sw.trouble}, slices.Clone(sw.ending)
}

// sweepAnswerFor is what of a sweep somebody may see now: rights may have been taken away since it was made.
func sweepAnswerFor(ctx context.Context, viewer *access.Viewer, scope access.Scope, sw *sweep) (*sweepAnswer, error) {
	out, ending := sw.known()
	clusters := map[world.Key]bool{}
	for _, c := range ending {
		key := world.Key{Namespace: c.Namespace, Name: c.Cluster}
		may, err := viewer.May(ctx, "list", secrets, key.ControlPlane())
		if err != nil {
			return nil, err
		}
		if !may || !scope.Has(key.Namespace) {
			continue
		}
		clusters[key] = true
		out.Rows = append(out.Rows, c)
	}
	out.Clusters = len(clusters)
	return out, nil
}
