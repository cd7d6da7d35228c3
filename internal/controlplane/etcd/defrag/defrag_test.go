package defrag

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func three(change func(m []member)) []member {
	m := []member{{url: "a", id: 1, leader: 2}, {url: "b", id: 2, leader: 2}, {url: "c", id: 3, leader: 2}}
	for i := range m {
		m[i].size, m[i].inUse, m[i].quota = 200<<20, 100<<20, 8<<30
	}
	if change != nil {
		change(m)
	}
	return m
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		members   []member
		unhealthy string
		order     string
	}{
		"When all are fragmented it should do the leader last":      {members: three(nil), order: "acb"},
		"When one is small it should leave it":                      {members: three(func(m []member) { m[0].size, m[0].inUse = 99<<20, 1 }), order: "cb"},
		"When one is not fragmented enough it should leave it":      {members: three(func(m []member) { m[1].inUse = 111 << 20 }), order: "ac"},
		"When one does not answer it should touch none":             {members: three(func(m []member) { m[2].unhealthy = "no answer" }), unhealthy: "c: no answer"},
		"When one knows no leader it should touch none":             {members: three(func(m []member) { m[0].leader = 0 }), unhealthy: "a knows no leader"},
		"When they do not agree on the leader it should touch none": {members: three(func(m []member) { m[1].leader = 3 }), unhealthy: "a and b know different leaders"},
		"When not all could be looked at it should touch none":      {members: three(nil)[:2], unhealthy: "2 of 3 members were looked at"},
		"When a file is near its quota it should be done earlier": {members: three(func(m []member) {
			m[0].size, m[0].inUse = 7<<30, 6<<30
			m[1].inUse, m[2].inUse = m[1].size, m[2].size
		}), order: "a"},
		"When a file is near its quota and all of it is in use it should leave it": {members: three(func(m []member) {
			m[0].size, m[0].inUse = 7<<30, 7<<30
		}), order: "cb"},
		"When a member says nothing of its size it should not divide by": {members: three(func(m []member) { m[0].size, m[0].inUse = 0, 0 }), order: "cb"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(unhealthy(tc.members, 3)).To(Equal(tc.unhealthy))
			if tc.unhealthy != "" {
				return
			}
			order := ""
			for _, m := range worthIt(tc.members) {
				order += m.url
			}
			g.Expect(order).To(Equal(tc.order))
		})
	}
	t.Run("When there is a single member it should be left alone until it is nearly full", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(worthIt(three(nil)[:1])).To(BeEmpty())
		g.Expect(worthIt([]member{{url: "a", size: 7 << 30, inUse: 1 << 30, quota: 8 << 30}})).To(HaveLen(1))
	})
	t.Run("When sizes are anything it should choose no member twice, and the leader last", rapid.MakeCheck(func(t *rapid.T) {
		members := three(func(m []member) {
			for i := range m {
				m[i].size = rapid.Int64Range(0, 1<<33).Draw(t, "size")
				m[i].quota = rapid.Int64Range(0, 1<<33).Draw(t, "quota")
				m[i].inUse = rapid.Int64Range(0, m[i].size).Draw(t, "in use")
			}
		})
		seen := map[string]bool{}
		chosen := worthIt(members)
		for i, m := range chosen {
			if seen[m.url] || m.isLeader() && i != len(chosen)-1 || m.size < minSize {
				t.Fatalf("%+v", chosen)
			}
			seen[m.url] = true
		}
	}))
}

func TestEtcds(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedControlPlane)
		want   []string // the first member of each
	}{
		"When there are three members it should look after them": {want: []string{"https://etcd-0.etcd-discovery.clusters-demo.svc:2379"}},
		"When there are shards it should look after them, too": {change: func(h *hyperv1.HostedControlPlane) {
			h.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica
			h.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Shards: []hyperv1.ManagedEtcdShard{{Name: "a", Replicas: 1}, {Name: "events", Replicas: 3}}}
		}, want: []string{
			"https://etcd-0.etcd-discovery.clusters-demo.svc:2379", "https://etcd-a-0.etcd-discovery-a.clusters-demo.svc:2379",
			"https://etcd-events-0.etcd-discovery-events.clusters-demo.svc:2379",
		}},
		"When etcd is somebody else's it should leave it alone": {change: func(h *hyperv1.HostedControlPlane) {
			h.Spec.Etcd.ManagementType = hyperv1.Unmanaged
		}},
		"When it is paused it should only look": {change: func(h *hyperv1.HostedControlPlane) { h.Spec.PausedUntil = ptr.To("true") }},
		"When it is paused until later it should only look": {change: func(h *hyperv1.HostedControlPlane) {
			h.Spec.PausedUntil = ptr.To("2026-01-02T12:00:01Z")
		}},
		"When the pause is over it should go on": {change: func(h *hyperv1.HostedControlPlane) {
			h.Spec.PausedUntil = ptr.To("2026-01-02T12:00:00Z")
		}, want: []string{"https://etcd-0.etcd-discovery.clusters-demo.svc:2379"}},
		"When pausedUntil is false it should go on": {change: func(h *hyperv1.HostedControlPlane) { h.Spec.PausedUntil = ptr.To("false") }, want: []string{"https://etcd-0.etcd-discovery.clusters-demo.svc:2379"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
			hcp.Spec.ControllerAvailabilityPolicy, hcp.Spec.Etcd.ManagementType = hyperv1.HighlyAvailable, hyperv1.Managed
			if tc.change != nil {
				tc.change(hcp)
			}
			d := &Defragmenter{Namespace: hcp.Namespace, Clock: clocktesting.NewFakePassiveClock(noon),
				Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(hcp).Build()}
			etcds, err := d.etcds(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			var first []string
			for _, e := range etcds {
				if !e.hold {
					first = append(first, e.urls[0])
				}
			}
			g.Expect(first).To(Equal(tc.want))
		})
	}
}

// startEtcd starts a real etcd, which is a cluster of one.
func startEtcd(t *testing.T, args ...string) (url string) {
	t.Helper()
	g := NewWithT(t)
	ports, err := testenv.FreePorts(2)
	g.Expect(err).NotTo(HaveOccurred())
	url, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	p, err := testenv.StartProcess(testenv.KubeBinary(t), t.TempDir(), "etcd", nil, append(args, "--data-dir=etcd", "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)...)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Kill)
	g.Eventually(func() string { return unhealthy([]member{endpoints{http.DefaultClient}.status(t.Context(), url)}, 1) }).WithTimeout(30 * time.Second).Should(BeEmpty())
	return url
}

func plain(context.Context) (*http.Client, error) { return &http.Client{}, nil }

// TestRound is against a real etcd, which is a cluster of one.
func TestRound(t *testing.T) {
	g := NewWithT(t)
	url := startEtcd(t, "--quota-backend-bytes=180000000")
	e := endpoints{http.DefaultClient}

	// Values of 1 MiB under one key, of which only the last one stays, until the file is near its quota. How much of the file a value takes depends on how
	// often etcd gets to commit.
	value := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 1<<20))
	key := base64.StdEncoding.EncodeToString([]byte("k"))
	var revision string
	for m := e.status(t.Context(), url); m.size < minSize || m.size*100 < m.quota*pressing; m = e.status(t.Context(), url) {
		revision = post(t, url+"/v3/kv/put", map[string]any{"key": key, "value": value})
	}
	post(t, url+"/v3/kv/compaction", map[string]any{"revision": revision, "physical": true})
	before := e.status(t.Context(), url)
	g.Expect(before.size).To(BeNumerically(">=", minSize))

	d := &Defragmenter{poll: 10 * time.Millisecond, patience: time.Minute, Clock: clock.RealClock{}, connect: plain}
	g.Eventually(func(g Gomega) int64 {
		// As in a cluster, where something always writes: a member counts the pages that compaction gave back only in the write that comes after it.
		post(t, url+"/v3/kv/put", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("other")), "value": ""})
		g.Expect(d.round(t.Context(), etcd{name: "etcd", urls: []string{url}})).To(Succeed())
		return e.status(t.Context(), url).size
	}).WithTimeout(2 * time.Minute).Should(BeNumerically("<", 10<<20))
}

func post(t *testing.T, url string, body any) (revision string) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return answer.Header.Revision
}
