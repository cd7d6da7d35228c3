package configoperator

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/testenv"
)

// laterMachines is a mapper of a management cluster that gets Cluster API later.
type laterMachines struct {
	meta.RESTMapper
	there atomic.Bool
}

func (m *laterMachines) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Group != clusterv1.GroupVersion.Group {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	if !m.there.Load() {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeNamespace}, nil
}

func TestMachinesLater(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	later := &laterMachines{}
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: process.Queue(),
		MapperProvider: func(cfg *rest.Config, c *http.Client) (meta.RESTMapper, error) {
			var err error
			later.RESTMapper, err = process.NewMapper(cfg, c)
			return later, err
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	worked := make(chan struct{}, 1)
	g.Expect(withMachines(mgr, 10*time.Millisecond, func() error {
		// A controller that is added while the manager runs has to be started by it.
		return builder.ControllerManagedBy(mgr).Named("later").For(&corev1.Namespace{}).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			select {
			case worked <- struct{}{}:
			default:
			}
			return reconcile.Result{}, nil
		}))
	})).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	g.Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	g.Consistently(worked, "100ms").ShouldNot(Receive(), "When there are no Machines its controllers should be off")
	later.there.Store(true)
	g.Eventually(worked).WithTimeout(30*time.Second).Should(Receive(), "When Cluster API is installed later they should start without a restart")
}
