package kubectlpackage

import (
	"bytes"
	"context"
	"net/url"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// answering is an API server whose Package has conditions as of the answer'th request. Those between the first and that one fail.
func answering(answer int, failure error, conditions ...metav1.Condition) client.Client {
	p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	asked := 0
	return fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(p).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			asked++
			if asked > 1 && asked < answer {
				return failure
			}
			if err := c.Get(ctx, key, obj, opts...); err != nil || asked < answer {
				return err
			}
			obj.(*v1alpha1.Package).Status.Conditions = conditions
			return nil
		},
	}).Build()
}

func TestRestart(t *testing.T) {
	condition := func(of string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: of, Status: status, Reason: "Reason", ObservedGeneration: 1}
	}
	rolledOut := []metav1.Condition{
		condition(v1alpha1.ConditionUnpacked, metav1.ConditionTrue), condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue),
		condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse),
	}
	o := &Options{PollInterval: time.Millisecond}
	web := client.ObjectKey{Namespace: "shop", Name: "web"}
	refused := &url.Error{Op: "Get", URL: "https://api.example.com", Err: syscall.ECONNREFUSED}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "packages"}, "web", nil)
	for name, timeout := range map[string]time.Duration{
		"When the API server restarts rollout status should look again":              time.Minute,
		"When no time is set rollout status should wait for as long as it is needed": 0,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var said bytes.Buffer
			_, err := o.follow(t.Context(), &said, answering(4, refused, rolledOut...), packages, web, true, timeout)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said.String()).To(HaveSuffix("successfully rolled out, revision 0\n"))
		})
	}
	t.Run("When the API server does not answer at all rollout status should say so at once", func(t *testing.T) {
		g := NewWithT(t)
		c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return refused
			},
		}).Build()
		_, err := o.follow(t.Context(), &bytes.Buffer{}, c, packages, web, true, time.Minute)
		g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
	})
	t.Run("When the user may not look any more rollout status should end", func(t *testing.T) {
		_, err := o.follow(t.Context(), &bytes.Buffer{}, answering(4, forbidden), packages, web, true, time.Minute)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("forbidden")))
	})
	t.Run("When the time is up rollout status should say what it waited for", func(t *testing.T) {
		g := NewWithT(t)
		_, err := o.follow(t.Context(), &bytes.Buffer{}, answering(1<<30, refused), packages, web, true, 50*time.Millisecond)
		g.Expect(err).To(MatchError("package web: not rolled out within 50ms: waiting for the rollout to begin"))
		g.Expect(exit.Code(err)).To(Equal(exit.TimedOut))
	})
	t.Run("When the API server restarts after a pause was written it should look again", func(t *testing.T) {
		of := pausable{kind: packages, key: web, scope: scope.Namespaced}
		c := answering(4, refused, condition(v1alpha1.ConditionPaused, metav1.ConditionTrue))
		NewWithT(t).Expect(o.followPause(t.Context(), &bytes.Buffer{}, c, of, true)).To(Succeed())
	})
}
