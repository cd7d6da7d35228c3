package pki

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// forgetAfter its last signature nothing that an authority signed is valid any more, unless leaves were asked to live longer.
	forgetAfter = 400 * 24 * time.Hour
	// nodesLife is that of what kube-controller-manager signs with ClusterSigner: certificates of kubelets, and whatever else somebody approves in the hosted
	// cluster. It is --cluster-signing-duration of its manifests; a node whose authority is forgotten earlier can't even ask for another certificate.
	nodesLife = 17520 * time.Hour
	// maxFormer are as many former authorities as are kept of one: those of two years in which each was replaced every quarter, and one more. Each of them is in
	// bundles that nodes and components read, and is offered to clients in each handshake.
	maxFormer = 10
)

// former is an authority that signs nothing any more, and is trusted as long as something may be valid that it signed.
type former struct {
	certPEM []byte
	cert    *x509.Certificate // nil: it can't be read
	ended   time.Time         // when its successor began to sign, or some time after that; zero when nobody knows
}

// until is when nothing can be valid any more that it signed, where that lives so long.
func (f former) until(lasts time.Duration) time.Time {
	switch {
	case f.cert == nil:
		return time.Time{}
	case f.ended.IsZero():
		return f.cert.NotAfter
	}
	return earlier(f.cert.NotAfter, f.ended.Add(lasts))
}

// formers are the certificates of PEM data, all of which ended at the same time.
func formers(data []byte, ended time.Time) []former {
	var list []former
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			f := former{certPEM: encodeCertificate(block.Bytes), ended: ended}
			if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
				f.cert = cert
			}
			list = append(list, f)
		}
	}
	return list
}

// generations are an authority with those before and after it, as far as there are any.
type generations struct {
	current, next pair          // next.cert is nil when there is none
	previous      []former      // the oldest first
	switched      time.Time     // when current took over; zero when nobody knows
	lasts         time.Duration // how long after its last signature something may be valid that one of them signed
	nodesBehind   bool          // some nodes don't trust next yet
}

// lasts is how long something may be valid that an authority signs, and a little more: who has not got its successor yet goes on signing with it.
func (s Spec) lasts(authority string) time.Duration {
	if authority == ClusterSigner {
		return max(nodesLife, s.validity()) + settle
	}
	return max(forgetAfter, s.validity()+settle)
}

func generationsOf(stored *corev1.Secret, current pair, spec Spec) generations {
	g := generations{current: current, previous: formers(stored.Data[previousCertKey], time.Time{}), lasts: spec.lasts(stored.Name)}
	if next, err := parsePair(stored.Data[nextCertKey], stored.Data[nextKeyKey]); err == nil {
		g.next = next // one that can't be read has signed nothing, and is made anew
	}
	times := strings.Split(stored.Annotations[switchedAnnotation], ",")
	if at, err := time.Parse(time.RFC3339, times[len(times)-1]); err == nil {
		g.switched = at
	}
	for i := range g.previous {
		if j := len(times) - len(g.previous) + i; j >= 0 {
			if at, err := time.Parse(time.RFC3339, times[j]); err == nil {
				g.previous[i].ended = at
			}
		}
	}
	g.boundEnds()
	return g
}

// boundEnds gives a former authority of which nobody knows when it ended the end of the one after it, which is later.
func (g generations) boundEnds() {
	for i := len(g.previous) - 2; i >= 0; i-- {
		if g.previous[i].ended.IsZero() {
			g.previous[i].ended = g.previous[i+1].ended
		}
	}
}

// keep stores what is left of former authorities, and when they ended.
func (g generations) keep(s *corev1.Secret) {
	var times []string
	for _, f := range g.previous {
		if !f.ended.IsZero() { // after boundEnds only the first ones may lack it, and times belong to the last ones
			times = append(times, f.ended.UTC().Format(time.RFC3339))
		}
	}
	if len(times) == 0 && !g.switched.IsZero() {
		times = []string{g.switched.UTC().Format(time.RFC3339)}
	}
	if len(times) > 0 {
		setAll(&s.Annotations, map[string]string{switchedAnnotation: strings.Join(times, ",")})
	}
	if len(g.previous) == 0 {
		delete(s.Data, previousCertKey)
		return
	}
	setAll(&s.Data, map[string][]byte{previousCertKey: g.formerPEM()})
}

func (g generations) formerPEM() []byte {
	var out []byte
	for _, f := range g.previous {
		out = append(out, f.certPEM...)
	}
	return out
}

// trusted are the certificates of all generations, the oldest first. So the switch changes no bundle: who can't read one again would start anew for the same certificates
// in another order.
func (g generations) trusted() []byte {
	return slices.Concat(g.formerPEM(), g.current.certPEM, g.next.certPEM)
}

// Trust identifies which authorities sign and are trusted once a plan for what was observed is stored; the zero Plan changes nothing of it.
func (p Plan) Trust(obs Observed) string {
	written := map[string]*corev1.Secret{}
	for _, w := range p.Authorities {
		if w.Secret != nil {
			written[w.Secret.Name] = w.Secret
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(authoritySecrets())) {
		s := cmp.Or(written[name], obs.Secrets[name])
		if s == nil {
			continue
		}
		fmt.Fprintf(sum, "%s %q %q %q\n", name, s.Data[CACertKey], s.Data[nextCertKey], s.Data[previousCertKey])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// full says that no successor is made because somebody asks for it: too many former authorities are trusted. One that comes to its end gets a successor all the same.
func (g generations) full() bool { return g.next.cert == nil && len(g.previous) >= maxFormer }

// madeAt is when an authority was made; its validity begins a little before.
func madeAt(cert *x509.Certificate) time.Time { return cert.NotBefore.Add(maxBackdate) }

// madeBefore says whether it was made before some time; zero: it was not.
func (f former) madeBefore(at time.Time) bool { return f.cert != nil && madeAt(f.cert).Before(at) }

// withoutEnded leaves out former authorities that can have signed nothing that is valid still.
func (g generations) withoutEnded(now time.Time) generations {
	g.previous = slices.DeleteFunc(slices.Clone(g.previous), func(f former) bool { return now.After(f.until(g.lasts)) })
	return g
}

// unrevoked are the former authorities that are trusted further when trust in others is to end: all of them while components may not have the new certificates yet.
func (g generations) unrevoked(spec Spec, now time.Time) []former {
	if !spec.TrustRolledOut || now.Before(g.switched.Add(spec.settle())) {
		return g.previous
	}
	return slices.DeleteFunc(slices.Clone(g.previous), spec.revokes)
}

// nextEnd is when trust in the first of the former authorities ends by itself; zero: there is none.
func (g generations) nextEnd() time.Time {
	var first time.Time
	for _, f := range g.previous {
		if at := f.until(g.lasts); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
