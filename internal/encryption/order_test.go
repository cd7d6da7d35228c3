package encryption

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		live, spec, backup, active, target string
		converged, promoted, unencrypted   bool
		next                               string
	}{
		"When nothing is encrypted yet it should write with the active key":             {spec: "a", next: "a"},
		"When servers write without encryption they should first be able to read it":    {spec: "a", unencrypted: true, next: ".a"},
		"When some server may still not have the first key nobody should write with it": {live: ".a", active: ".", target: "a", next: ".a"},
		"When every server has the first key they should write with it":                 {live: ".a", active: ".", target: "a", converged: true, next: "a"},
		"When nobody speaks for the data the first key should be used all the same":     {live: ".a", spec: "a", converged: true, next: "a"},
		"When the key changes before the first one is in use it should keep both":       {live: ".a", spec: "b", converged: true, next: ".ba"},
		"When there is a backup key from the start it should read with it":              {spec: "b", backup: "a", next: "ba"},
		"When nobody speaks for the data a new key should first be read everywhere":     {live: "a", spec: "b", converged: true, next: "ab"},
		"When nobody speaks for the data it should write with the new key when it can":  {live: "ab", spec: "b", converged: true, next: "ba"},
		"When nobody speaks for the data it should drop nothing":                        {live: "cba", spec: "c", converged: true, next: "cba"},
		"When the status does not name the new key yet it should wait for that":         {live: "a", spec: "b", active: "a", converged: true, next: "a"},
		"When the target is new it should first be read everywhere":                     {live: "a", active: "a", target: "b", converged: true, next: "ab"},
		"When some server may not have the target it should not write with it":          {live: "ab", active: "a", target: "b", next: "ab"},
		"When every server has the target it should write with it":                      {live: "ab", active: "a", target: "b", converged: true, next: "ba"},
		"When data is being written again it should still read with the old key":        {live: "ba", active: "a", target: "b", converged: true, promoted: true, next: "ba"},
		"When everything stored has the new key it should drop the old one":             {live: "ba", active: "b", converged: true, next: "b"},
		"When another key writes than the status knows it should drop nothing":          {live: "ba", active: "a", converged: true, next: "ba"},
		"When the key that data needs is not in use any more it should be read again":   {live: "b", active: "a", target: "b", next: "ba"},
		"When the backup key is still named it should stay readable":                    {live: "ba", active: "b", backup: "a", next: "ba"},
		"When the configuration is lost it should write with what every server has":     {active: "a", target: "b", next: "ab"},
		"When the configuration is lost while data is written again it should go on":    {active: "a", target: "b", promoted: true, next: "ba"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := Wanted{Live: keys(tc.live), Unencrypted: tc.unencrypted, Converged: tc.converged, Promoted: tc.promoted, Spec: ptrKey(tc.spec), Backup: ptrKey(tc.backup), Active: ptrKey(tc.active), Target: ptrKey(tc.target)}
			got, err := Order(w)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(letters(got)).To(Equal(tc.next))
			g.Expect(letters(w.Live)).To(Equal(tc.live), "the input must not change")
		})
	}
	t.Run("When there would be too many keys it should refuse instead of dropping one", func(t *testing.T) {
		_, err := Order(Wanted{Live: keys("abcdefgh"), Spec: ptrKey("i")})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("there would be 9 encryption keys")))
	})
	t.Run("When a key has a name of somebody else's it should keep it", func(t *testing.T) {
		g := NewWithT(t)
		foreign := Key{Name: "key1", Data: key("b").Data}
		got, err := Order(Wanted{Live: []Key{key("a"), foreign}, Converged: true, Active: ptrKey("a"), Target: ptrKey("b")})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal([]Key{foreign, key("a")}))
	})
}

func TestConfig(t *testing.T) {
	t.Run("When a configuration is written it should be read as the same keys", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := Config(keys("ba"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ParseKeys(raw)).To(Equal(keys("ba")))
	})
	t.Run("When a configuration does not encrypt yet it should be read as that", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := Config(keys(".ba"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ParseKeys(raw)).To(Equal(keys(".ba")))
	})
	t.Run("When a configuration is malformed it should not quote it", func(t *testing.T) {
		_, err := ParseKeys([]byte("resources: c2VjcmV0"))
		NewWithT(t).Expect(err).To(MatchError("parsing config.yaml of Secret kas-secret-encryption-config: it is no encryption configuration"))
	})
}
