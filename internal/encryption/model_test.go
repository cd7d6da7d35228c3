package encryption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// key is the one of a letter; the dot is no encryption, and a capital the same bytes held by a plugin.
func key(letter string) Key {
	if letter == "." {
		return Plain
	}
	if letter >= "1" && letter <= "9" {
		return CloudKey(Ref{Provider: hyperv1.SecretEncryptionProviderAWS, AWS: &hyperv1.AWSKMSKeyEntry{ARN: "arn:aws:kms:::key/" + letter}}, "")
	}
	k := NewKey([]byte(strings.Repeat(strings.ToLower(letter), KeySize)))
	if letter != strings.ToLower(letter) {
		return k.In(InPlugin)
	}
	return k
}

func keys(letters string) []Key {
	var list []Key
	for _, letter := range letters {
		list = append(list, key(string(letter)))
	}
	return list
}

func letters(list []Key) string {
	var s strings.Builder
	for _, k := range list {
		switch {
		case k.plain():
			s.WriteByte('.')
		case k.Form == InCloud:
			s.WriteString(letterOf(k.Name))
		case k.Form == InPlugin:
			s.WriteString(strings.ToUpper(string(k.Data[:1])))
		default:
			s.WriteByte(k.Data[0])
		}
	}
	return s.String()
}

// letterOf finds the key of a fingerprint.
func letterOf(hash string) string {
	for _, letter := range "abcdefghABCDEFGH123456789" {
		if key(string(letter)).Hash() == hash {
			return string(letter)
		}
	}
	return ""
}

// named is the key of a letter as a status names it. Digits are keys of a cloud.
func named(letter string) *Ref {
	ref := AESCBCRef("key-"+letter, key(letter))
	if key(letter).Form == InCloud {
		ref = *key(letter).Ref
	}
	return &ref
}

// model is a hosted cluster with both operators, reduced to keys, which are letters here.
type model struct {
	spec, backup string // no spec: encryption is off
	status       hyperv1.SecretEncryptionStatus
	live         string
	servers      []string // the configuration each runs; "" does not run
	stored       []string // what each Secret is encrypted with
	rewritten    int      // progress of the rewriting: all before this are done
	progressFor  int      // version of the configuration that the progress is about
	version      int      // of the HostedControlPlane
	liveVersion  int      // of the configuration
	lost         string   // the key whose bytes are in no Secret any more
	deployed     bool     // there are servers, or were
	broken       string   // the keys of clouds that can't be used: a server that starts with one does not get ready
	surge        string   // the configuration of a server that does not get ready, and keeps those of before; "" there is none
	silent       bool     // the hosted-cluster-config-operator is one that does not know rotations, or down
	asleep       bool     // no server runs, nor the hosted-cluster-config-operator, which is back when one does
	proven       string   // the keys with which servers got ready
}

func ptrKey(letter string) *Key {
	if letter == "" {
		return nil
	}
	k := key(letter)
	return &k
}

func statusLetter(k hyperv1.SecretEncryptionKeyStatus) string {
	if !isSet(k) {
		return ""
	}
	return letterOf(HashOf(k, ""))
}

func (m *model) converged() bool {
	return !m.asleep && !slices.ContainsFunc(m.servers, func(s string) bool { return s != m.live }) && (m.surge == "" || m.surge == m.live)
}

// sleep ends all servers, as hibernation does.
func (m *model) sleep() {
	m.asleep, m.surge = true, ""
	clear(m.servers)
}

// replace has servers start with what is live, as a rollout does: one that does not get ready replaces none.
func (m *model) replace(which ...int) {
	m.deployed, m.surge = true, ""
	if strings.ContainsAny(m.starts(), m.broken) {
		m.surge = m.starts()
		return
	}
	m.asleep, m.proven = false, m.proven+m.starts()
	for _, i := range which {
		m.servers[i] = m.starts()
	}
}

// known says that it was known once what is stored.
func (m *model) known() bool {
	return isSet(m.status.ActiveKey) && (len(m.status.History) == 0 || slices.ContainsFunc(m.status.History, func(h hyperv1.EncryptionMigrationHistory) bool {
		return h.State == hyperv1.EncryptionMigrationCompleted
	}))
}

// write has a server store something; it can't with a key that can't be used.
func (m *model) write(server string, at int) {
	switch {
	case server == "" || strings.Contains(m.broken, server[:1]):
	case at < len(m.stored):
		m.stored[at] = server[:1]
	default:
		m.stored = append(m.stored, server[:1])
	}
}

// unreadable says whether the target is to be had nowhere.
func (m *model) unreadable() bool {
	target := statusLetter(m.status.TargetKey)
	return target != "" && target == m.lost && !strings.Contains(m.live, target)
}

// starts is what a server that starts now runs with.
func (m *model) starts() string {
	if m.spec == "" {
		return "."
	}
	return m.live
}

func (m *model) controlPlaneOperator(t *rapid.T) {
	if m.spec == "" {
		return
	}
	target := ptrKey(statusLetter(m.status.TargetKey))
	if m.unreadable() {
		target = ptrKey(m.live[:1])
	}
	active := ptrKey(statusLetter(m.status.ActiveKey))
	if active == nil && isSet(m.status.TargetKey) {
		active = &Plain
	}
	next, err := Order(Wanted{
		Live: keys(m.live), Converged: m.converged(), Spec: ptrKey(m.spec), Backup: ptrKey(m.backup), Unencrypted: m.deployed,
		Active: active, Target: target, Promoted: m.look().obs.Promotion(),
	})
	if err != nil && len(m.live) >= MaxKeys-1 { // for one more, and for the backup
		m.undo()
		return
	}
	if err != nil {
		t.Fatalf("spec %s, live %s: %v", m.spec, m.live, err)
	}
	if first := letters(next)[:1]; m.live != "" && first != m.live[:1] && !strings.Contains(m.proven, first) {
		t.Fatalf("a key is to write with which no server has started: %q: %+v", letters(next), *m)
	}
	if letters(next) != m.live {
		m.live = letters(next)
		m.liveVersion++
	}
}

// undo is what the refusal of too many keys asks people for: the spec names a key again that the servers have.
func (m *model) undo() {
	if !strings.Contains(m.live, m.spec) {
		m.spec, m.lost = m.live[:1], ""
		m.version++
	}
}

// look is what a pass of the config operator has seen, which may be old when it acts on it.
type look struct {
	obs                  Observed
	version, liveVersion int
}

func (m *model) look() *look {
	backup := Ref{}
	if m.backup != "" {
		backup = *named(m.backup)
	}
	obs := Observed{Status: *m.status.DeepCopy(), Spec: named(m.spec), Backup: backup, Live: keys(m.live), Converged: m.converged(), TargetReadable: !m.unreadable()}
	return &look{obs, m.version, m.liveVersion}
}

// configOperator makes a pass that dies after the given number of its writes. A write of the status is refused when the object
// is not the one that was looked at.
func (m *model) configOperator(l *look, writes, chunk int, server func() string) {
	step := Next(l.obs, noon)
	if writes == 0 {
		return
	}
	if !step.Rewrite || Promoted(l.obs.Status) != PromotionDone {
		m.store(l, step.Status)
		return
	}
	if m.progressFor != l.liveVersion {
		m.rewritten, m.progressFor = 0, l.liveVersion
	}
	for range chunk {
		if m.rewritten >= len(m.stored) {
			break
		}
		if s := server(); s != "" {
			m.stored[m.rewritten] = s[:1]
			m.rewritten++
		}
	}
	if m.rewritten >= len(m.stored) && writes > 1 && m.liveVersion == l.liveVersion {
		m.store(l, Complete(step.Status, noon).Status)
	}
}

func (m *model) store(l *look, status hyperv1.SecretEncryptionStatus) {
	if m.version == l.version && !equality.Semantic.DeepEqual(status, m.status) {
		m.status = status
		m.version++
	}
}

// check is the invariant: every server that runs reads everything that is stored, and so does the one that starts next.
func (m *model) check(t *rapid.T) {
	for _, s := range append(slices.Clone(m.servers), m.surge, m.live) {
		for _, by := range m.stored {
			if s != "" && by != "." && !strings.Contains(s, by) {
				t.Fatalf("a server with keys %q cannot read what is encrypted with %q: %+v", s, by, *m)
			}
		}
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, all := []string{"a", "b", "c", "d", "A", "B", "1", "2"}, []int{0, 1, 2}
		m := &model{spec: "a", servers: make([]string, rapid.IntRange(1, 3).Draw(t, "replicas")), silent: rapid.Bool().Draw(t, "silent")}
		all = all[:len(m.servers)]
		m.broken = rapid.SampledFrom([]string{"3", "23"}).Draw(t, "broken")
		m.backup = rapid.SampledFrom([]string{"", "", "b"}).Draw(t, "backup")
		if rapid.Bool().Draw(t, "encrypted later") {
			m.spec, m.deployed = "", true
		}
		m.controlPlaneOperator(t)
		if m.spec == "a" && m.backup == "" && rapid.Bool().Draw(t, "settled") {
			m.replace(all...)
			m.status.ActiveKey = *named("a")
		}
		var seen *look // by the pass of the config operator that is under way
		server := func() string { return m.servers[rapid.IntRange(0, len(m.servers)-1).Draw(t, "server")] }
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "event") {
			case 0:
				m.version++
				old, active := m.spec, statusLetter(m.status.ActiveKey)
				m.spec, m.lost = rapid.SampledFrom(names).Draw(t, "spec"), ""
				if m.known() && rapid.Bool().Draw(t, "back or mistyped") {
					m.spec = rapid.SampledFrom([]string{active, "3"}).Draw(t, "which")
				} else if strings.Contains(m.broken, m.spec) && !m.known() {
					m.spec = "a" // a key must work as long as nobody knows what is stored
				}
				if old != m.spec && old != "" && rapid.Bool().Draw(t, "in place") { // the Secret got other bytes
					m.lost = old
				}
			case 1, 2:
				m.controlPlaneOperator(t)
			case 3:
				m.replace(rapid.IntRange(0, len(m.servers)-1).Draw(t, "replaced"))
			case 4: // the rollout ends
				m.replace(all...)
			case 5: // somebody writes, on the machine of a server also to one that is not ready
				at := len(m.stored)
				if at >= 10 {
					at = rapid.IntRange(0, len(m.stored)-1).Draw(t, "secret")
				}
				m.write(rapid.SampledFrom(append(slices.Clone(m.servers), m.surge)).Draw(t, "writer"), at)
			case 6:
				if seen == nil && m.spec != "" && !m.asleep {
					seen = m.look()
				}
				if seen != nil && !m.silent && !m.asleep && rapid.Bool().Draw(t, "acts") {
					m.configOperator(seen, rapid.IntRange(0, 2).Draw(t, "writes"), rapid.IntRange(1, 10).Draw(t, "chunk"), server)
					seen = nil
				}
			case 7:
				m.silent = rapid.IntRange(0, 3).Draw(t, "silent") == 0
			case 8:
				m.sleep()
				seen = nil
			}
			m.check(t)
		}
		if m.spec == "" {
			m.spec = "a"
		}
		if strings.Contains(m.broken, m.spec) { // somebody notices, and goes back
			m.spec, m.lost = statusLetter(m.status.ActiveKey), ""
			m.version++
		}
		// When everybody works and the spec stays, it ends with the one key.
		for range 20 {
			m.controlPlaneOperator(t)
			m.replace(all...)
			if !m.asleep {
				m.configOperator(m.look(), 2, 10, server)
			}
			m.check(t)
		}
		want := m.spec
		if m.backup != m.spec {
			want += m.backup
		}
		if m.live != want || isSet(m.status.TargetKey) || statusLetter(m.status.ActiveKey) != m.spec {
			t.Fatalf("it does not end at %q: %+v", want, *m)
		}
		for _, by := range m.stored {
			if by != m.spec {
				t.Fatalf("something stays encrypted with %q: %+v", by, *m)
			}
		}
	})
}
