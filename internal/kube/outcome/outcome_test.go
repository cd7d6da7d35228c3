package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	conflict = apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errors.New("newer"))
	errDisk  = errors.New("the disk is full")
	owned    = apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.image"}}, "owned by another")
	gone     = apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "a")
)

func TestIsConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"When all is well it should be none":                                    {nil, false},
		"When the API server says so it should be one":                          {conflict, true},
		"When it is wrapped it should be one":                                   {fmt.Errorf("patching status of a: %w", conflict), true},
		"When a cache is known to be behind it should be one":                   {fmt.Errorf("reading a: %w", ErrStale), true},
		"When two writes lost their races it should be one":                     {errors.Join(conflict, fmt.Errorf("writing b: %w", conflict)), true},
		"When something else failed, too, it should be a failure":               {errors.Join(conflict, errDisk), false},
		"When something failed before it should be a failure":                   {errors.Join(errDisk, conflict), false},
		"When a failure hides among wrapped errors it should be one":            {fmt.Errorf("pass: %w", errors.Join(conflict, fmt.Errorf("b: %w", errDisk))), false},
		"When the object is gone it should be none, as it is not another state": {gone, false},
		"When another manager owns a field it should be a failure":              {fmt.Errorf("applying a: %w", owned), false},
		"When it is any failure it should be none":                              {errDisk, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(IsConflict(tc.err)).To(Equal(tc.want))
		})
	}
}

func TestOutcomes(t *testing.T) {
	a, b := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}, reconcile.Request{NamespacedName: types.NamespacedName{Name: "b"}}
	result := reconcile.Result{RequeueAfter: time.Hour}
	after := func(g Gomega, o *Outcomes, req reconcile.Request) time.Duration {
		got, err := o.of(req, result, conflict)
		g.Expect(err).NotTo(HaveOccurred())
		return got.RequeueAfter
	}
	t.Run("When a race is lost it should look again as soon as a cache has caught up", func(t *testing.T) {
		NewWithT(t).Expect(after(NewWithT(t), &Outcomes{}, a)).To(Equal(50 * time.Millisecond))
	})
	t.Run("When somebody writes the same again and again it should look less and less often, for that object alone", func(t *testing.T) {
		g, o := NewWithT(t), &Outcomes{}
		last := time.Duration(0)
		for range 20 {
			next := after(g, o, a)
			g.Expect(next).To(BeNumerically(">=", last))
			last = next
		}
		g.Expect(last).To(Equal(10 * time.Second))
		g.Expect(after(g, o, b)).To(Equal(50 * time.Millisecond))
	})
	t.Run("When a pass has ended otherwise it should begin anew", func(t *testing.T) {
		for _, err := range []error{nil, errDisk} {
			g, o := NewWithT(t), &Outcomes{}
			for range 5 {
				after(g, o, a)
			}
			_, _ = o.of(a, result, err)
			g.Expect(after(g, o, a)).To(Equal(50 * time.Millisecond))
		}
	})
	t.Run("When it is no conflict it should leave result and error as they are", func(t *testing.T) {
		g, o := NewWithT(t), &Outcomes{}
		got, err := o.of(a, result, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(result))
		_, err = o.of(a, result, reconcile.TerminalError(errDisk))
		g.Expect(err).To(MatchError(reconcile.TerminalError(nil)))
	})
	t.Run("When a reconciler is wrapped its passes should end so", func(t *testing.T) {
		g := NewWithT(t)
		r := Wrap(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return result, conflict }))
		got, err := r.Reconcile(t.Context(), a)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.RequeueAfter).To(Equal(50 * time.Millisecond))
	})
}
