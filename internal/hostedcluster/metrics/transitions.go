package metrics

import (
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/version"
)

// transitions are the times from the creation of hosted clusters until conditions became True.
var transitions = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "hypershift_hosted_cluster_transition_seconds",
	Help:    "Time from the creation of a hosted cluster until a condition became True for the first time.",
	Buckets: []float64{5, 10, 20, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600},
}, []string{"condition"})

// observedTransitions are the conditions that a cluster goes through while it comes up.
var observedTransitions = []string{
	hyperv1.EtcdAvailable, hyperv1.InfrastructureReady, hyperv1.ExternalDNSReachable, hyperv1.KubeAPIServerAvailable, hyperv1.HostedClusterAvailable,
}

// operatorInfo is constant.
var operatorInfo = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
	Name: "hypershift_operator_info", Help: "Constant 1; the labels tell of the operator.",
	ConstLabels: prometheus.Labels{
		"latestSupportedVersion": release.SupportedKubernetes()[0], "hypershiftCommit": version.Commit(), "hypershiftVersion": version.Semver(),
		"goVersion": runtime.Version(), "goArch": runtime.GOARCH,
	},
}, func() float64 { return 1 })

// Register adds the metrics to a registry.
func Register(r prometheus.Registerer, c *Collector) error {
	for _, m := range []prometheus.Collector{transitions, operatorInfo, proxyCAExpiry, encryptionFailures, encryptionDuration, c} {
		if err := r.Register(m); err != nil {
			return err
		}
	}
	return nil
}

// ObserveTransitions counts the conditions that became True between two states of a cluster that has never been available: what
// comes and goes later is no measure of how long a cluster takes to come up.
func ObserveTransitions(before, after *hyperv1.HostedCluster) {
	observeEncryption(before, after)
	for _, kind := range newlyTrue(before, after) {
		c := conditions.Get(after.Status.Conditions, kind)
		transitions.WithLabelValues(kind).Observe(c.LastTransitionTime.Sub(after.CreationTimestamp.Time).Seconds())
	}
}

func newlyTrue(before, after *hyperv1.HostedCluster) []string {
	if before.Annotations[hyperv1.HasBeenAvailableAnnotation] == "true" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(observedTransitions), func(kind string) bool {
		was := conditions.Get(before.Status.Conditions, kind)
		return was != nil && was.Status == metav1.ConditionTrue || !conditions.IsTrue(after.Status.Conditions, kind)
	})
}
