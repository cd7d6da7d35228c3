package agents

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestBind(t *testing.T) {
	large := labels.SelectorFromSet(labels.Set{"size": "large"})
	claim := func(machine string, after time.Duration, selector labels.Selector) Claim {
		return Claim{Machine: machine, Since: noon.Add(after), Selector: selector}
	}
	free := func(name string, set labels.Set) Host { return Host{Name: name, Labels: set, Free: true} }
	for name, tc := range map[string]struct {
		claims []Claim
		hosts  []Host
		want   map[string]string
	}{
		"When there are no hosts nobody should get one": {claims: []Claim{claim("a", 0, labels.Everything())}, want: map[string]string{}},
		"When a selector matches one host of two its machine should get that one": {
			claims: []Claim{claim("a", 0, large)}, hosts: []Host{free("h1", nil), free("h2", labels.Set{"size": "large"})}, want: map[string]string{"a": "h2"}},
		"When two want the same host the one that waits longer should get it": {
			claims: []Claim{claim("a", time.Minute, large), claim("b", 0, large)}, hosts: []Host{free("h", labels.Set{"size": "large"})}, want: map[string]string{"b": "h"}},
		"When a host is somebody's it should not be given away": {
			claims: []Claim{claim("a", 0, labels.Everything())}, hosts: []Host{{Name: "h"}}, want: map[string]string{}},
		"When several match they should be taken by name": {
			claims: []Claim{claim("a", 0, labels.Everything())}, hosts: []Host{free("h2", nil), free("h1", nil)}, want: map[string]string{"a": "h1"}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(Bind(tc.claims, tc.hosts)).To(Equal(tc.want)) })
	}
}

// TestBindProperties is about any machines and hosts.
func TestBindProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SampledFrom([]string{"small", "large", "huge"})
		var claims []Claim
		for i := range rapid.IntRange(0, 6).Draw(rt, "machines") {
			selector := labels.Everything()
			if rapid.Bool().Draw(rt, "chooses") {
				selector = labels.SelectorFromSet(labels.Set{"size": sizes.Draw(rt, "wants")})
			}
			claims = append(claims, Claim{Machine: fmt.Sprint("m", i), Selector: selector, Since: noon.Add(time.Duration(rapid.IntRange(0, 2).Draw(rt, "since")) * time.Minute)})
		}
		var hosts []Host
		for i := range rapid.IntRange(0, 6).Draw(rt, "hosts") {
			hosts = append(hosts, Host{Name: fmt.Sprint("h", i), Labels: labels.Set{"size": sizes.Draw(rt, "size")}, Free: rapid.Bool().Draw(rt, "free")})
		}
		bound := Bind(claims, hosts)
		taken := slices.Sorted(maps.Values(bound))
		if len(slices.Compact(slices.Clone(taken))) != len(taken) {
			rt.Fatalf("a host was given twice: %v", bound)
		}
		for _, c := range claims {
			host, ok := bound[c.Machine]
			for _, h := range hosts {
				if ok && h.Name == host && (!h.Free || !c.Selector.Matches(h.Labels)) {
					rt.Fatalf("machine %s got host %s, which it may not have", c.Machine, host)
				}
				if !ok && h.Free && !slices.Contains(taken, h.Name) && c.Selector.Matches(h.Labels) {
					rt.Fatalf("machine %s got none although %s is left", c.Machine, h.Name)
				}
			}
		}
		shuffle := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1000).Draw(rt, "order"))))
		shuffle.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		shuffle.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		if again := Bind(claims, hosts); !maps.Equal(again, bound) {
			rt.Fatalf("in another order it is %v, and was %v", again, bound)
		}
	})
}
