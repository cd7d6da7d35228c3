package etcdbackup

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/schedule"
	"hcp.internal/platform/internal/kube/conditions"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// daily is a schedule that was made at noon.
func daily() *hyperv1.HCPEtcdBackup {
	b := newBackup("daily")
	b.CreationTimestamp = metav1.NewTime(noon)
	b.Annotations = map[string]string{backups.ScheduleAnnotation: "@daily", backups.KeepAnnotation: "3"}
	return b
}

// madeAt is a backup of it.
func madeAt(at time.Time, c metav1.Condition) hyperv1.HCPEtcdBackup {
	b := *newBackup(childName("daily", at), c)
	b.Labels = map[string]string{backups.ScheduleLabel: "daily"}
	b.CreationTimestamp = metav1.NewTime(at)
	return b
}

func TestSchedule(t *testing.T) {
	good := reason("True", hyperv1.BackupSucceededReason)
	bad := reason("False", hyperv1.BackupFailedReason)
	runs := reason("False", hyperv1.BackupInProgressReason)
	midnight := noon.Add(12 * time.Hour)
	for name, tc := range map[string]struct {
		change   func(*hyperv1.HCPEtcdBackup)
		siblings []hyperv1.HCPEtcdBackup
		now      time.Time
		create   string
		due      time.Time
		again    time.Duration
	}{
		"When it is not time it should wait until then":         {now: noon.Add(time.Hour), due: midnight, again: 11 * time.Hour},
		"When it is time it should make one":                    {now: midnight, create: "daily-260302-0000", due: midnight, again: 24 * time.Hour},
		"When nobody was there for days it should make one":     {now: midnight.Add(50 * time.Hour), create: "daily-260304-0000", due: midnight, again: 22 * time.Hour},
		"When one runs it should wait for it":                   {siblings: []hyperv1.HCPEtcdBackup{madeAt(midnight, runs)}, now: midnight.Add(24 * time.Hour), due: midnight, again: poll},
		"When one succeeded the next should be due":             {siblings: []hyperv1.HCPEtcdBackup{madeAt(midnight, good)}, now: midnight.Add(time.Hour), due: midnight.Add(24 * time.Hour), again: 23 * time.Hour},
		"When one failed it should stay due, and be tried then": {siblings: []hyperv1.HCPEtcdBackup{madeAt(midnight, bad)}, now: midnight.Add(time.Hour), due: midnight, again: 23 * time.Hour},
		"When others have backups it should not be concerned":   {siblings: []hyperv1.HCPEtcdBackup{*newBackup("by-hand", good)}, now: noon.Add(time.Hour), due: midnight, again: 11 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := daily()
			if tc.change != nil {
				tc.change(b)
			}
			p := planSchedule(b, tc.siblings, tc.now)
			g.Expect(p.create).To(Equal(tc.create))
			g.Expect(p.due).To(Equal(tc.due))
			g.Expect(p.again).To(Equal(tc.again))
			g.Expect(p.condition.Status).To(Equal(metav1.ConditionTrue))
		})
	}
	t.Run("When backups fail again and again the oldest of them should go", func(t *testing.T) {
		var siblings []hyperv1.HCPEtcdBackup
		for i := range 5 {
			siblings = append(siblings, madeAt(midnight.Add(time.Duration(i)*24*time.Hour), bad))
		}
		p := planSchedule(daily(), siblings, midnight.Add(97*time.Hour))
		g := NewWithT(t)
		g.Expect(p.expired).To(HaveLen(2))
		g.Expect(p.expired[1].Name).To(Equal("daily-260302-0000"))
	})
	t.Run("When it is to be verified the newest one should be asked for, once", func(t *testing.T) {
		g := NewWithT(t)
		b := daily()
		b.Annotations[backups.VerifyScheduleAnnotation] = "0 6 * * *"
		siblings := []hyperv1.HCPEtcdBackup{madeAt(midnight, good), madeAt(midnight.Add(24*time.Hour), good)}
		now := midnight.Add(31 * time.Hour)
		p := planSchedule(b, siblings, now)
		g.Expect(p.verify).NotTo(BeNil())
		g.Expect(p.verify.Name).To(Equal("daily-260303-0000"))
		b.Annotations[backups.VerifiedAtAnnotation] = now.Format(time.RFC3339)
		g.Expect(planSchedule(b, siblings, now).verify).To(BeNil())
	})
	for text, annotations := range map[string]map[string]string{
		"five fields":              {backups.ScheduleAnnotation: "daily"},
		"every 1m0s":               {backups.ScheduleAnnotation: "* * * * *"},
		"never occurs":             {backups.ScheduleAnnotation: "0 0 31 2 *"},
		"not a number from 1":      {backups.ScheduleAnnotation: "@daily", backups.KeepAnnotation: "0"},
		"backup-verify-schedule: ": {backups.ScheduleAnnotation: "@daily", backups.VerifyScheduleAnnotation: "x"},
		"in UTC":                   {backups.ScheduleAnnotation: "TZ=Europe/Berlin 0 0 * * *"},
	} {
		t.Run("When an annotation can't be read it should say: "+text, func(t *testing.T) {
			_, err := schedule.Parse(annotations)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(text)))
		})
	}
	t.Run("When the name is longer than a label may be it should say so and make none", func(t *testing.T) {
		g, b := NewWithT(t), daily()
		b.Name = strings.Repeat("a", 64)
		p := planSchedule(b, nil, midnight)
		g.Expect(p.create).To(BeEmpty())
		g.Expect(p.condition).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", hyperv1.InvalidScheduleReason), HaveField("Message", ContainSubstring("create it under a shorter name"))))
	})
	t.Run("When names are long they should fit", func(t *testing.T) {
		NewWithT(t).Expect(len(childName(strings.Repeat("a", 253), noon))).To(BeNumerically("<=", 63))
	})
	t.Run("When names need not be cut they should be kept", func(t *testing.T) {
		name := strings.Repeat("a", 49)
		NewWithT(t).Expect(childName(name, noon)).To(Equal(name + "-260301-1200"))
	})
	t.Run("When long names begin alike each schedule should have names of its own", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := NewWithT(t)
			begin := strings.Repeat("a", rapid.IntRange(30, 55).Draw(t, "alike"))
			ends := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]{1,8}`), 2, 2, rapid.ID[string]).Draw(t, "ends")
			one, other := childName(begin+"-"+ends[0], noon), childName(begin+"-"+ends[1], noon)
			g.Expect(one).NotTo(Equal(other))
			for _, name := range []string{one, other} {
				g.Expect(validation.IsDNS1123Subdomain(name)).To(BeEmpty())
				g.Expect(len(name)).To(BeNumerically("<=", 63))
			}
		})
	})
}

// TestScheduleMemory: the backups of a schedule are all that it knows of its past, and retention deletes backups.
func TestScheduleMemory(t *testing.T) {
	good, bad := reason("True", hyperv1.BackupSucceededReason), reason("False", hyperv1.BackupFailedReason)
	of := func(schedule string, at time.Time, c metav1.Condition) hyperv1.HCPEtcdBackup {
		b := madeAt(at, c)
		b.Name, b.Labels[backups.ScheduleLabel] = childName(schedule, at), schedule
		return b
	}
	t.Run("When one schedule has many backups another that seldom has one should not have it again", func(t *testing.T) {
		g := NewWithT(t)
		var all []hyperv1.HCPEtcdBackup
		made := map[string]int{}
		for now := noon; now.Before(noon.Add(3 * 7 * 24 * time.Hour)); now = now.Add(time.Hour) {
			for _, cron := range []string{"@hourly", "@weekly"} {
				s := newBackup(cron[1:])
				s.CreationTimestamp, s.Annotations = metav1.NewTime(noon), map[string]string{backups.ScheduleAnnotation: cron}
				p := planSchedule(s, all, now)
				if p.create == "" {
					continue
				}
				made[s.Name]++
				o := ready()
				b := of(s.Name, now, good)
				o.backup, o.siblings = &b, all
				gone := planFor(o).expired
				all = slices.DeleteFunc(append(all, b), func(b hyperv1.HCPEtcdBackup) bool {
					return slices.ContainsFunc(gone, func(g hyperv1.HCPEtcdBackup) bool { return g.Name == b.Name })
				})
			}
		}
		g.Expect(made).To(Equal(map[string]int{"hourly": 3*7*24 - 1, "weekly": 3}))
		g.Expect(all).To(HaveLen(ready().keep+2), "besides those that are kept the newest of each schedule should stay")
	})
	t.Run("When there are more than are kept the newest successful one of each schedule should stay, and not count", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := NewWithT(t)
			o := ready()
			o.keep = rapid.IntRange(1, 3).Draw(t, "keep")
			newest := map[string]hyperv1.HCPEtcdBackup{}
			count := 0
			for i := range rapid.IntRange(1, 12).Draw(t, "backups") {
				schedule := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "schedule")
				c := rapid.SampledFrom([]metav1.Condition{good, bad}).Draw(t, "condition")
				b := of(schedule, noon.Add(time.Duration(i)*time.Minute), c)
				o.siblings = append(o.siblings, b)
				if c.Status == metav1.ConditionTrue {
					count++
					newest[schedule] = b
				}
			}
			delete(newest, "")
			last := len(o.siblings) - 1
			o.backup, o.siblings = &o.siblings[last], o.siblings[:last]
			gone := planFor(o).expired
			g.Expect(gone).To(HaveLen(max(0, count-len(newest)-o.keep)))
			for _, b := range gone {
				g.Expect(completed(&b).Status).To(Equal(metav1.ConditionTrue))
				for schedule, n := range newest {
					g.Expect(b.Name).NotTo(Equal(n.Name), "the newest of schedule "+schedule)
				}
			}
		})
	})
}

// TestSchedulesTogether: two schedules may want a backup in the same minute.
func TestSchedulesTogether(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	var made []*hyperv1.HCPEtcdBackup
	for _, name := range []string{"daily", "weekly"} {
		schedule := newBackup(name)
		schedule.Namespace, schedule.UID = s.ns, ""
		b := child(schedule, childName(name, noon))
		g.Expect(s.c.Create(t.Context(), b)).To(Succeed())
		s.pass(b)
		made = append(made, b)
	}
	g.Expect(completed(made[0]).Reason).To(Equal(hyperv1.BackupInProgressReason))
	g.Expect(completed(made[1]).Reason).To(Equal(BackupWaitingReason), "When two schedules want a backup in the same minute the second should wait")
	g.Expect(s.jobs()).To(HaveLen(1))
	s.end(batchv1.JobComplete, "s3://backups/demo/1.db")
	s.pass(made[0])
	s.pass(made[1])
	g.Expect(completed(made[1]).Reason).To(Equal(hyperv1.BackupInProgressReason), "When the first has ended the second should start by itself")
	g.Expect(s.jobs()).To(HaveLen(2))
}

func TestScheduleNameTaken(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	told := events.NewFakeRecorder(10)
	s.r.Events = told
	schedule := newBackup("daily")
	schedule.Namespace, schedule.UID = s.ns, ""
	schedule.Annotations = map[string]string{backups.ScheduleAnnotation: "@daily"}
	g.Expect(s.c.Create(t.Context(), schedule)).To(Succeed())
	now := time.Now().UTC().Truncate(24 * time.Hour).Add(49 * time.Hour)
	s.r.Clock = testclock.NewFakePassiveClock(now)
	name := childName("daily", now.Truncate(24*time.Hour))
	theirs := s.create(name)
	result := s.pass(schedule)
	g.Expect(conditions.Get(schedule.Status.Conditions, hyperv1.EtcdBackupScheduled)).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", BackupNameTakenReason), HaveField("Message", ContainSubstring(name))),
		"When somebody else's backup has the name it should say so")
	g.Expect(result.RequeueAfter).To(Equal(takenAgain))
	g.Expect(told.Events).To(Receive(HavePrefix("Warning " + BackupNameTakenReason)))
	g.Expect(s.c.Delete(t.Context(), theirs)).To(Succeed())
	for range 2 {
		s.pass(schedule)
		g.Expect(conditions.IsTrue(schedule.Status.Conditions, hyperv1.EtcdBackupScheduled)).To(BeTrue(), "When the name is free it should make its own")
	}
	made := &hyperv1.HCPEtcdBackup{}
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, made)).To(Succeed())
	g.Expect(made.Labels).To(HaveKeyWithValue(backups.ScheduleLabel, "daily"))
	taken, err := s.r.makeChild(t.Context(), schedule, name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(taken).To(BeEmpty(), "When its own has the name, made by another operator, there should be nothing to say")
}

func TestScheduleLife(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	b := newBackup("daily")
	b.Namespace, b.UID = s.ns, ""
	b.Annotations = map[string]string{backups.ScheduleAnnotation: "@daily"}
	g.Expect(s.c.Create(t.Context(), b)).To(Succeed())
	s.pass(b)
	g.Expect(conditions.IsTrue(b.Status.Conditions, hyperv1.EtcdBackupScheduled)).To(BeTrue())
	g.Expect(s.jobs()).To(BeEmpty(), "When it is a schedule it should not be carried out itself")
	s.r.Clock = testclock.NewFakePassiveClock(time.Now().Add(25 * time.Hour))
	s.pass(b)
	s.pass(b)
	all := &hyperv1.HCPEtcdBackupList{}
	g.Expect(s.c.List(t.Context(), all)).To(Succeed())
	var made []hyperv1.HCPEtcdBackup
	for _, c := range all.Items {
		if c.Namespace == s.ns && c.Labels[backups.ScheduleLabel] == "daily" {
			made = append(made, c)
		}
	}
	g.Expect(made).To(HaveLen(1), "When it is time it should make one, however often it is looked at")
	s.pass(&made[0])
	g.Expect(s.jobs()).To(HaveLen(1))
}
