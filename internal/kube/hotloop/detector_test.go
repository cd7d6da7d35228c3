package hotloop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// told collects events.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (r *told) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref := regarding.(*corev1.ObjectReference)
	r.lines = append(r.lines, ref.Kind+" "+ref.Name+" "+reason+": "+fmt.Sprintf(note, args...))
}

func (r *told) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.lines...)
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// configMap is a state of an object as two managers leave it.
func configMap(uid string, version int, value, manager string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid), ResourceVersion: fmt.Sprint(version),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`)}}},
		Data: map[string]string{"key": value},
	}
}

func TestDetector(t *testing.T) {
	clk := testclock.NewFakePassiveClock(noon)
	fight := func(d *Detector, uid string, writes int, every time.Duration) {
		for i := range writes {
			side := []string{"here", "there"}[i%2]
			d.see(configMap(uid, i+1, side, side))
			clk.SetTime(clk.Now().Add(every))
		}
	}
	t.Run("When two write opposite values it should be told once, and its end once", func(t *testing.T) {
		g := NewWithT(t)
		d, events := New(scheme(t), clk), &told{}
		r := Reporter{Events: events, Log: logr.Discard(), Owner: func(context.Context, client.Object) *corev1.ObjectReference {
			return &corev1.ObjectReference{Kind: "HostedCluster", Name: "demo"}
		}}
		turn := func() {
			begun, ended, _ := d.turn()
			for _, e := range begun {
				r.begins(t.Context(), e)
			}
			for _, e := range ended {
				r.ends(t.Context(), e)
			}
		}
		for range 5 {
			fight(d, "a", 30, 100*time.Millisecond)
			turn()
		}
		g.Expect(events.all()).To(HaveExactElements(
			MatchRegexp(`^ConfigMap a HotLoop: Written [0-9]+ times within 5 minutes by here, there; these fields go back and forth: data.key$`),
			MatchRegexp(`^HostedCluster demo HotLoop: ConfigMap ns/a: Written`)))
		g.Expect(testutil.CollectAndCompare(d, strings.NewReader(`
# HELP hypershift_object_hot_loops Objects that are written again and again at present, by kind, loop (Fight: fields go back and forth; Storm: the same is written) and the managers of the fields.
# TYPE hypershift_object_hot_loops gauge
hypershift_object_hot_loops{kind="ConfigMap",loop="Fight",managers="here,there"} 1
`))).To(Succeed())
		g.Expect(d.suspects).To(BeEmpty(), "When it was told nothing of its content should be kept")
		clk.SetTime(clk.Now().Add(Window + time.Second))
		turn()
		turn()
		g.Expect(events.all()).To(HaveLen(4))
		g.Expect(events.all()[2]).To(HavePrefix("ConfigMap a HotLoopEnded: No longer written again and again, after 5m"))
		g.Expect(testutil.ToFloat64(d)).To(BeZero(), "When it is over the series should say so")
	})
	t.Run("When objects come up and are shown again it should find nothing", func(t *testing.T) {
		g := NewWithT(t)
		d := New(scheme(t), clk)
		for version := range 40 { // each value is a new one
			for range 3 { // a list and two watches
				d.see(configMap("a", version+1, fmt.Sprint(version), "kubelet"))
			}
			clk.SetTime(clk.Now().Add(time.Second))
		}
		_, _, left := d.turn()
		g.Expect(left).To(BeFalse())
	})
	t.Run("When a fight is slow it should be found as long as there are some rounds a minute", func(t *testing.T) {
		g := NewWithT(t)
		d := New(scheme(t), clk)
		fight(d, "a", 40, 8*time.Second)
		_, _, left := d.turn()
		g.Expect(left).To(BeTrue())
		d = New(scheme(t), clk)
		fight(d, "a", 40, time.Minute)
		_, _, left = d.turn()
		g.Expect(left).To(BeFalse(), "twice a minute is what somebody may do by hand")
	})
	t.Run("When very many objects are seen it should remember a bounded number", func(t *testing.T) {
		g := NewWithT(t)
		d := New(scheme(t), clk)
		for i := range 3 * maxTracked {
			d.see(configMap(fmt.Sprint(i), 1, "x", "m"))
		}
		for i := range 2 * maxSuspects {
			fight(d, fmt.Sprintf("suspect-%d", i), suspicious+2, 0)
		}
		g.Expect(d.tracks.Len()).To(Equal(maxTracked))
		g.Expect(len(d.suspects)).To(BeNumerically("<=", maxSuspects))
		for i := range maxTracked {
			d.see(configMap(fmt.Sprintf("new-%d", i), 1, "x", "m"))
		}
		g.Expect(d.suspects).To(BeEmpty(), "what is forgotten leaves nothing behind")
	})
	t.Run("When managers call themselves ever anew the metric should stay small", func(t *testing.T) {
		g := NewWithT(t)
		d := New(scheme(t), clk)
		for i := range 3 * maxSeries {
			uid := fmt.Sprintf("tenant-%d", i)
			for n := range 60 {
				side := []string{"here", "there"}[n%2]
				d.see(configMap(uid, n+1, side, side+uid))
				clk.SetTime(clk.Now().Add(100 * time.Millisecond))
			}
		}
		g.Expect(testutil.CollectAndCount(d)).To(BeNumerically("<=", maxSeries+1))
	})
	t.Run("When a cache drops managed fields the detector should have seen them, and nothing else change", func(t *testing.T) {
		g := NewWithT(t)
		d := New(scheme(t), clk)
		kept := func(any) (any, error) { return "kept", nil }
		o := d.Watch(cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: kept}, &corev1.Pod{}: {}}})
		for i := range 40 {
			side := []string{"here", "there"}[i%2]
			out, err := o.DefaultTransform(configMap("a", i+1, side, side))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.(client.Object).GetManagedFields()).To(BeNil())
			clk.SetTime(clk.Now().Add(100 * time.Millisecond))
		}
		begun, _, _ := d.turn()
		g.Expect(begun).To(HaveLen(1))
		g.Expect(begun[0].found.Writers).To(Equal([]string{"here", "there"}))
		for obj, by := range o.ByObject {
			if _, isNode := obj.(*corev1.Node); isNode {
				g.Expect(by.Transform(&corev1.Node{})).To(Equal("kept"))
			} else {
				g.Expect(by.Transform).To(BeNil())
			}
		}
	})
	t.Run("When only metadata is known managers that take a field from each other should be found", func(t *testing.T) {
		g := NewWithT(t)
		d := New(scheme(t), clk)
		for i := range 40 {
			side := []string{"here", "there"}[i%2]
			o := &metav1.PartialObjectMetadata{ObjectMeta: configMap("a", i+1, side, side).ObjectMeta}
			o.Generation = int64(i)
			d.see(o)
			clk.SetTime(clk.Now().Add(100 * time.Millisecond))
		}
		begun, _, _ := d.turn()
		g.Expect(begun).To(HaveLen(1))
		g.Expect(begun[0].found).To(Equal(verdict{Loop: Fight, Paths: []string{"data.key"}, Writers: []string{"here", "there"}}))
	})
	t.Run("When nothing is in a loop reporting should do nothing until it is told to stop", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		NewWithT(t).Expect(New(scheme(t), clk).Report(ctx, Reporter{})).To(Succeed())
	})
}
