package configoperator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// hostedControlPlane is valid by default.
func hostedControlPlane(mutate ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Generation: 3, UID: "1"},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: "registry.example.com/release:1.36.3",
			Networking:   hyperv1.ClusterNetworking{ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}},
		},
		Status: hyperv1.HostedControlPlaneStatus{ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "10.97.0.10", Port: 6443}},
	}
	for _, m := range mutate {
		m(hcp)
	}
	return hcp
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		hcp     *hyperv1.HostedControlPlane
		missing string
	}{
		"When everything is known it should apply everything and look again later": {hcp: hostedControlPlane()},
		"When the published address isn't known it should apply the rest and say what is missing": {
			hcp: hostedControlPlane(func(h *hyperv1.HostedControlPlane) {
				h.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{}
			}),
			missing: "API server endpoints: status.controlPlaneEndpoint of the HostedControlPlane isn't known yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			plan := planFor(Observed{HCP: tc.hcp})
			g.Expect(plan.RecheckAfter).To(Equal(resync))
			g.Expect(plan.Objects).NotTo(BeEmpty())
			if tc.missing == "" {
				g.Expect(plan.Missing).NotTo(HaveOccurred())
			} else {
				g.Expect(plan.Missing).To(MatchError(tc.missing))
			}
		})
	}
}

func TestCondition(t *testing.T) {
	binding := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}
	for name, tc := range map[string]struct {
		missing  error
		failures []Failure
		want     string // message of the False condition; empty: True
	}{
		"When everything was applied it should be True": {},
		"When something couldn't be rendered it should say what": {
			missing: errors.New("API server endpoints: unknown"), want: "API server endpoints: unknown",
		},
		"When a webhook of the hosted cluster answers it should not repeat its words": {
			failures: []Failure{{"ClusterRoleBinding a", apierrors.NewForbidden(binding, "a", errors.New("<script>"))}},
			want:     "ClusterRoleBinding a: the hosted API refuses our user: the binding hcco-cluster-admin is missing, or a webhook in the hosted cluster forbids the change",
		},
		"When several objects fail for the same reason it should give the reason once": {
			failures: []Failure{{"Endpoints a", syscall.ECONNREFUSED}, {"Namespace b", context.DeadlineExceeded}, {"Namespace c", syscall.ECONNREFUSED}},
			want:     "Endpoints a, Namespace c: the hosted API doesn't accept connections; Namespace b: the hosted API doesn't answer in time",
		},
		"When the API server answers otherwise it should give the reason alone": {
			failures: []Failure{{"ClusterRoleBinding a", fmt.Errorf("applying: %w", apierrors.NewInternalError(errors.New("secret")))}},
			want:     "ClusterRoleBinding a: the hosted API answers InternalError",
		},
		"When the API server is down it should say so": {
			failures: []Failure{{"Endpoints kubernetes", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}},
			want:     "Endpoints kubernetes: the hosted API doesn't accept connections",
		},
		"When the API server hangs it should say so": {
			failures: []Failure{{"Endpoints kubernetes", context.DeadlineExceeded}},
			want:     "Endpoints kubernetes: the hosted API doesn't answer in time",
		},
		"When the API server's name is unknown it should say so": {
			failures: []Failure{{"Endpoints kubernetes", &net.DNSError{Name: "kube-apiserver"}}},
			want:     "Endpoints kubernetes: the host name of the hosted API doesn't resolve",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got := succeeded(7, tc.missing, tc.failures)
			g.Expect(got.Type).To(Equal(hyperv1.ConfigOperatorReconciliationSucceeded))
			g.Expect(got.ObservedGeneration).To(Equal(int64(7)))
			if tc.want == "" {
				g.Expect(got.Status).To(Equal(metav1.ConditionTrue))
				g.Expect(got.Reason).To(Equal(hyperv1.AsExpectedReason))
				return
			}
			g.Expect(got.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(got.Reason).To(Equal(hyperv1.ReconcileErrorReason))
			g.Expect(got.Message).To(Equal(tc.want))
		})
	}
	t.Run("When very many objects fail it should list some and count the rest", func(t *testing.T) {
		g := NewWithT(t)
		failures := make([]Failure, 500)
		for i := range failures {
			failures[i] = Failure{Object: fmt.Sprintf("Namespace n%d", i), Err: context.DeadlineExceeded}
		}
		got := succeeded(1, nil, failures).Message
		g.Expect(got).To(HaveSuffix("Namespace n9, 490 more: the hosted API doesn't answer in time"))
		g.Expect(len(got)).To(BeNumerically("<", 2000))
	})
}

func TestFailure(t *testing.T) {
	t.Run("When a webhook answers with a book it should not go to the log, and still be known for what it is", func(t *testing.T) {
		g := NewWithT(t)
		book := apierrors.NewInternalError(errors.New(strings.Repeat("x", 1<<20)))
		err := errors.Join(Failure{Object: "Namespace a", Err: book})
		g.Expect(len(err.Error())).To(BeNumerically("<", 600))
		g.Expect(apierrors.IsInternalError(err)).To(BeTrue())
	})
}

func TestOptions(t *testing.T) {
	good := Options{Namespace: "ns", TargetKubeconfig: "f", PlatformType: "None", Controllers: []string{"*"}}
	t.Run("When a required flag is missing it should name it", func(t *testing.T) {
		g := NewWithT(t)
		err := Options{}.validate()
		g.Expect(err).To(MatchError(And(ContainSubstring("--namespace"), ContainSubstring("--target-kubeconfig"), ContainSubstring("--platform-type"))))
		g.Expect(good.validate()).To(Succeed())
	})
	t.Run("When a controller is unknown it should list the known ones", func(t *testing.T) {
		o := good
		o.Controllers = []string{"resources", "cloudproxy"}
		NewWithT(t).Expect(o.validate()).To(MatchError(ContainSubstring(`unknown controller "cloudproxy"; known are *, resources`)))
	})
	t.Run("When a controller is taken out it should not run", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(good.enabled("resources")).To(BeTrue())
		g.Expect(Options{Controllers: []string{"*", "-resources"}}.enabled("resources")).To(BeFalse())
		g.Expect(Options{}.enabled("resources")).To(BeFalse())
	})
}
