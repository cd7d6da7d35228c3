package pki

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/clip"
)

// An authority is replaced in two steps, so that nobody ever meets a certificate that he can't verify:
//
//	prepare  the successor is made and joins the trust bundles; the old one goes on signing
//	switch   once the bundles have got everywhere, the successor signs, and every leaf is issued anew; the old one stays trusted until it ends
//
//	forget   a little more than the longest life of what it signed after the switch, or when somebody asks for it, the old one is trusted no more
//
// What is not rolled out by us, kubeconfigs that people keep, learns of a successor only when it is made anew. That is why there is
// most of a year between the steps, where nobody asks for them earlier.
//
// Authorities may be replaced again before the old ones are forgotten. Each of those stays trusted until its own end: nodes have certificates for two years,
// and one whose authority is forgotten can't renew its certificate either.

// RotateBeforeAnnotation on a HostedCluster asks for new authorities: each that was made before this time (RFC 3339) is replaced in two steps, one after
// the other as the bundles get everywhere. It may stay: nothing is done again for the same time.
const RotateBeforeAnnotation = "hypershift.openshift.io/rotate-authorities-before"

// RevokeBeforeAnnotation on a HostedCluster ends trust in previous authorities that were made before this time (RFC 3339), once their successors sign and
// all components have the new certificates. It may stay, and so should be no later than RotateBeforeAnnotation: one that is counts as that, since the authorities
// that are there since then would have little time when they are replaced themselves. It is not heeded for ClusterSigner, by whose certificates nodes are known:
// RotationForget on its Secret is.
const RevokeBeforeAnnotation = "hypershift.openshift.io/revoke-authorities-before"

// LeaveNodesAnnotation on a HostedCluster gives nodes up that don't follow: successors that were made before this time (RFC 3339) sign without waiting
// until every node trusts them. Nodes that don't have to be made anew then.
const LeaveNodesAnnotation = "hypershift.openshift.io/rotate-authorities-without-nodes"

// switchedAnnotation on the Secret of an authority is when it began to sign in the place of another, in RFC 3339. While several former authorities are trusted it
// is when each of them stopped signing, in the order of previousCertKey, separated by commas; so the last time is always that of the last switch.
const switchedAnnotation = "hypershift.openshift.io/authority-since"

// RotationAnnotation on the Secret of an authority asks for a step before its time: RotationPrepare, RotationSwitch (which prepares first if need be)
// or RotationForget, which ends trust in previous authorities at once. It is taken away when the step is done, or when there is nothing to do: one that waited for
// years would be meant for another authority.
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
	previousCertKey = "previous.crt" // all that are trusted still, the oldest first
)

const (
	// prepareLeft and switchLeft are what an authority has left of its life when each step begins by itself.
	prepareLeft = 2 * 365 * 24 * time.Hour
	switchLeft  = 400 * 24 * time.Hour
	// settle is how long a successor is trusted at least before it signs: what is rolled out says so before that. Where leaves live for hours, on trial, it is
	// a tenth of their life, and minSettle at least.
	settle, minSettle = time.Hour, 2 * time.Minute
)

// asked is the step that somebody wants, by the Secret itself or for all authorities of the control plane; empty: none. order is the Secret's, which stands in the way
// of no other wish while it can't be taken.
func (s Spec) asked(a authority, order string, g generations) string {
	switch {
	case !g.full() && (order == RotationSwitch || order == RotationPrepare && g.next.cert == nil):
		return order
	case !g.full() && madeAt(g.current.cert).Before(s.RotateBefore): // else only the end of trust in former ones helps
		return RotationSwitch
	case a.secret != ClusterSigner && slices.ContainsFunc(g.previous, s.revokes):
		return RotationForget
	}
	return ""
}

// revokes says whether trust in a former authority is to end.
func (s Spec) revokes(f former) bool {
	before := s.RevokeBefore
	if !s.RotateBefore.IsZero() {
		before = earlier(before, s.RotateBefore) // later ones are successors, and nobody meant them
	}
	return f.madeBefore(before)
}

// step is what is to be done now, one of the values of RotationAnnotation; empty: nothing, but for former authorities that have come to their end.
func (g generations) step(asked string, spec Spec, now time.Time) string {
	left := g.current.cert.NotAfter.Sub(now)
	switch {
	case g.next.cert == nil && (left <= prepareLeft || !g.full() && (asked == RotationPrepare || asked == RotationSwitch)):
		return RotationPrepare
	case g.next.cert != nil && (asked == RotationSwitch || left <= switchLeft) && spec.TrustRolledOut && !g.nodesBehind && !now.Before(g.settled(spec)):
		return RotationSwitch
	case asked == RotationForget && len(g.unrevoked(spec, now)) < len(g.previous):
		return RotationForget
	}
	return ""
}

func (g generations) settled(spec Spec) time.Time { return madeAt(g.next.cert).Add(spec.settle()) }

func (s Spec) settle() time.Duration { return min(settle, max(minSettle, s.validity()/10)) }

// due is when the next step begins by itself; zero: nothing is waited for.
func (g generations) due(asked string, spec Spec) time.Time {
	at, end := g.dueStep(asked, spec), g.nextEnd()
	if at.IsZero() || !end.IsZero() && end.Before(at) {
		return end
	}
	return at
}

// dueStep is due, but for former authorities that come to their end.
func (g generations) dueStep(asked string, spec Spec) time.Time {
	switch {
	case g.next.cert == nil && len(g.previous) > 0 && asked == RotationForget && spec.TrustRolledOut:
		return g.switched.Add(spec.settle())
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

// rotate does the step that is due for an authority that can be read.
func (p *planner) rotate(a authority, stored *corev1.Secret, current pair) {
	all := generationsOf(stored, current, p.spec)
	g := all.withoutEnded(p.src.Now)
	order := p.order(stored)
	if order == RotationForget {
		g.previous = nil // before any other step: it isn't meant for those that a switch adds
	}
	ended := len(g.previous) < len(all.previous)
	g.nodesBehind = g.next.cert != nil && knownToNodes(a.secret) && !p.nodesFollow(g)
	asked := p.spec.asked(a, order, g)
	step := g.step(asked, p.spec, p.src.Now)
	done := order == RotationForget || order == RotationPrepare && (step == RotationPrepare || g.next.cert != nil) || order == RotationSwitch && step == RotationSwitch
	p.tellFull(a, g, order)
	if step == "" && !ended && !done {
		p.accept(a, g, asked)
		return
	}
	s := p.secret(a.secret)
	reason := "an authority before it is not needed any more"
	if !ended {
		reason = fmt.Sprintf("there is nothing to do for step %s, which somebody asked for", order)
	}
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
		g.previous = append(g.previous, formers(current.certPEM, p.src.Now)...)
		g.boundEnds()
		g.current, g.next, g.switched, g.nodesBehind = g.next, pair{}, p.src.Now, false
		setAll(&s.Data, map[string][]byte{CACertKey: g.current.certPEM, CAKeyKey: g.current.keyPEM, TLSCertKey: g.current.certPEM, TLSKeyKey: g.current.keyPEM})
		delete(s.Data, nextCertKey)
		delete(s.Data, nextKeyKey)
		reason = "its successor is trusted everywhere"
	case RotationForget:
		g.previous = g.unrevoked(p.spec, p.src.Now)
		reason = "authorities before it are revoked"
	}
	g.keep(s)
	if done {
		delete(s.Annotations, RotationAnnotation)
		order = ""
	}
	asked = p.spec.asked(a, order, g) // such as the end of trust after a switch
	p.store(&p.plan.Authorities, s, reason)
	p.accept(a, g, asked)
}

// order is the step that somebody asks for on the Secret of an authority; empty: none, or none that there is.
func (p *planner) order(stored *corev1.Secret) string {
	order := stored.Annotations[RotationAnnotation]
	switch order {
	case "", RotationPrepare, RotationSwitch, RotationForget:
		return order
	}
	p.problem(fmt.Errorf("annotation %s of Secret %s/%s is ignored: it is %q, and must be %s, %s or %s",
		RotationAnnotation, p.spec.Namespace, stored.Name, clip.To(order, maxSubjectText), RotationPrepare, RotationSwitch, RotationForget))
	return ""
}

// StepProblem says why nothing would come of a step, one of the values of RotationAnnotation, for the authority in a Secret; empty: something would.
func StepProblem(authority *corev1.Secret, step string) string {
	g, order := generationsOf(authority, pair{}, Spec{}), authority.Annotations[RotationAnnotation]
	switch {
	case step == RotationForget && len(g.previous) == 0:
		return "no former authority is trusted: take step switch first, and forget when the successor signs"
	case step == RotationForget && order == RotationSwitch && !g.full():
		return "step switch, which was asked for, isn't done yet: ask for forget when the successor signs"
	case step == RotationPrepare && g.next.cert != nil:
		return "it has a successor already: switch is the next step"
	case step != RotationForget && g.full():
		return fmt.Sprintf("%d former authorities are still trusted: wait until the first of them ends at %s, or end trust in all of them with step forget", len(g.previous), g.nextEnd().UTC().Format(time.RFC3339))
	}
	return ""
}

// tellFull reports an authority that is to be replaced and can't be, because too many former ones are trusted.
func (p *planner) tellFull(a authority, g generations, order string) {
	wanted := order == RotationPrepare || order == RotationSwitch || madeAt(g.current.cert).Before(p.spec.RotateBefore)
	if !wanted || !g.full() || g.current.cert.NotAfter.Sub(p.src.Now) <= prepareLeft {
		return
	}
	p.problem(fmt.Errorf("certificate authority %s/%s is not replaced before %s: %d former ones are still trusted, because certificates that they signed may be valid; "+
		"wait, or end trust in all of them with `hypershift rotate authorities NAME --authority %s --step forget`, after which these certificates are refused",
		p.spec.Namespace, a.secret, g.nextEnd().UTC().Format(time.RFC3339), len(g.previous), a.secret))
}

// accept makes an authority known to what depends on it.
func (p *planner) accept(a authority, g generations, asked string) {
	p.cas[a.secret], p.trusted[a.secret] = g.current, g.trusted()
	if knownToNodes(a.secret) {
		p.awaitsNodes = p.awaitsNodes || g.next.cert != nil
		p.toldNodes = p.toldNodes || g.next.cert != nil || !g.switched.IsZero()
	}
	p.plan.AwaitsRollout = p.plan.AwaitsRollout || !p.spec.TrustRolledOut && (g.next.cert != nil || len(g.previous) > 0 && asked == RotationForget)
	if due := g.due(asked, p.spec); !due.IsZero() {
		p.recheckIn(due.Sub(p.src.Now))
	}
}
