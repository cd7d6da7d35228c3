package main

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/leaderelection"

	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/kube/process"
)

// takeover is how long a leader that gives nothing back keeps its standby waiting at most, apart from requests and the start of controllers. It dies just after it
// has renewed the lease. The standby looks after each pause, which client-go makes up to JitterFactor longer: it sees that renewal one pause later, counts the lease from
// there, and may have to wait one more pause when that has run out.
func takeover(lease, retry time.Duration) time.Duration {
	return lease + 2*(retry+time.Duration(leaderelection.JitterFactor*float64(retry)))
}

// TestTakeover judges what TestStandby only prints: times on a busy machine prove nothing, and what leases are configured to does.
func TestTakeover(t *testing.T) {
	times := []*time.Duration{&process.LeaseDuration, &process.RenewDeadline, &process.RetryPeriod}
	for _, at := range times {
		before := *at
		t.Cleanup(func() { *at = before })
	}
	single := takeover(process.LeaseDuration, process.RetryPeriod)
	t.Run("When an operator has no standby another should take over within five minutes, as docs/install.md says", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(single).To(BeNumerically("<", 5*time.Minute))
		for _, d := range deployed(1) {
			g.Expect(leaseOf(d)).To(BeEmpty(), d.Name)
		}
	})
	for _, replicas := range []int32{2, 5} {
		for _, d := range deployed(replicas) {
			t.Run(fmt.Sprintf("When a leader of the %d Pods of %s is killed a standby should take over within 20 seconds", replicas, d.Name), func(t *testing.T) {
				g := NewWithT(t)
				lease := leaseOf(d)
				g.Expect(lease).NotTo(BeEmpty())
				g.Expect(process.HeedLeaseDuration(lease)).To(Succeed())
				g.Expect(takeover(process.LeaseDuration, process.RetryPeriod)).To(BeNumerically("<", 20*time.Second))
			})
		}
	}
}

// deployed are the operators of an installation.
func deployed(replicas int32) []*appsv1.Deployment {
	o := install.NewOptions()
	o.Image, o.Scope, o.Replicas, o.PackageOperator = "r/i:1", install.ScopeResources, replicas, true
	var list []*appsv1.Deployment
	for _, obj := range install.Resources(o) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			list = append(list, d)
		}
	}
	return list
}

// leaseOf is how long the lease of an operator lasts, as the installation says; empty: as long as by default.
func leaseOf(d *appsv1.Deployment) string {
	for _, env := range d.Spec.Template.Spec.Containers[0].Env {
		if env.Name == process.EnvLeaseDuration {
			return env.Value
		}
	}
	return ""
}
