package encryption

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		live, spec, backup, active, target string
		converged, promoted, unencrypted   bool
		off                                bool
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
		"When a plugin is to hold the key it should first be read everywhere":           {live: "a", active: "a", target: "A", converged: true, next: "aA"},
		"When every server has the plugin it should write with it":                      {live: "aA", active: "a", target: "A", converged: true, next: "Aa"},
		"When everything stored is encrypted by the plugin it should drop the other":    {live: "Aa", active: "A", converged: true, next: "A"},
		"When the target is given up before it writes it should go":                     {live: "12", active: "1", target: "2", converged: true, off: true, next: "1"},
		"When the target is given up before servers have it it should not be added":     {live: "1", active: "1", target: "2", converged: true, off: true, next: "1"},
		"When the target is given up but writes already it should stay":                 {live: "21", active: "1", target: "2", converged: true, off: true, next: "21"},
		"When the first key is given up before it writes it should go":                  {live: ".1", active: ".", target: "1", converged: true, off: true, next: "."},
		"When the target is given up but is the backup key it should stay readable":     {live: "12", active: "1", target: "2", backup: "2", converged: true, off: true, next: "12"},
		"When the configuration is lost while a target is given up it should drop none": {active: "1", target: "2", off: true, next: "12"},
		"When the configuration is lost while data is written again it should go on":    {active: "a", target: "b", promoted: true, next: "ba"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := Wanted{Live: keys(tc.live), Unencrypted: tc.unencrypted, Converged: tc.converged, Spec: ptrKey(tc.spec), Backup: ptrKey(tc.backup), Active: ptrKey(tc.active), Target: ptrKey(tc.target)}
			if tc.promoted {
				w.Promoted = PromotionDone
			}
			if tc.off {
				w.Promoted = PromotionOff
			}
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
		for _, letters := range []string{"ba", "A", "BA", "Ba", "bA", "abAcB"} {
			raw, err := Config(keys(letters))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parse(keys(letters), raw)).To(Equal(keys(letters)))
		}
	})
	t.Run("When a configuration does not encrypt yet it should be read as that", func(t *testing.T) {
		g := NewWithT(t)
		for _, letters := range []string{".ba", ".A"} {
			raw, err := Config(keys(letters))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parse(keys(letters), raw)).To(Equal(keys(letters)))
		}
	})
	t.Run("When a configuration is malformed it should not quote it", func(t *testing.T) {
		_, err := ParseKeys(map[string][]byte{ConfigKey: []byte("resources: c2VjcmV0")})
		NewWithT(t).Expect(err).To(MatchError("parsing config.yaml of Secret kas-secret-encryption-config: it is no encryption configuration"))
	})
	t.Run("When keys are held by a plugin their bytes should not be in the configuration", func(t *testing.T) {
		g := NewWithT(t)
		list := keys("Ab")
		raw, err := Config(list)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString(list[0].Data)))
		g.Expect(string(raw)).To(ContainSubstring("endpoint: unix:///var/run/kms/" + list[0].Name + ".sock"))
		g.Expect(pluginNames(raw)).To(Equal([]string{list[0].Name}))
		g.Expect(Files(list)).To(Equal(map[string][]byte{list[0].Name + ".key": list[0].Data}))
	})
	t.Run("When the bytes of a plugin's key are missing it should say which", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := Config(keys("A"))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = ParseKeys(map[string][]byte{ConfigKey: raw})
		g.Expect(err).To(MatchError(ContainSubstring(KeyFile(key("A").Name))))
	})
}

func TestForms(t *testing.T) {
	t.Run("When the same bytes are in another form it should be another key, and the way back should lead to the first", func(t *testing.T) {
		g := NewWithT(t)
		a := key("a")
		plugin := a.In(InPlugin)
		g.Expect(plugin.Hash()).NotTo(Equal(a.Hash()))
		g.Expect(plugin.Name).NotTo(Equal(a.Name))
		g.Expect(plugin.In(InConfig)).To(Equal(a))
		for _, want := range []Key{a, plugin} {
			got, ok := a.Matching(want.Hash())
			g.Expect(ok).To(BeTrue())
			g.Expect(got).To(Equal(want))
		}
		_, ok := a.Matching(key("b").Hash())
		g.Expect(ok).To(BeFalse())
	})
}

// parse reads what ConfigSecret holds of keys.
func parse(list []Key, raw []byte) ([]Key, error) {
	data := Files(list)
	data[ConfigKey] = raw
	return ParseKeys(data)
}

func TestClouds(t *testing.T) {
	layout := Layout{Resources: []string{"secrets", "configmaps"}, Socket: func(i int) string { return fmt.Sprintf("/run/%d.sock", i) }, Timeout: time.Second}
	hcp := func(active, backup string) *hyperv1.HostedControlPlane {
		h := &hyperv1.HostedControlPlane{}
		h.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: *named(active).AWS}}}
		if backup != "" {
			h.Spec.SecretEncryption.KMS.AWS.BackupKey = named(backup).AWS
		}
		return h
	}
	t.Run("When keys are a cloud's they should be read back by their names, and found", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := layout.Config(keys("12a"))
		g.Expect(err).NotTo(HaveOccurred())
		live, err := ParseKeys(map[string][]byte{ConfigKey: raw})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(letters(live)).To(Equal("12a"))
		found, err := Resolve(live, hcp("1", "2"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(Equal(keys("12a")))
		g.Expect(string(raw)).To(ContainSubstring("endpoint: unix:///run/1.sock"))
	})
	t.Run("When nobody names a key any more it should ask for it", func(t *testing.T) {
		_, err := Resolve(keys("12"), hcp("1", ""))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("into backupKey of spec.secretEncryption.kms")))
	})
	t.Run("When there are no plugins of clouds it should refuse their keys", func(t *testing.T) {
		_, err := Config(keys("1"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("there is no plugin for key")))
	})
	t.Run("When IBM's plugin has the keys they should not change step by step", func(t *testing.T) {
		g := NewWithT(t)
		h := hcp("1", "")
		g.Expect(UnderWay(h)).To(BeTrue())
		h.Status.SecretEncryption.ActiveKey = *named("1")
		g.Expect(UnderWay(h)).To(BeFalse())
		h.Spec.SecretEncryption.KMS = &hyperv1.KMSSpec{Provider: hyperv1.IBMCloud, IBMCloud: &hyperv1.IBMCloudKMSSpec{}}
		g.Expect(Rotates(h)).To(BeFalse())
	})
}
