package run

import (
	"testing"

	. "github.com/onsi/gomega"
)

const text = `apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {include.release.openshift.io/ibm-cloud-managed: "true"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other-profile, annotations: {include.release.openshift.io/single-node: "true"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: console, annotations: {include.release.openshift.io/ibm-cloud-managed: "true", capability.openshift.io/name: Console+Ingress}}
---
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: network, annotations: {include.release.openshift.io/ibm-cloud-managed: "true"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: old, annotations: {include.release.openshift.io/ibm-cloud-managed: "true", release.openshift.io/delete: "true"}}
`

func names(manifests []manifest) []string {
	var out []string
	for _, m := range manifests {
		out = append(out, m.string("metadata", "name"))
	}
	return out
}

func TestPlanManifests(t *testing.T) {
	all, err := parseManifests("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		enabled []string
		apply   []string
	}{
		{nil, []string{"a", "network"}},
		{[]string{"Console"}, []string{"a", "network"}},
		{[]string{"Console", "Ingress"}, []string{"a", "console", "network"}},
	} {
		t.Run("When capabilities are on it should apply what needs them, and nothing of other profiles", func(t *testing.T) {
			g := NewWithT(t)
			p := planManifests(all, "ibm-cloud-managed", tt.enabled)
			g.Expect(names(p.apply)).To(Equal(tt.apply))
			g.Expect(names(p.remove)).To(Equal([]string{"old"}))
			g.Expect(p.known).To(Equal([]string{"Console", "Ingress"}))
			g.Expect(operators(p.apply)).To(Equal([]string{"network"}))
		})
	}
}

func TestNextStatus(t *testing.T) {
	g := NewWithT(t)
	states := func(s versionStatus) (out []string) {
		for _, h := range s.History {
			out = append(out, h.Version+" "+h.State)
		}
		return out
	}
	first, second := release{"4.22.0", "r@sha256:1"}, release{"4.22.1", "r@sha256:2"}
	s := nextStatus(versionStatus{}, first, "waiting on network", "t1")
	g.Expect(states(s)).To(Equal([]string{"4.22.0 Partial"}), "When operators are late the version should be partial")
	again := nextStatus(s, first, "waiting on network", "t2")
	g.Expect(again).To(Equal(s), "When nothing changed nothing should be written")
	s = nextStatus(s, first, "", "t3")
	g.Expect(states(s)).To(Equal([]string{"4.22.0 Completed"}))
	g.Expect(nextStatus(s, first, "", "t4")).To(Equal(s))
	s = nextStatus(s, second, "waiting on dns", "t5")
	g.Expect(states(s)).To(Equal([]string{"4.22.1 Partial", "4.22.0 Completed"}))
	g.Expect(s.Conditions).To(ContainElement(And(HaveField("Type", "Available"), HaveField("Status", "True"))), "When an upgrade is under way the cluster should stay available")
	g.Expect(s.Conditions).To(ContainElement(And(HaveField("Type", "Progressing"), HaveField("Status", "True"), HaveField("Message", ContainSubstring("dns")))))
	s = nextStatus(s, second, "", "t6")
	g.Expect(states(s)).To(Equal([]string{"4.22.1 Completed", "4.22.0 Completed"}))
}

func TestAvailable(t *testing.T) {
	g := NewWithT(t)
	s := operatorStatus{Versions: []operatorVersion{{"operator", "1"}}, Conditions: []condition{{Type: "Available", Status: "True"}}}
	g.Expect(s.available("1")).To(BeTrue())
	g.Expect(s.available("2")).To(BeFalse(), "When an operator reports another version it should not count")
	s.Conditions[0].Status = "False"
	g.Expect(s.available("1")).To(BeFalse())
}
