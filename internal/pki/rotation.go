package pki

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An authority is replaced in two steps, so that nobody ever meets a certificate that he can't verify:
//
//	prepare  the successor is made and joins the trust bundles; the old one goes on signing
//	switch   once the bundles have got everywhere, the successor signs, and every leaf is issued anew; the old one stays trusted until it ends
//
// What is not rolled out by us, kubelets' own files and kubeconfigs that people keep, learns of a successor only when it is made anew. That is why there is
// most of a year between the steps.

// RotationAnnotation on the Secret of an authority asks for a step before its time: RotationPrepare, RotationSwitch (which prepares first if need be)
// or RotationForget, which ends trust in the previous authority at once. It is taken away when the step is done.
const RotationAnnotation = "hypershift.openshift.io/rotate-authority"

// Values of RotationAnnotation.
const (
	RotationPrepare = "prepare"
	RotationSwitch  = "switch"
	RotationForget  = "forget"
)

// Keys of the Secret of an authority while it is replaced.
const (
	nextCertKey     = "next.crt"
	nextKeyKey      = "next.key"
	previousCertKey = "previous.crt"
)

const (
	// prepareLeft and switchLeft are what an authority has left of its life when each step begins by itself.
	prepareLeft = 2 * 365 * 24 * time.Hour
	switchLeft  = 400 * 24 * time.Hour
	// settle is how long a successor is trusted at least before it signs: what is rolled out says so before that.
	settle = time.Hour
)

// generations are an authority with those before and after it, as far as there are any.
type generations struct {
	current, next pair // next.cert is nil when there is none
	previous      []byte
}

func generationsOf(stored *corev1.Secret, current pair) generations {
	g := generations{current: current, previous: OnlyCertificates(stored.Data[previousCertKey])}
	if next, err := parsePair(stored.Data[nextCertKey], stored.Data[nextKeyKey]); err == nil {
		g.next = next // one that can't be read has signed nothing, and is made anew
	}
	return g
}

// trusted are the certificates of all generations, the present one first.
func (g generations) trusted() []byte {
	return slices.Concat(g.current.certPEM, g.next.certPEM, g.previous)
}

// step is what is to be done now, one of the values of RotationAnnotation; empty: nothing.
func (g generations) step(asked string, rolledOut bool, now time.Time) string {
	left := g.current.cert.NotAfter.Sub(now)
	switch {
	case g.next.cert == nil && (asked == RotationPrepare || asked == RotationSwitch || left <= prepareLeft):
		return RotationPrepare
	case g.next.cert != nil && (asked == RotationSwitch || left <= switchLeft) && rolledOut && !now.Before(g.settled()):
		return RotationSwitch
	case len(g.previous) > 0 && (asked == RotationForget || g.previousEnded(now)):
		return RotationForget
	}
	return ""
}

func (g generations) settled() time.Time { return g.next.cert.NotBefore.Add(maxBackdate + settle) }

func (g generations) previousEnded(now time.Time) bool {
	cert, err := parseCertificate(g.previous)
	return err != nil || now.After(cert.NotAfter)
}

// due is when the next step begins by itself; zero: nothing is waited for.
func (g generations) due(asked string, rolledOut bool) time.Time {
	if g.next.cert == nil {
		return g.current.cert.NotAfter.Add(-prepareLeft)
	}
	if !rolledOut {
		return time.Time{} // the end of it is an event
	}
	at := g.current.cert.NotAfter.Add(-switchLeft)
	if asked == RotationSwitch || at.Before(g.settled()) {
		return g.settled()
	}
	return at
}

// rotate does the step that is due for an authority that can be read.
func (p *planner) rotate(a authority, stored *corev1.Secret, current pair) {
	g, asked := generationsOf(stored, current), stored.Annotations[RotationAnnotation]
	step := g.step(asked, p.spec.TrustRolledOut, p.src.Now)
	if step == "" {
		p.accept(a, g, asked)
		return
	}
	s := p.secret(a.secret)
	var reason string
	switch step {
	case RotationPrepare:
		next, err := issueAuthority(a, p.spec, p.src)
		if err != nil {
			p.problem(err)
			p.accept(a, g, asked)
			return
		}
		g.next = next
		setAll(&s.Data, map[string][]byte{nextCertKey: next.certPEM, nextKeyKey: next.keyPEM})
		reason = fmt.Sprintf("it gets a successor, as it ends at %s or somebody asked for it", current.cert.NotAfter.UTC().Format(time.RFC3339))
	case RotationSwitch:
		// Only the last one is kept: of those before, every certificate was replaced at the switch before.
		g = generations{current: g.next, previous: current.certPEM}
		setAll(&s.Data, map[string][]byte{
			CACertKey: g.current.certPEM, CAKeyKey: g.current.keyPEM, TLSCertKey: g.current.certPEM, TLSKeyKey: g.current.keyPEM, previousCertKey: g.previous,
		})
		delete(s.Data, nextCertKey)
		delete(s.Data, nextKeyKey)
		reason = "its successor is trusted everywhere"
	case RotationForget:
		g.previous = nil
		delete(s.Data, previousCertKey)
		reason = "the authority before it is not needed any more"
	}
	if asked == step {
		delete(s.Annotations, RotationAnnotation)
		asked = ""
	}
	p.store(&p.plan.Authorities, s, reason)
	p.accept(a, g, asked)
}

// accept makes an authority known to what depends on it.
func (p *planner) accept(a authority, g generations, asked string) {
	p.cas[a.secret], p.trusted[a.secret] = g.current, g.trusted()
	if due := g.due(asked, p.spec.TrustRolledOut); !due.IsZero() {
		p.recheckIn(due.Sub(p.src.Now))
	}
}
