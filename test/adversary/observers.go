package adversary

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/local/quiet"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/watch"
	"hcp.internal/platform/test/adversary/world"
)

const (
	// verifyPatience is how long one read may take when nothing is harmed any more.
	verifyPatience = time.Minute
	// leftBound is how long kubelet and kube-proxy may take to clear away what is left of pods, and Kubernetes to delete pods of nodes that are gone.
	leftBound = 3 * time.Minute
	// quietSettle is how long the clusters may take until nothing is written for a moment, quietFor how long they are watched then. When they don't rest, they
	// are watched again until restBound is over: some of Kubernetes' controllers put off for a minute what there is to do.
	quietSettle, quietFor, restBound = 3 * time.Minute, 45 * time.Second, 4 * time.Minute
)

// made begins to write to a hosted cluster.
func (r *run) made(cluster int) {
	ctx, stop := context.WithCancel(context.Background()) // until it is destroyed or verified
	w := &writing{stop: stop, ended: make(chan struct{}), Writer: &watch.Writer{Name: plan.ClusterName(cluster), Violated: r.violated,
		Connect: func(ctx context.Context) (client.Client, error) {
			cfg, err := r.world.Hosted(ctx, cluster)
			if err != nil {
				return nil, err
			}
			return world.NewClient(cfg)
		}}}
	r.mu.Lock()
	r.writers[cluster] = w
	r.mu.Unlock()
	go func() {
		defer close(w.ended)
		w.Run(ctx)
	}()
}

// goes ends the writing to a hosted cluster that is about to be destroyed: what was acknowledged goes with it.
func (r *run) goes(cluster int) {
	r.mu.Lock()
	w := r.writers[cluster]
	delete(r.writers, cluster)
	r.going[world.ControlPlane(cluster)] = true
	r.mu.Unlock()
	if w != nil {
		w.stop()
		<-w.ended
	}
}

func (r *run) leaving(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.going[namespace]
}

// alive are the hosted clusters that were made and not destroyed.
func (r *run) alive() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.writers))
}

// verify ends the writing to a hosted cluster and reads everything back.
func (r *run) verify(ctx context.Context, cluster int) {
	r.mu.Lock()
	w := r.writers[cluster]
	r.mu.Unlock()
	if w == nil {
		return
	}
	w.stop()
	<-w.ended
	summary, err := w.Verify(ctx, r.patience(verifyPatience))
	if err != nil && ctx.Err() == nil {
		r.violated("acknowledged writes", err.Error())
	}
	r.log.Info("read back", "cluster", w.Name, "what", summary)
}

// nothingLeft compares the machine and both API servers with what they were before.
func (r *run) nothingLeft(ctx context.Context, before watch.Machine) error {
	more := ""
	err := world.Until(ctx, r.patience(leftBound), func(ctx context.Context) error {
		now, err := watch.LookAtMachine(ctx, r.StateDir)
		if err != nil {
			return err
		}
		if more = now.More(before); more != "" {
			return fmt.Errorf("%s", more)
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.violated("nothing is left", "on the machine, "+err.Error())
	}
	demo, err := r.world.Hosted(ctx, plan.Demo)
	if err != nil {
		return err
	}
	for name, cfg := range map[string]*rest.Config{"the management cluster": r.world.Management, "the demo cluster": demo} {
		err := world.Until(ctx, r.patience(leftBound), func(ctx context.Context) error {
			left, err := watch.LeftObjects(ctx, cfg)
			if err != nil {
				return err
			}
			orphans, err := watch.Orphans(ctx, cfg)
			if err != nil {
				return err
			}
			if left = append(left, orphans...); len(left) > 0 {
				return fmt.Errorf("%d objects: %s", len(left), strings.Join(left[:min(len(left), maxNamed)], ", "))
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			r.violated("nothing is left", "in "+name+", "+err.Error())
		}
	}
	r.log.Info("looked for what is left", "machine", before.Counts())
	return ctx.Err()
}

// maxNamed objects are named.
const maxNamed = 20

// quiet watches whether everything comes to rest. What is put off for a while, and done once, is not at rest yet; what goes on is found each time.
func (r *run) quiet(ctx context.Context) error {
	if err := watch.Recovered(ctx, r.world, plan.Demo, r.patience(recoverBound)); err != nil && ctx.Err() == nil {
		r.violated("everything recovers", err.Error())
	}
	var seen quiet.Report
	for begin := time.Now(); ; world.Wait(ctx, time.Second) {
		var err error
		seen, err = quiet.Observe(ctx, quiet.Options{StateDir: r.StateDir, Settle: quietSettle, Length: quietFor, Bounds: quiet.DefaultBounds(), Say: io.Discard})
		late := time.Since(begin) > r.patience(restBound)
		if err != nil && (late || ctx.Err() != nil) {
			return fmt.Errorf("watching whether everything rests: %w", err)
		}
		if err == nil && (late || len(seen.Problems) == 0) {
			break
		}
		r.log.Info("not at rest yet", "why", seen.Problems, "error", fmt.Sprint(err))
	}
	for _, p := range seen.Problems {
		r.violated("quiet afterwards", p)
	}
	r.log.Info("watched whether everything rests", "problems", len(seen.Problems))
	return nil
}
