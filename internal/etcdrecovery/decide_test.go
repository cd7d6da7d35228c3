package etcdrecovery

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func peer(pod string) string { return "https://" + pod + ".etcd-discovery.ns.svc:2380" }

// failed is a highly available etcd whose third member crashes.
func failed(mutate ...func(*Observed)) Observed {
	obs := Observed{Replicas: 3}
	for i := range 3 {
		pod := fmt.Sprintf("etcd-%d", i)
		obs.Pods = append(obs.Pods, Pod{Name: pod, Ready: true})
		obs.Members = append(obs.Members, Member{ID: uint64(i + 1), Name: pod, PeerURL: peer(pod), Healthy: true})
	}
	obs.Pods[2] = Pod{Name: "etcd-2", Restarts: 4, Down: true}
	obs.Members[2].Healthy = false
	for _, m := range mutate {
		m(&obs)
	}
	return obs
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		obs    Observed
		action Action
		remove uint64
		why    string
	}{
		"When one of three crashes again and again it should be replaced":                {obs: failed(), action: Replace, remove: 3, why: "etcd-2 fails, and all others are healthy"},
		"When its member was removed before a crash of ours it should still be replaced": {obs: failed(func(o *Observed) { o.Members = o.Members[:2] }), action: Replace},
		"When its member was added again but never started it should be removed by its address": {
			obs: failed(func(o *Observed) { o.Members[2].Name = "" }), action: Replace, remove: 3},
		"When it has just crashed for the first time it should get another chance": {obs: failed(func(o *Observed) { o.Pods[2].Restarts = 1 }), action: Wait, why: "started again 1 times"},
		"When it runs at the moment it should be left alone":                       {obs: failed(func(o *Observed) { o.Pods[2].Down = false }), action: Wait},
		"When it starts for the first time it should be left alone":                {obs: failed(func(o *Observed) { o.Pods[2].Restarts = 0 }), action: Wait},
		"When all are healthy it should be done": {
			obs: failed(func(o *Observed) {
				o.Pods[2], o.Members[2].Healthy = Pod{Name: "etcd-2", Ready: true, Restarts: 9}, true
			}), action: Done},
		"When two crash nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Pods[1] = Pod{Name: "etcd-1", Restarts: 5, Down: true} }), action: Refuse, why: "2 members fail: etcd-1, etcd-2"},
		"When another isn't ready nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Pods[0].Ready = false }), action: Refuse, why: "etcd-0 isn't ready either"},
		"When another takes no part in the quorum nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Members[0].Healthy = false }), action: Refuse, why: "member etcd-0 takes no part"},
		"When the members can't be read nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Members, o.ListErr = nil, errors.New("no leader") }), action: Refuse, why: "can't be read from a quorum: no leader"},
		"When the list is empty nothing should be deleted": {obs: failed(func(o *Observed) { o.Members = nil }), action: Refuse},
		"When a member is of no pod nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Members[1].Name = "stranger" }), action: Refuse, why: "member 2 (stranger) is of no pod here"},
		"When another pod is gone nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Pods = o.Pods[1:] }), action: Refuse, why: "member 1 (etcd-0) is of no pod here"},
		"When there is a single member nothing should be deleted": {obs: failed(func(o *Observed) { o.Replicas = 1 }), action: Refuse},
		"When one of two is left after a removal nothing should be deleted": {
			obs: failed(func(o *Observed) { o.Members = o.Members[:1] }), action: Refuse, why: "of 2 other members 1 are healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Decide(tc.obs)
			g.Expect(got.Action).To(Equal(tc.action), got.Why)
			g.Expect(got.Remove).To(Equal(tc.remove))
			g.Expect(got.Why).To(ContainSubstring(tc.why))
		})
	}
}

func TestDecideNeverRisksData(t *testing.T) {
	t.Run("Whatever is observed a member should be replaced only when a quorum of others is healthy", rapid.MakeCheck(func(t *rapid.T) {
		obs := Observed{Replicas: rapid.SampledFrom([]int{0, 1, 3, 5}).Draw(t, "replicas")}
		for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
			obs.Pods = append(obs.Pods, Pod{Name: fmt.Sprintf("etcd-%d", i), Ready: rapid.Bool().Draw(t, "ready"),
				Restarts: rapid.IntRange(0, 5).Draw(t, "restarts"), Down: rapid.Bool().Draw(t, "down")})
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "members") {
			pod := fmt.Sprintf("etcd-%d", i)
			obs.Members = append(obs.Members, Member{ID: uint64(i + 1), Name: rapid.SampledFrom([]string{pod, "", "x"}).Draw(t, "name"), PeerURL: peer(pod), Healthy: rapid.Bool().Draw(t, "healthy")})
		}
		if rapid.Bool().Draw(t, "unreadable") {
			obs.ListErr = errors.New("no leader")
		}
		d := Decide(obs)
		if d.Action != Replace {
			return
		}
		healthy, failing := 0, 0
		for _, m := range obs.Members {
			if m.Healthy && m.ID != d.Remove {
				healthy++
			}
		}
		for _, p := range obs.Pods {
			if !p.Ready {
				failing++
			}
		}
		if obs.ListErr != nil || failing != 1 || healthy < obs.Replicas-1 || healthy < len(obs.Members)/2+1 || obs.Replicas < 3 {
			t.Fatalf("%+v for %+v", d, obs)
		}
	}))
}
