package tags

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []string
		want Set
		err  string
	}{
		"When a value holds an equals sign it should split at the first": {in: []string{"a=b=c"}, want: Set{"a": "b=c"}},
		"When a value is empty it should be kept":                        {in: []string{"a="}, want: Set{"a": ""}},
		"When there is no equals sign it should say how to write it":     {in: []string{"a"}, err: "write key=value"},
		"When a key is AWS's own it should be refused":                   {in: []string{"AWS:x=1"}, err: "reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Parse(tc.in)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestOf(t *testing.T) {
	t.Run("When tags are added it should not let them replace the cluster's own", func(t *testing.T) {
		g := NewWithT(t)
		additional := Set{"team": "a", InfraID: "other"}
		g.Expect(Of("demo-1", "demo", additional)).To(Equal(Set{
			"team": "a", InfraID: "demo-1", "kubernetes.io/cluster/demo-1": "owned", ClusterName: "demo",
		}))
		g.Expect(additional).To(HaveLen(2), "the user's set is not changed")
		g.Expect(Missing(Set{"a": "1", "b": "2"}, Set{"a": "1", "b": "3", "c": "4"})).To(Equal(Set{"b": "3", "c": "4"}))
	})
}
