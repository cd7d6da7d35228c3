package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLexer(t *testing.T) {
	const stored, seen = `{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","apiGroup":"infrastructure.cluster.hypershift.openshift.io"}`,
		`{"apiVersion":"cluster.x-k8s.io/v1beta2","apiGroup":"infrastructure.cluster.x-k8s.io"}`
	conditions := strings.Repeat(`{"type":"Ready","message":"a \"b\" {[\\"},`, 40)
	t.Run("When a group is spelt in any way JSON has, in what is gone over quickly, it should be renamed", func(t *testing.T) {
		p := in(t, "GET", capi+"machines/m").Answer(true)
		for _, tc := range [][2]string{
			{stored, seen},
			{`{"apiGroup":"\u0063luster.hypershift.openshift.io"}`, `{"apiGroup":"cluster.x-k8s.io"}`},
			{`{"\u0061piGroup":"cluster.hypershift.openshift.io"}`, `{"\u0061piGroup":"cluster.x-k8s.io"}`},
			{`{"apiVersion":"cluster.hypershift.openshift.io\/v1beta2"}`, `{"apiVersion":"cluster.x-k8s.io/v1beta2"}`},
			{`{"apiVersion":"\n"}`, `{"apiVersion":"\n"}`},
			{`{"message":"cluster.hypershift.openshift.io"}`, `{"message":"cluster.hypershift.openshift.io"}`},
		} {
			for _, at := range []string{`{"status":{"a":[X,1]}}`, `{"status":{"a":{"b":{}},"conditions":[` + conditions + `X]}}`, `{"spec":{"a":[{}],"b":X,"c":{"d":X}}, "status":{}}`} {
				g := NewWithT(t)
				src, want := strings.ReplaceAll(at, "X", tc[0]), strings.ReplaceAll(at, "X", tc[1])
				g.Expect(json.Valid([]byte(src))).To(BeTrue())
				for _, part := range []int{1, 7, 64, 1000, 1 << 20} {
					x := New(p)
					var got []byte
					for rest := []byte(src); len(rest) > 0; {
						n := min(part, len(rest))
						var err error
						got, err = x.Append(got, rest[:n])
						g.Expect(err).NotTo(HaveOccurred())
						rest = rest[n:]
					}
					g.Expect(x.Close()).To(Succeed())
					g.Expect(string(got)).To(Equal(want), "in parts of %d", part)
				}
			}
		}
	})
	t.Run("When what is gone over quickly ends too early or nests too deep it should be an error", func(t *testing.T) {
		g := NewWithT(t)
		p := in(t, "GET", capi+"machines/m").Answer(true)
		_, err := Bytes(p, nil, []byte(`{"status":{"a":[{}`))
		g.Expect(err).To(MatchError(ErrTruncated))
		_, err = Bytes(p, nil, []byte(`{"status":{"a":"x`))
		g.Expect(err).To(MatchError(ErrTruncated))
		_, err = Bytes(p, nil, []byte(`{"status":`+strings.Repeat("[", 512)))
		g.Expect(err).To(MatchError(ErrTooDeep))
	})
	t.Run("When lists are translated one after another it should allocate nothing", func(t *testing.T) {
		g := NewWithT(t)
		p := in(t, "GET", capi+"machines").Answer(true)
		item := []byte(`{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Machine","metadata":{"ownerReferences":[` + stored + `],"managedFields":[` + stored + `]},"spec":{"infrastructureRef":` + stored + `},"status":{"conditions":[` + conditions + `{}]}}`)
		list := append(append([]byte(`{"kind":"MachineList","items":[`), bytes.Repeat(append(item, ','), 200)...), `{}]}`...)
		x, out := New(p), make([]byte, 0, len(list))
		g.Expect(testing.AllocsPerRun(20, func() {
			x.Reset(p)
			for rest := list; len(rest) > 0; {
				n := min(10000, len(rest))
				out, _ = x.Append(out[:0], rest[:n])
				rest = rest[n:]
			}
		})).To(BeZero())
	})
}
