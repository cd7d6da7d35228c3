package auditlogs

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	"hcp.internal/platform/internal/contract/auditlogs"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	set  = metav1.OwnerReference{Kind: "ReplicaSet", Name: "kube-apiserver-1", UID: "set"}
)

func TestSettingsOf(t *testing.T) {
	t.Run("When nothing is said it should have the published defaults", func(t *testing.T) {
		g := NewWithT(t)
		s, snapshots, err := SettingsOf(&auditlogv1alpha1.AuditLogPersistenceConfigSpec{Snapshots: auditlogv1alpha1.SnapshotConfig{Enabled: true}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s).To(Equal(auditlogs.Settings{Size: "5Gi", MaxSize: 200, MaxBackup: 10}))
		g.Expect(snapshots).To(Equal(&Snapshots{Interval: time.Hour, PerPod: 10, PerControlPlane: 50}))
	})
	for name, tc := range map[string]struct {
		change func(*auditlogv1alpha1.AuditLogPersistenceConfigSpec)
		says   string
	}{
		"When the volume is too small for its files it should say what they need": {func(s *auditlogv1alpha1.AuditLogPersistenceConfigSpec) {
			s.Storage.Size = ptr.To(resource.MustParse("1Gi"))
		}, "spec.storage.size is 1Gi, and 11 files"},
		"When the size is nothing it should be refused": {func(s *auditlogv1alpha1.AuditLogPersistenceConfigSpec) {
			s.Storage.Size = ptr.To(resource.MustParse("0"))
		}, "spec.storage.size is 0"},
		"When the interval is longer than time it should be refused": {func(s *auditlogv1alpha1.AuditLogPersistenceConfigSpec) {
			s.Snapshots.Enabled, s.Snapshots.MinInterval = true, "99999999999h"
		}, "spec.snapshots.minInterval"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &auditlogv1alpha1.AuditLogPersistenceConfigSpec{}
			tc.change(spec)
			_, _, err := SettingsOf(spec)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

func TestWanted(t *testing.T) {
	config := func(enabled bool, status metav1.ConditionStatus, seen int64) *auditlogv1alpha1.AuditLogPersistenceConfig {
		c := &auditlogv1alpha1.AuditLogPersistenceConfig{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		c.Spec.Enabled = enabled
		c.Status.Conditions = []metav1.Condition{{Type: auditlogv1alpha1.ConfigValid, Status: status, ObservedGeneration: seen}}
		return c
	}
	applied := auditlogs.Settings{Size: "5Gi", MaxSize: 200, MaxBackup: 10}.Encode()
	for name, tc := range map[string]struct {
		config *auditlogv1alpha1.AuditLogPersistenceConfig
		want   string
	}{
		"When there is none logs should go with their Pods":                      {nil, ""},
		"When it is off logs should go with their Pods":                          {config(false, metav1.ConditionTrue, 2), ""},
		"When it can be carried out it should be":                                {config(true, metav1.ConditionTrue, 2), applied},
		"When it can't be carried out control planes should keep what they have": {config(true, metav1.ConditionFalse, 2), "live"},
		"When nobody has looked at it control planes should keep what they have": {config(true, metav1.ConditionTrue, 1), "live"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(Wanted(tc.config, "live")).To(Equal(tc.want)) })
	}
}

func TestDecide(t *testing.T) {
	pod := Pod{Name: "kas-a", Owner: &set}
	restarted := pod
	restarted.Restarts = 2
	claim := Claim{Name: "kas-a-logs", Bound: true, Created: noon}
	kept := claim
	kept.Owners = []metav1.OwnerReference{{UID: "pod"}, set}
	rules := &Snapshots{Interval: time.Hour, PerPod: 2, PerControlPlane: 3}
	for name, tc := range map[string]struct {
		w    World
		want Plan
	}{
		"When a claim has only its Pod it should get the ReplicaSet, too": {World{Pods: []Pod{pod}, Claims: []Claim{claim}}, Plan{Keep: map[string]metav1.OwnerReference{"kas-a-logs": set}}},
		"When it has both nothing should be done":                         {World{Pods: []Pod{pod}, Claims: []Claim{kept}}, Plan{}},
		"When a server restarted a snapshot should be taken":              {World{Pods: []Pod{restarted}, Claims: []Claim{kept}, Settings: rules}, Plan{Take: []Shot{{Name: "kas-a-logs-snapshot-2", Claim: "kas-a-logs", Pod: "kas-a", Restarts: 2}}}},
		"When snapshots are off none should be taken":                     {World{Pods: []Pod{restarted}, Claims: []Claim{kept}}, Plan{}},
		"When the last one was just taken the next should wait for the interval": {World{Pods: []Pod{func() Pod { p := restarted; p.Seen, p.Last = 1, noon.Add(-40*time.Minute); return p }()}, Claims: []Claim{kept}, Settings: rules},
			Plan{Again: 20 * time.Minute}},
		"When the claim has no volume yet there should be nothing to save": {World{Pods: []Pod{restarted}, Claims: []Claim{func() Claim { c := kept; c.Bound = false; return c }()}, Settings: rules}, Plan{}},
		"When a Pod is gone its claim should stay":                         {World{Claims: []Claim{kept}}, Plan{}},
		"When one Pod has too many snapshots its oldest should go": {World{Settings: rules, Snapshots: []Snapshot{
			{Name: "1", Pod: "a", Created: noon}, {Name: "2", Pod: "a", Created: noon.Add(1)}, {Name: "3", Pod: "a", Created: noon.Add(2)}}}, Plan{Prune: []string{"1"}}},
		"When all have too many the oldest should go": {World{Settings: rules, Snapshots: []Snapshot{
			{Name: "1", Pod: "a", Created: noon}, {Name: "2", Pod: "a", Created: noon.Add(1)}, {Name: "3", Pod: "b", Created: noon.Add(2)}, {Name: "4", Pod: "b", Created: noon.Add(3)}}}, Plan{Prune: []string{"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.w.Now = noon
			if tc.want.Keep == nil {
				tc.want.Keep = map[string]metav1.OwnerReference{}
			}
			NewWithT(t).Expect(Decide(tc.w)).To(Equal(tc.want))
		})
	}
	t.Run("When Pods come and go for long the newest claims should stay, and never more than ten without a Pod", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w, alive := World{Now: noon}, 0
			for i := range rapid.IntRange(0, 40).Draw(t, "claims") {
				w.Claims = append(w.Claims, Claim{Name: auditlogs.Claim(fmt.Sprint(i)), Created: noon.Add(time.Duration(i) * time.Minute)})
				if rapid.Bool().Draw(t, "alive") {
					w.Pods = append(w.Pods, Pod{Name: fmt.Sprint(i)})
					alive++
				}
			}
			p := Decide(w)
			if left := len(w.Claims) - alive - len(p.Drop); left > maxAbandoned {
				t.Fatalf("%d claims without Pods stay", left)
			}
			dropped := map[string]bool{}
			for _, name := range p.Drop {
				dropped[name] = true
			}
			for _, pod := range w.Pods {
				if dropped[auditlogs.Claim(pod.Name)] {
					t.Fatalf("the claim of Pod %s goes", pod.Name)
				}
			}
			gone := false
			for i := len(w.Claims) - 1; i >= 0; i-- {
				name := w.Claims[i].Name
				living := false
				for _, pod := range w.Pods {
					living = living || auditlogs.Claim(pod.Name) == name
				}
				if living {
					continue
				}
				if gone && !dropped[name] {
					t.Fatalf("claim %s stays, and a newer one goes", name)
				}
				gone = gone || dropped[name]
			}
		})
	})
}
