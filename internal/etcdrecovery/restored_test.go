package etcdrecovery

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/testenv"
)

func TestNoteForOthers(t *testing.T) {
	g := NewWithT(t)
	text, err := json.Marshal(note{From: "etcd-1", Snapshot: "s3://b/1.db.enc", Alone: true})
	g.Expect(err).NotTo(HaveOccurred())
	read := backups.Recovery{}
	g.Expect(json.Unmarshal(text, &read)).To(Succeed())
	g.Expect(read).To(Equal(backups.Recovery{From: "etcd-1", Snapshot: "s3://b/1.db.enc"}), "When others read the note they should find what it is about")
}

// main reads the StatefulSet of the main etcd.
func (s *stage) main() *appsv1.StatefulSet {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	NewWithT(s.t).Expect(s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: "etcd"}, set)).To(Succeed())
	return set
}

func TestRestoredAlready(t *testing.T) {
	t.Run("When the command is run again after the data came nothing should be restored, until it has ended", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 3)
		q := s.quorum(s.c, io.Discard)
		g.Expect(q.Run(t.Context())).To(Succeed())
		g.Eventually(s.served.Load, time.Minute).Should(BeTrue())
		g.Expect(RestoredAt(s.main(), q.Snapshot.URL)).NotTo(BeEmpty())
		before := s.main()
		out := &log{}
		testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error { return s.quorum(c, out).Run(t.Context()) })
		g.Expect(out.String()).To(ContainSubstring("it is not restored again"))
		g.Expect(s.main().Generation).To(Equal(before.Generation))
		s.expect(t, "snapshot", "", "")

		g.Expect(q.Forget(t.Context())).To(Succeed())
		g.Expect(s.main().Annotations).NotTo(HaveKey(restoredAnnotation))
		s.served.Store(false) // from here on it is meant to be
		g.Expect(q.Run(t.Context())).To(Succeed())
		g.Expect(s.main().Generation).To(BeNumerically(">", before.Generation), "When it has ended somebody may want the backup's data again")
	})
	t.Run("When another backup is restored before the command has ended it should replace the note, but not if it can't be restored", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 1)
		first, second := s.quorum(s.c, io.Discard), s.quorum(s.c, io.Discard)
		second.Snapshot.URL = "s3://b/2.db.enc"
		g.Expect(first.Run(t.Context())).To(Succeed())
		s.broken.Store(true)
		g.Expect(second.Run(t.Context())).To(MatchError(ErrNotRestored))
		g.Expect(RestoredAt(s.main(), first.Snapshot.URL)).NotTo(BeEmpty(), "its data goes on")
		s.broken.Store(false)
		s.served.Store(false)
		g.Expect(second.Run(t.Context())).To(Succeed())
		g.Expect(RestoredAt(s.main(), first.Snapshot.URL)).To(BeEmpty())
		g.Expect(RestoredAt(s.main(), second.Snapshot.URL)).NotTo(BeEmpty())
		g.Expect(first.Forget(t.Context())).To(Succeed())
		g.Expect(RestoredAt(s.main(), second.Snapshot.URL)).NotTo(BeEmpty(), "the end of one command should leave the note of another")
	})
	t.Run("When etcd is recovered before the command has ended its note should stay", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 3)
		g.Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(Succeed())
		q := s.quorum(s.c, io.Discard)
		url := q.Snapshot.URL
		q.Snapshot = nil
		g.Expect(q.Run(t.Context())).To(MatchError(ErrQuorum), "members are ready")
		s.note(`{"from":"etcd-0","replicas":3,"paused":true}`)
		g.Expect(q.Run(t.Context())).To(Succeed())
		g.Expect(s.main().Annotations).NotTo(HaveKey(noteAnnotation))
		g.Expect(RestoredAt(s.main(), url)).NotTo(BeEmpty())
	})
}

// note has a recovery be under way.
func (s *stage) note(text string) {
	s.t.Helper()
	g := NewWithT(s.t)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{noteAnnotation: text}}})
	g.Expect(err).NotTo(HaveOccurred())
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcd"}}
	g.Expect(s.c.Patch(s.t.Context(), set, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// holds has a volume have the data of the snapshot.
func (s *stage) holds(pod string) {
	s.t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: volume + "-" + pod}}
	NewWithT(s.t).Expect(s.c.Patch(s.t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+held+`":"snapshot"}}}`)))).To(Succeed())
}

// strict forgives until the first volume is dropped: from then on nothing may be mixed.
func (s *stage) strict() client.WithWatch {
	return interceptor.NewClient(s.c, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if _, is := o.(*corev1.PersistentVolumeClaim); is {
			s.forgiven.Store(false)
		}
		return c.Delete(ctx, o, opts...)
	}})
}

func TestStartedBeforeDropped(t *testing.T) {
	const begun = `"from":"etcd-0","snapshot":"s3://b/1.db.enc","apiServers":2,"paused":true,"alone":true`
	for name, old := range map[string]string{
		"When somebody ended the pause before volumes were dropped they should go, and members join anew": `{"replicas":3,` + begun + `}`,
		"When the run that stopped them again was killed it should go on":                                 `{"replicas":3,"again":["etcd"],` + begun + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStage(t, 3)
			s.forgiven.Store(true)
			s.holds("etcd-0")
			g.Eventually(s.served.Load, time.Minute).Should(BeTrue())
			s.note(old)
			alone := 0
			c := interceptor.NewClient(s.strict(), interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if o.GetName() == "etcd-alone" {
					alone++
				}
				return c.Create(ctx, o, opts...)
			}})
			g.Expect(s.quorum(c, io.Discard).Run(t.Context())).To(Succeed())
			g.Expect(alone).To(Equal(1), "the survivor may have taken in members whose volumes went: it forgets them")
			s.expect(t, "snapshot", "", "")
		})
	}
	t.Run("When shards were started with the data of before they should stop before it is replaced", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 1, "leases")
		s.forgiven.Store(true)
		s.holds("etcd-0")
		s.note(`{"replicas":1,"shards":{"leases":1},"bump":7,"prepared":true,` + begun + `}`)
		c := s.strictAfter("etcd-leases-alone")
		g.Expect(s.quorum(c, io.Discard).Run(t.Context())).To(Succeed())
		s.expect(t, "snapshot")
	})
	t.Run("When volumes were dropped members should run on", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 1)
		s.holds("etcd-0")
		g.Eventually(s.served.Load, time.Minute).Should(BeTrue())
		s.note(`{"replicas":1,"dropped":["etcd"],` + begun + `}`)
		pod := &corev1.Pod{}
		key := client.ObjectKey{Namespace: s.ns, Name: "etcd-0"}
		g.Eventually(func() error { return s.c.Get(t.Context(), key, pod) }, time.Minute).Should(Succeed())
		g.Expect(s.quorum(s.c, io.Discard).Run(t.Context())).To(Succeed())
		now := &corev1.Pod{}
		g.Expect(s.c.Get(t.Context(), key, now)).To(Succeed())
		g.Expect(now.UID).To(Equal(pod.UID))
		s.expect(t, "snapshot")
	})
	t.Run("When somebody ends the pause while the command runs it should say so, and the next run mend it", func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t, 3)
		started := false
		c := interceptor.NewClient(s.c, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if text, _ := p.Data(o); strings.Contains(string(text), `\"alone\":true`) && !started {
				started = true
				s.forgiven.Store(true)
				set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcd"}}
				return errors.Join(c.Patch(ctx, o, p, opts...), s.c.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))))
			}
			return c.Patch(ctx, o, p, opts...)
		}})
		err := s.quorum(c, io.Discard).Run(t.Context())
		g.Expect(err).To(MatchError(And(ContainSubstring("members of etcd were started meanwhile"), ContainSubstring("run the command again to continue"))))
		g.Expect(*s.main().Spec.Replicas).To(BeEquivalentTo(3))
		g.Expect(s.quorum(s.strict(), io.Discard).Run(t.Context())).To(Succeed())
		s.expect(t, "snapshot", "", "")
	})
}

// strictAfter forgives until a pod is made.
func (s *stage) strictAfter(pod string) client.WithWatch {
	return interceptor.NewClient(s.c, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() == pod {
			s.forgiven.Store(false)
			for _, app := range []string{"kube-apiserver", "etcd-leases"} {
				pods := &corev1.PodList{}
				if s.c.List(ctx, pods, client.InNamespace(s.ns), client.MatchingLabels{"app": app}) != nil || len(pods.Items) > 0 {
					s.wrong("%d pods of %s run beside %s", len(pods.Items), app, pod)
				}
			}
		}
		return c.Create(ctx, o, opts...)
	}})
}

// TestStartedBeforeDroppedCrashes is killed at each of its writes, after somebody has ended the pause of a run before.
func TestStartedBeforeDroppedCrashes(t *testing.T) {
	testenv.CrashAtEveryWrite(t, 4, func(t testing.TB) testenv.CrashCase {
		s := newStage(t, 3)
		s.forgiven.Store(true)
		s.holds("etcd-0")
		NewWithT(t).Eventually(s.served.Load, time.Minute).Should(BeTrue())
		s.note(`{"from":"etcd-0","replicas":3,"snapshot":"s3://b/1.db.enc","apiServers":2,"paused":true,"alone":true}`)
		return crashes(t, s, "snapshot", "", "")
	})
}
