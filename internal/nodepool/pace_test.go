package nodepool

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/release"
)

// countedReleases counts the passes: each looks its release up once.
type countedReleases struct {
	releases
	passes atomic.Int32
}

func (c *countedReleases) Lookup(ctx context.Context, image string, pullSecret []byte) (*release.Release, error) {
	c.passes.Add(1)
	return c.releases.Lookup(ctx, image, pullSecret)
}

// slowerThanPace is longer than the next pass may be put off when processors are short: package throttle's longest gap, and a pass.
const slowerThanPace = 5 * time.Second

// insist writes until the API server has taken it: one that is short of processors refuses single requests, or does not answer in time.
func insist(ctx context.Context, write func(context.Context) error) error {
	return wait.PollUntilContextTimeout(ctx, often, patience, true, func(ctx context.Context) (bool, error) {
		err := write(ctx)
		if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// timed is how many passes come by the clock meanwhile: an ignition server that is not there is waited for.
const timed = 2

func TestForeignWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		// patch is one of a thousand writes.
		patch  string
		status bool
		most   int32
	}{
		"When others write a thousand times what no pass reads it should make no pass":             {patch: `{"metadata":{"annotations":{"example.com/seen":"%d"}}}`, most: timed},
		"When others count a thousand times in a status it should make no pass":                    {patch: `{"status":{"readyReplicas":%d}}`, status: true, most: timed},
		"When others change a thousand times what passes read it should make them at its own pace": {patch: `{"status":{"availableReplicas":%d}}`, status: true, most: 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			counted := &countedReleases{releases: fixedReleases{}}
			w.releases = counted
			w.start(t)
			g := NewWithT(t)
			g.Expect(w.client.Create(t.Context(), examplePool(w.ns))).To(Succeed())
			md := &clusterv1.MachineDeployment{}
			g.Eventually(func() error {
				return w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcpNS, Name: "workers"}, md)
			}, patience, often).Should(Succeed())
			machine := w.machine(t, "workers-1", md)
			quiet := func() int32 { return counted.passes.Load() }
			last := int32(-1)
			g.Eventually(func() bool { n := quiet(); same := n == last; last = n; return same }, patience, slowerThanPace).Should(BeTrue())

			writers, ctx := errgroup.WithContext(t.Context())
			writers.SetLimit(2) // an API server tries a patch again when another one of the same object was faster: of twenty at a time, most of the work is that
			for i := range 1000 {
				patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, tc.patch, i))
				write := func(ctx context.Context) error {
					obj := &clusterv1.MachineDeployment{ObjectMeta: md.ObjectMeta}
					if tc.status {
						return w.client.Status().Patch(ctx, obj, patch)
					}
					if i%2 == 0 {
						return w.client.Patch(ctx, &clusterv1.Machine{ObjectMeta: machine.ObjectMeta}, patch)
					}
					return w.client.Patch(ctx, obj, patch)
				}
				writers.Go(func() error { return insist(ctx, write) })
			}
			g.Expect(writers.Wait()).To(Succeed())
			g.Consistently(quiet, "2s", "100ms").Should(BeNumerically("<=", last+tc.most))
			t.Logf("%d passes", quiet()-last)
		})
	}
}
