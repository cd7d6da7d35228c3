package pki

import (
	"crypto/x509"
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
//	forget   a little more than the longest life of a leaf after the switch, or when somebody asks for it, the old one is trusted no more
//
// What is not rolled out by us, kubeconfigs that people keep, learns of a successor only when it is made anew. That is why there is
// most of a year between the steps, where nobody asks for them earlier.

// RotateBeforeAnnotation on a HostedCluster asks for new authorities: each that was made before this time (RFC 3339) is replaced in two steps, one after
// the other as the bundles get everywhere. It may stay: nothing is done again for the same time.
const RotateBeforeAnnotation = "hypershift.openshift.io/rotate-authorities-before"

// RevokeBeforeAnnotation on a HostedCluster ends trust in previous authorities that were made before this time (RFC 3339), once their successors sign and
// all components have the new certificates. It is not heeded for ClusterSigner, by whose certificates nodes are known: RotationForget on its Secret is.
const RevokeBeforeAnnotation = "hypershift.openshift.io/revoke-authorities-before"

// LeaveNodesAnnotation on a HostedCluster gives nodes up that don't follow: successors that were made before this time (RFC 3339) sign without waiting
// until every node trusts them. Nodes that don't have to be made anew then.
const LeaveNodesAnnotation = "hypershift.openshift.io/rotate-authorities-without-nodes"

// switchedAnnotation on the Secret of an authority is when it began to sign in the place of another, in RFC 3339.
const switchedAnnotation = "hypershift.openshift.io/authority-since"

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
	// settle is how long a successor is trusted at least before it signs: what is rolled out says so before that. Where leaves live for hours, on trial, it is
	// a tenth of their life, and minSettle at least.
	settle, minSettle = time.Hour, 2 * time.Minute
	// forgetAfter the switch nothing that the previous authority signed is valid any more, unless leaves were asked to live longer.
	forgetAfter = 400 * 24 * time.Hour
)

// generations are an authority with those before and after it, as far as there are any.
type generations struct {
	current, next pair // next.cert is nil when there is none
	previous      []byte
	switched      time.Time // when current took over; zero when nobody knows
	nodesBehind   bool      // some nodes don't trust next yet
}

func generationsOf(stored *corev1.Secret, current pair) generations {
	g := generations{current: current, previous: OnlyCertificates(stored.Data[previousCertKey])}
	if next, err := parsePair(stored.Data[nextCertKey], stored.Data[nextKeyKey]); err == nil {
		g.next = next // one that can't be read has signed nothing, and is made anew
	}
	if at, err := time.Parse(time.RFC3339, stored.Annotations[switchedAnnotation]); err == nil {
		g.switched = at
	}
	return g
}

// madeAt is when an authority was made; its validity begins a little before.
func madeAt(cert *x509.Certificate) time.Time { return cert.NotBefore.Add(maxBackdate) }

// asked is the step that somebody wants, by the Secret itself or for all authorities of the control plane; empty: none.
func (s Spec) asked(a authority, stored *corev1.Secret, g generations) string {
	if step := stored.Annotations[RotationAnnotation]; step != "" {
		return step
	}
	if madeAt(g.current.cert).Before(s.RotateBefore) {
		return RotationSwitch
	}
	if old, err := parseCertificate(g.previous); err == nil && a.secret != ClusterSigner && madeAt(old).Before(s.RevokeBefore) {
		return RotationForget
	}
	return ""
}

// trusted are the certificates of all generations, the oldest first. So the switch changes no bundle: who can't read one again would start anew for the same certificates
// in another order.
func (g generations) trusted() []byte {
	return slices.Concat(g.previous, g.current.certPEM, g.next.certPEM)
}

// step is what is to be done now, one of the values of RotationAnnotation; empty: nothing. ordered is true when the step is asked for on the Secret
// itself: trust then ends at once.
func (g generations) step(asked string, ordered bool, spec Spec, now time.Time) string {
	left := g.current.cert.NotAfter.Sub(now)
	switch {
	case g.next.cert == nil && (asked == RotationPrepare || asked == RotationSwitch || left <= prepareLeft):
		return RotationPrepare
	case g.next.cert != nil && (asked == RotationSwitch || left <= switchLeft) && spec.TrustRolledOut && !g.nodesBehind && !now.Before(g.settled(spec)):
		return RotationSwitch
	case len(g.previous) == 0:
		return ""
	case asked == RotationForget && (ordered || spec.TrustRolledOut && !now.Before(g.switched.Add(spec.settle()))), g.previousEnded(spec, now):
		return RotationForget
	}
	return ""
}

func (g generations) settled(spec Spec) time.Time { return madeAt(g.next.cert).Add(spec.settle()) }

func (s Spec) settle() time.Duration { return min(settle, max(minSettle, s.validity()/10)) }

// previousEnded says whether nothing can be valid any more that the previous authority signed.
func (g generations) previousEnded(spec Spec, now time.Time) bool {
	cert, err := parseCertificate(g.previous)
	return err != nil || now.After(cert.NotAfter) || !g.switched.IsZero() && now.After(g.forgotten(spec))
}

func (g generations) forgotten(spec Spec) time.Time {
	return g.switched.Add(max(forgetAfter, spec.validity()+settle))
}

// due is when the next step begins by itself; zero: nothing is waited for.
func (g generations) due(asked string, spec Spec) time.Time {
	switch {
	case g.next.cert == nil && len(g.previous) > 0 && asked == RotationForget && spec.TrustRolledOut:
		return g.switched.Add(spec.settle())
	case g.next.cert == nil && len(g.previous) > 0 && !g.switched.IsZero():
		return earlier(g.forgotten(spec), g.current.cert.NotAfter.Add(-prepareLeft))
	case g.next.cert == nil:
		return g.current.cert.NotAfter.Add(-prepareLeft)
	case !spec.TrustRolledOut, g.nodesBehind:
		return time.Time{} // the end of it is an event
	}
	at := g.current.cert.NotAfter.Add(-switchLeft)
	if asked == RotationSwitch || at.Before(g.settled(spec)) {
		return g.settled(spec)
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// rotate does the step that is due for an authority that can be read.
func (p *planner) rotate(a authority, stored *corev1.Secret, current pair) {
	g := generationsOf(stored, current)
	g.nodesBehind = g.next.cert != nil && knownToNodes(a.secret) && !p.nodesFollow(g)
	asked, ordered := p.spec.asked(a, stored, g), stored.Annotations[RotationAnnotation] != ""
	step := g.step(asked, ordered, p.spec, p.src.Now)
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
		g.next, g.nodesBehind = next, knownToNodes(a.secret)
		setAll(&s.Data, map[string][]byte{nextCertKey: next.certPEM, nextKeyKey: next.keyPEM})
		reason = fmt.Sprintf("it gets a successor, as it ends at %s or somebody asked for it", current.cert.NotAfter.UTC().Format(time.RFC3339))
	case RotationSwitch:
		// Only the last one is kept: of those before, every certificate was replaced at the switch before.
		g = generations{current: g.next, previous: current.certPEM, switched: p.src.Now}
		setAll(&s.Data, map[string][]byte{
			CACertKey: g.current.certPEM, CAKeyKey: g.current.keyPEM, TLSCertKey: g.current.certPEM, TLSKeyKey: g.current.keyPEM, previousCertKey: g.previous,
		})
		delete(s.Data, nextCertKey)
		delete(s.Data, nextKeyKey)
		setAll(&s.Annotations, map[string]string{switchedAnnotation: p.src.Now.UTC().Format(time.RFC3339)})
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
	if asked == "" {
		asked = p.spec.asked(a, s, g) // such as the end of trust after a switch
	}
	p.store(&p.plan.Authorities, s, reason)
	p.accept(a, g, asked)
}

// accept makes an authority known to what depends on it.
func (p *planner) accept(a authority, g generations, asked string) {
	p.cas[a.secret], p.trusted[a.secret] = g.current, g.trusted()
	if knownToNodes(a.secret) {
		p.awaitsNodes = p.awaitsNodes || g.next.cert != nil
		p.toldNodes = p.toldNodes || g.next.cert != nil || !g.switched.IsZero()
	}
	if due := g.due(asked, p.spec); !due.IsZero() {
		p.recheckIn(due.Sub(p.src.Now))
	}
}
