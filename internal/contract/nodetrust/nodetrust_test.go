package nodetrust

import (
	"bytes"
	"encoding/pem"
	"testing"

	. "github.com/onsi/gomega"
)

func cert(text string) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)})
}

func TestSorted(t *testing.T) {
	g := NewWithT(t)
	a, b := cert("a"), cert("b")
	g.Expect(Sorted(a, b)).To(Equal(Sorted(append(bytes.Clone(b), a...), a)), "the order and repetitions are nothing to nodes")
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	g.Expect(Sorted(key, []byte("noise"), a)).To(Equal(a), "nothing but certificates")
	data := map[string]string{RootKey: string(Sorted(a, b)), KubeletKey: string(Sorted(b))}
	g.Expect(Holds(data, a)).To(BeTrue())
	g.Expect(Holds(data, cert("c"))).To(BeFalse())
	g.Expect(Holds(data, nil)).To(BeFalse())
	g.Expect(HashOf(data)).To(HaveLen(hashLength))
	g.Expect(HashOf(map[string]string{RootKey: data[RootKey]})).To(BeEmpty())
}

func TestReported(t *testing.T) {
	hash := Hash([]byte("a"), []byte("b"))
	for name, c := range map[string]struct{ message, want string }{
		"When all nodes trust the same it should be known what": {"all 3 nodes: " + Report(hash), hash},
		"When the message is another's nothing should be known": {"fine", ""},
		"When the hash was cut off nothing should be known":     {Report(hash[:5]), ""},
		"When there is more behind it nothing should be known":  {Report(hash) + " and more", ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Reported(c.message)).To(Equal(c.want))
		})
	}
}
