package hold

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestBegin(t *testing.T) {
	broken := errors.New("the API server is away")
	for name, c := range map[string]struct {
		err    error
		reason string
		there  bool
		after  time.Duration
		fails  bool
	}{
		"When nothing holds it should go on":                                       {there: true},
		"When something holds it should end, and come again when that may be over": {reason: "paused", after: time.Minute},
		"When the control plane is gone it should end without an error":            {err: apierrors.NewNotFound(schema.GroupResource{}, "demo")},
		"When it can't be read it should say so":                                   {err: broken, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp, result, err := Begin(t.Context(), reader{err: c.err}, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "clusters-demo", Name: "demo"}},
				func(hcp *hyperv1.HostedControlPlane, at time.Time) (string, time.Duration) {
					g.Expect(hcp.Name).To(Equal("demo"))
					g.Expect(at).To(Equal(noon))
					return c.reason, time.Minute
				}, noon)
			g.Expect(hcp != nil).To(Equal(c.there))
			g.Expect(result).To(Equal(ctrl.Result{RequeueAfter: c.after}))
			if c.fails {
				g.Expect(err).To(And(MatchError(broken), MatchError(ContainSubstring("clusters-demo/demo"))))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

func TestWhy(t *testing.T) {
	paused := func(until string) *hyperv1.HostedControlPlane {
		return controlPlane(func(h *hyperv1.HostedControlPlane) { h.Spec.PausedUntil = &until })
	}
	for name, tc := range map[string]struct {
		hcp        *hyperv1.HostedControlPlane
		operatesOn string
		want       string // empty: nothing holds
		after      time.Duration
	}{
		"When nothing speaks against it it should not hold": {hcp: controlPlane()},
		"When the process belongs to the hosted cluster's release it should not hold": {
			hcp: controlPlane(), operatesOn: "registry.example.com/release:1.36.3",
		},
		"When the process belongs to another release it should hold": {
			hcp: controlPlane(), operatesOn: "registry.example.com/release:1.35.0",
			want: "this process belongs to release registry.example.com/release:1.35.0, the hosted cluster to registry.example.com/release:1.36.3",
		},
		"When the control plane has a release of its own it should compare with the hosted cluster's": {
			operatesOn: "registry.example.com/release:1.36.3", hcp: controlPlane(func(h *hyperv1.HostedControlPlane) {
				h.Spec.ControlPlaneReleaseImage = ptr.To("registry.example.com/release:1.36.9")
			}),
		},
		"When paused until later it should hold and come back then": {
			hcp: paused("2026-11-21T12:30:00Z"), want: "paused by spec.pausedUntil", after: 30 * time.Minute,
		},
		"When paused without an end it should hold until the field changes": {hcp: paused("true"), want: "paused by spec.pausedUntil"},
		"When the pause is over it should not hold":                         {hcp: paused("2026-11-21T11:59:59Z")},
		"When the pause can't be parsed it should not hold":                 {hcp: paused("soon")},
		"When the control plane is being deleted it should hold": {
			hcp: controlPlane(func(h *hyperv1.HostedControlPlane) {
				h.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
			}), want: "the hosted control plane is being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			reason, after := For(tc.operatesOn)(tc.hcp, noon)
			g.Expect(reason).To(Equal(tc.want))
			g.Expect(after).To(Equal(tc.after))
		})
	}
}

func controlPlane(mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "registry.example.com/release:1.36.3"}}
	for _, m := range mutate {
		m(hcp)
	}
	return hcp
}

// reader has every object, by its name alone, unless there is an error.
type reader struct {
	client.Reader
	err error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetName(key.Name)
	return r.err
}
