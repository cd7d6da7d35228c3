package tour_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/local/tour"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// screen keeps what stays on it.
type screen struct {
	mu    sync.Mutex
	lines []string
}

func (s *screen) show(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// cluster is the one of the tests, in the checkout that they are part of.
func cluster(t *testing.T, w *packagestest.World, s *screen) local.Cluster {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, w.Env.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return local.Cluster{Settings: local.Settings{Root: "../../.."}, Kubeconfig: kubeconfig, Show: s.show, Clock: clock.RealClock{}}
}

// runDeployments says of every Deployment that its pods run, in place of a node.
func runDeployments(t *testing.T, c client.Client) {
	t.Helper()
	go func() {
		_ = wait.PollUntilContextCancel(t.Context(), 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list := &appsv1.DeploymentList{}
			if c.List(ctx, list) != nil {
				return false, nil //nolint:nilerr // because it is tried again
			}
			for _, d := range list.Items {
				if d.Status.ObservedGeneration == d.Generation || d.DeletionTimestamp != nil {
					continue
				}
				n := *d.Spec.Replicas
				d.Status = appsv1.DeploymentStatus{
					ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
					Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
				}
				_ = c.Status().Update(ctx, &d) // whoever changed it meanwhile is seen the next time
			}
			return false, nil
		})
	}()
}

func TestWeb(t *testing.T) {
	w := packagestest.Start(t, packagecontroller.Extend)
	runDeployments(t, w.Client)
	registry := packagestest.NewRegistry(t)
	// The application says what its image is, as the real one does.
	ask := func(ctx context.Context, _ string) (string, error) {
		d := &appsv1.Deployment{}
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: "tour-web", Name: "web"}, d)
		if err != nil {
			return "", err
		}
		image := d.Spec.Template.Spec.Containers[0].Image
		return "Hello from web-0, version " + image[strings.LastIndex(image, ":")+1:] + "\n", nil
	}

	s := &screen{}
	t.Run("When it is interrupted anywhere it should begin anew", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		interrupted := tour.Web{Registry: registry.Host, Ask: func(context.Context, string) (string, error) {
			cancel(errors.New("somebody pressed ^C"))
			return "", ctx.Err()
		}}
		g.Expect(interrupted.Run(ctx, cluster(t, w, s), func(string, ...any) {})).To(MatchError(context.Canceled))
		g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "tour-web", Name: "web"}, &v1alpha1.Package{})).To(Succeed())
	})
	t.Run("When it runs it should install, change and remove a package, and leave nothing", func(t *testing.T) {
		g := NewWithT(t)
		s.lines = nil
		g.Expect(tour.Web{Registry: registry.Host, Ask: ask}.Run(t.Context(), cluster(t, w, s), t.Logf)).To(Succeed())
		text := strings.Join(s.lines, "\n")
		t.Log(text)
		g.Expect(text).To(MatchRegexp(`(?s)\$ kubectl package build config/examples/packages/web --tag \S+/examples/web:1.0.0 --push
  Package tour-web/web has image \S+/examples/web:1.0.0
\$ kubectl package rollout status package/web -n tour-web --timeout 5m0s
  revision 1 is there after \S+; http://\S+ says: Hello from web-0, version 1.0.0
\$ kubectl package build \S+ --tag \S+/examples/web:2.0.0 --push
  Package tour-web/web has image \S+/examples/web:2.0.0
\$ kubectl package rollout status package/web -n tour-web --timeout 5m0s
  revision 2 is there after \S+; http://\S+ says: Hello from web-0, version 2.0.0
\$ kubectl package rollout history package/web -n tour-web
REVISION  SUCCESSFUL  CHANGE-CAUSE
1         true        Installing web package.
2         true        Package source image changed.
  Package tour-web/web is removed, and all that it installed, after \S+$`))
		err := w.Client.Get(t.Context(), client.ObjectKey{Name: "tour-web"}, &corev1.Namespace{})
		g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		g.Expect(err).To(HaveOccurred(), "the namespace should be gone")
		pods := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
		g.Expect(w.Client.List(t.Context(), pods)).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
	})
}

func TestAsk(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, strings.Repeat("a", 1<<20))
	}))
	defer server.Close()
	answer, err := tour.Ask(t.Context(), server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(answer)).To(Equal(4<<10), "an answer is bounded")
	_, err = tour.Ask(t.Context(), server.URL+"/x")
	g.Expect(err).To(MatchError(HaveSuffix("status 418")))
}
