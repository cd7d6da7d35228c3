package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// proxyCAExpiry is told by passes, which read what the user names; a cache of it would hold every ConfigMap of the management cluster.
var proxyCAExpiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "hypershift_cluster_proxy_ca_expiry_timestamp",
	Help: "When the first of the certificates expires that the hosted cluster's proxy is checked with, in seconds since 1970.",
}, identity)

// ObserveProxyCA notes when the certificates of a hosted cluster's proxy expire; the zero time: it has none.
func ObserveProxyCA(hc *hyperv1.HostedCluster, expires time.Time) {
	if expires.IsZero() {
		Forget(hc.Namespace, hc.Name)
		return
	}
	proxyCAExpiry.WithLabelValues(hc.Namespace, hc.Name, hc.Spec.ClusterID).Set(float64(expires.Unix()))
}

// Forget removes what passes told of a hosted cluster that is gone.
func Forget(namespace, name string) {
	proxyCAExpiry.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
}
