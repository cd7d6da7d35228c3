package pki

import (
	"bytes"
	"crypto/x509"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestProperties checks, over generated control planes and ages, what must hold whatever is stored.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := demo(func(s *Spec) {
			s.APIHost = rapid.SampledFrom([]string{"", "10.97.0.7", "api.example.com", "fd00::5"}).Draw(t, "host")
			s.CustomAPIHost = rapid.SampledFrom([]string{"", "custom.example.com"}).Draw(t, "custom")
			s.KonnectivityHost = rapid.SampledFrom([]string{"", "10.97.0.8", "k.example.com"}).Draw(t, "konnectivity")
			s.Validity = time.Duration(rapid.Int64Range(0, int64(2*caValidity)).Draw(t, "validity"))
			s.RenewShare = rapid.Float64Range(0, 1).Draw(t, "share")
		})
		// Some of an earlier state, of a possibly different spec and age, survives; some of it is damaged.
		age := time.Duration(rapid.Int64Range(-int64(maxBackdate-time.Minute), int64(caValidity-time.Hour)).Draw(t, "age"))
		obs := Observed{}
		if rapid.Bool().Draw(t, "existed") {
			obs = settled(t, demo(), noon)
			for _, name := range demo().secretNames() {
				switch rapid.IntRange(0, 11).Draw(t, name) {
				case 0:
					delete(obs.Secrets, name)
				case 1:
					if s := obs.Secrets[name]; s != nil && len(s.Data[CAKeyKey]) == 0 {
						s.Data[TLSCertKey] = []byte("damaged")
					}
				}
			}
		}
		now := noon.Add(age)
		plan := PlanFor(spec, obs, source(now))
		if len(plan.Problems) > 0 {
			t.Fatalf("problems: %v", plan.Problems)
		}
		after := apply(obs, plan)
		again := PlanFor(spec, after, source(now))
		if !again.Empty() {
			t.Fatalf("a second plan would still write %v", reasons(again))
		}
		for name, s := range obs.Secrets {
			if len(s.Data[CAKeyKey]) > 0 && !bytes.Equal(s.Data[CAKeyKey], after.Secrets[name].Data[CAKeyKey]) {
				t.Fatalf("authority %s was replaced", name)
			}
		}
		checkLeaves(t, spec, after, now)
		checkRenewal(t, spec, after, now, again.RecheckAfter)
	})
}

func checkLeaves(t *rapid.T, spec Spec, obs Observed, now time.Time) {
	leaves, err := spec.leaves()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leaves {
		s := obs.Secrets[l.secret]
		have, err := parsePair(s.Data[l.certEntry()], s.Data[l.keyEntry()])
		if err != nil {
			t.Fatalf("%s: %v", l.secret, err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(obs.Secrets[l.signer].Data[CACertKey])
		for _, usage := range l.usages {
			if _, err := have.cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
				t.Fatalf("%s does not chain to %s: %v", l.secret, l.signer, err)
			}
		}
		for _, host := range slices.Concat(l.dns, l.ips) {
			if err := have.cert.VerifyHostname(host); err != nil && net.ParseIP(host) != nil {
				t.Fatalf("%s: %v", l.secret, err)
			}
		}
		if len(have.cert.DNSNames)+len(have.cert.IPAddresses) != len(l.dns)+len(l.ips) {
			t.Fatalf("%s serves %v %v, want %v %v", l.secret, have.cert.DNSNames, have.cert.IPAddresses, l.dns, l.ips)
		}
		if bits := have.cert.SerialNumber.BitLen(); bits > 64 || have.cert.SerialNumber.Sign() <= 0 {
			t.Fatalf("%s has serial number %v", l.secret, have.cert.SerialNumber)
		}
		if bytes.Equal(have.cert.AuthorityKeyId, nil) {
			t.Fatalf("%s does not name its authority's key", l.secret)
		}
	}
}

// checkRenewal looks at the state just before and just after the promised time.
func checkRenewal(t *rapid.T, spec Spec, obs Observed, now time.Time, recheck time.Duration) {
	if recheck == 0 || recheck == time.Duration(math.MaxInt64) {
		return
	}
	if recheck <= minRecheck {
		return
	}
	for _, a := range spec.authorities() {
		if ca, err := parseCertificate(obs.Secrets[a.secret].Data[CACertKey]); err != nil || ca.NotAfter.Before(now.Add(recheck+time.Second)) {
			return // nothing that it signed can live longer, and its successor waits for components
		}
	}
	if p := PlanFor(spec, obs, source(now.Add(recheck-time.Second))); !p.Empty() {
		t.Fatalf("it would write before the time that it gave: %v", reasons(p))
	}
	p := PlanFor(spec, obs, source(now.Add(recheck+time.Second)))
	if len(p.Leaves)+len(p.Authorities) == 0 {
		t.Fatalf("nothing is renewed after %s", recheck)
	}
	checkLeaves(t, spec, apply(obs, p), now.Add(recheck+time.Second))
}
