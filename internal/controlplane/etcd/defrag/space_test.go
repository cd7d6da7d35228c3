package defrag

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestNoSpace fills a real etcd until it refuses writes.
func TestNoSpace(t *testing.T) {
	g := NewWithT(t)
	url := startEtcd(t, "--quota-backend-bytes=16777216")
	changes := 0
	clk := clocktesting.NewFakeClock(time.Now())
	d := &Defragmenter{Namespace: "clusters-demo", poll: 10 * time.Millisecond, patience: time.Minute, rest: time.Minute, Clock: clk, connect: plain,
		Changed: func(context.Context) { changes++ }}
	which := etcd{name: "etcd", urls: []string{url}}
	// As Kubernetes does it: each change of an object is another version under its key.
	fillUntilRefused(t, url, func(int) string { return "object" })
	g.Expect(put(t, url, "other", 1)).To(Equal(http.StatusTooManyRequests), "When the quota is reached etcd should refuse every write")

	held := which
	held.hold = true
	g.Expect(d.round(t.Context(), held)).To(Succeed())
	g.Expect(d.Spaces()).To(HaveLen(1))
	g.Expect(d.Spaces()[0].Full).To(BeTrue(), "When the control plane is paused it should be seen, and nothing done")
	g.Expect(put(t, url, "other", 1)).NotTo(Equal(http.StatusOK))

	g.Expect(d.round(t.Context(), which)).To(Succeed())
	g.Expect(put(t, url, "other", 1)).To(Equal(http.StatusOK), "When history filled the database it should take writes again")
	g.Expect(d.Spaces()[0].Full).To(BeFalse())
	g.Expect(changes).To(Equal(2), "Full and no longer full should each be told once")
	g.Expect(endpoints{http.DefaultClient}.status(t.Context(), url).size).To(BeNumerically("<", 4<<20))

	// What is in use can't be dropped. Room that defragmenting still finds is filled as well.
	var err error
	for keys := 0; err == nil; {
		fillUntilRefused(t, url, func(int) string { keys++; return strings.Repeat("x", keys) })
		clk.Step(time.Minute)
		err = d.round(t.Context(), which)
	}
	g.Expect(err).To(MatchError("etcd is full of data that is in use: it takes writes again when objects were deleted"))
	g.Expect(d.Spaces()[0].Full).To(BeTrue())
	g.Expect(put(t, url, "other", 1)).NotTo(Equal(http.StatusOK))
	g.Expect(testutil.CollectAndCompare(d, strings.NewReader(`
# HELP hypershift_etcd_database_full 1 while an etcd refuses writes, because its database has grown to its quota.
# TYPE hypershift_etcd_database_full gauge
hypershift_etcd_database_full{etcd="etcd",namespace="clusters-demo"} 1
# HELP hypershift_etcd_database_quota_bytes What the database may grow to.
# TYPE hypershift_etcd_database_quota_bytes gauge
hypershift_etcd_database_quota_bytes{etcd="etcd",namespace="clusters-demo"} 1.6777216e+07
`), "hypershift_etcd_database_full", "hypershift_etcd_database_quota_bytes")).To(Succeed())

	// Deletions work all the time.
	for i := range 5 {
		g.Expect(send(t, url+"/v3/kv/deleterange", map[string]string{"key": encoded(strings.Repeat("x", i+1))})).To(Equal(http.StatusOK))
	}
	g.Expect(d.round(t.Context(), which)).To(Succeed())
	g.Expect(put(t, url, "other", 1)).NotTo(Equal(http.StatusOK), "When it was tried just now it should rest: members answer nobody meanwhile")
	clk.Step(time.Minute)
	g.Expect(d.round(t.Context(), which)).To(Succeed())
	g.Expect(put(t, url, "other", 1)).To(Equal(http.StatusOK), "When objects were deleted it should take writes again")
	d.forget(nil)
	g.Expect(d.Spaces()).To(BeEmpty(), "When the etcd is gone it should be forgotten")
}

func fillUntilRefused(t *testing.T, url string, key func(int) string) {
	t.Helper()
	for i := range 100 {
		if put(t, url, key(i), 1<<20) != http.StatusOK {
			return
		}
	}
	t.Fatal("etcd took 100 MiB with a quota of 16")
}

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func put(t *testing.T, url, key string, size int) (status int) {
	t.Helper()
	return send(t, url+"/v3/kv/put", map[string]string{"key": encoded(key), "value": encoded(strings.Repeat("v", size))})
}

func send(t *testing.T, url string, body any) (status int) {
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
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
