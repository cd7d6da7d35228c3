package alerts

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

const minute = time.Minute

// cases are those of each alert, by what is the matter.
var cases = map[string]map[string]played{
	"HyperShiftEtcdUnavailable":           lostFor("EtcdAvailable", 3*minute),
	"HyperShiftAPIUnavailable":            lostFor("KubeAPIServerAvailable", 3*minute),
	"HyperShiftReconciliationFailing":     lostFor("ReconciliationSucceeded", 15*minute),
	"HyperShiftEncryptionKeysUnavailable": lostFor("SecretEncryptionKeysAvailable", 5*minute),
	"HyperShiftEtcdDatabaseFull": {
		"an etcd refuses writes":           {[]string{`hypershift_etcd_database_full{namespace="clusters-demo",etcd="etcd"} 0 0 1x10`}, 5 * minute, []string{`{etcd="etcd", namespace="clusters-demo"}`}},
		"it has made room within a moment": {[]string{`hypershift_etcd_database_full{namespace="clusters-demo",etcd="etcd"} 1 0x10`}, 5 * minute, nil},
		"there is room":                    {[]string{`hypershift_etcd_database_full{namespace="clusters-demo",etcd="etcd"} 0x10`}, 5 * minute, nil},
	},
	"HyperShiftEtcdDatabaseFillsUp": {
		"one of two is full of data": {[]string{
			`hypershift_etcd_database_in_use_bytes{namespace="clusters-demo",etcd="etcd"} 79x20`, `hypershift_etcd_database_quota_bytes{namespace="clusters-demo",etcd="etcd"} 100x20`,
			`hypershift_etcd_database_in_use_bytes{namespace="clusters-demo",etcd="events"} 81x20`, `hypershift_etcd_database_quota_bytes{namespace="clusters-demo",etcd="events"} 100x20`,
		}, 11 * minute, []string{`{etcd="events", namespace="clusters-demo"}`}},
		"history is dropped soon": {[]string{
			`hypershift_etcd_database_in_use_bytes{namespace="clusters-demo",etcd="etcd"} 90x5 40x20`, `hypershift_etcd_database_quota_bytes{namespace="clusters-demo",etcd="etcd"} 100x25`,
		}, 11 * minute, nil},
	},
	"HyperShiftDeletionStuck": {
		"it takes more than a quarter of an hour": {[]string{`hypershift_cluster_deleting_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a"} 1+60x30`}, 18 * minute, []string{demo}},
		"it takes a quarter of an hour":           {[]string{`hypershift_cluster_deleting_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a"} 1+60x30`}, 14 * minute, nil},
		"it ends":                                 {[]string{`hypershift_cluster_deleting_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a"} 1+60x14 stale`}, 30 * minute, nil},
	},
	"HyperShiftControlPlaneWaitsForRoom": {
		"two replicas tell that it waits long": {[]string{
			`hypershift_cluster_waiting_for_capacity_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a"} 1+60x30`,
			`hypershift_cluster_waiting_for_capacity_duration_seconds{namespace="clusters",name="demo",_id="1",pod="b"} 1+60x30`,
		}, 18 * minute, []string{demo}},
		"it starts in time": {[]string{`hypershift_cluster_waiting_for_capacity_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a"} 1+60x14 stale`}, 30 * minute, nil},
		"another one takes long to come up for other reasons": {[]string{
			`hypershift_cluster_waiting_initial_availability_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a"} 1+60x60`}, 40 * minute, nil},
	},
	"HyperShiftOperatorDown": {
		"nobody reports":                       {[]string{`up{job="other"} 1x20`}, 11 * minute, []string{`{namespace="hypershift"}`}},
		"one of another installation does":     {[]string{`hypershift_operator_info{namespace="elsewhere"} 1x20`}, 11 * minute, []string{`{namespace="hypershift"}`}},
		"it reports":                           {[]string{`hypershift_operator_info{namespace="hypershift",pod="a"} 1x20`}, 11 * minute, nil},
		"it is replaced within a few minutes":  {[]string{`hypershift_operator_info{namespace="hypershift",pod="a"} 1x3 stale`, `hypershift_operator_info{namespace="hypershift",pod="b"} _x9 1x10`}, 20 * minute, nil},
		"it has reported, and does no longer":  {[]string{`hypershift_operator_info{namespace="hypershift",pod="a"} 1x3 stale`}, 20 * minute, []string{`{namespace="hypershift"}`}},
		"it reports after it has been scraped": {[]string{`hypershift_operator_info{namespace="hypershift",pod="a"} _x5 1x30`}, 30 * minute, nil},
	},
	"HyperShiftCertificateExpires": {
		"the first of two ends within a week": {[]string{
			`hypershift_certificates_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 600000x70`,
			`hypershift_certificates_earliest_expiry_timestamp_seconds{namespace="clusters-other",pod="b"} 900000x70`,
		}, 62 * minute, []string{`{namespace="clusters-demo"}`}},
		"it ends after a week":            {[]string{`hypershift_certificates_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 700000x70`}, 62 * minute, nil},
		"it is replaced within the hour":  {[]string{`hypershift_certificates_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 600000x30 9000000x70`}, 90 * minute, nil},
		"it ends within a week, just now": {[]string{`hypershift_certificates_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 600000x70`}, 30 * minute, nil},
	},
	"HyperShiftCertificateAuthorityExpires": {
		"it ends within a year":               {[]string{`hypershift_certificate_authorities_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 31000000x70`}, 62 * minute, []string{`{namespace="clusters-demo"}`}},
		"it ends later":                       {[]string{`hypershift_certificate_authorities_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 32000000x70`}, 62 * minute, nil},
		"another certificate ends in a month": {[]string{`hypershift_certificates_earliest_expiry_timestamp_seconds{namespace="clusters-demo",pod="a"} 2600000x70`}, 62 * minute, nil},
	},
	"HyperShiftNodePoolNotJoining": {
		"one node of three doesn't join": {[]string{pool("size", "a", "3x60"), pool("size", "b", "3x60"), pool("available_replicas", "a", "2x60"), pool("available_replicas", "b", "2x60")},
			32 * minute, []string{`{cluster_name="demo", name="workers", namespace="clusters"}`}},
		"it joins within half an hour":            {[]string{pool("size", "a", "3x60"), pool("available_replicas", "a", "2x20 3x60")}, 60 * minute, nil},
		"there are more nodes while it is rolled": {[]string{pool("size", "a", "3x60"), pool("available_replicas", "a", "4x60")}, 60 * minute, nil},
	},
	"HyperShiftNodePoolDeletionStuck": {
		"it takes more than an hour": {[]string{pool("deleting_duration_seconds", "a", "1+60x100")}, 70 * minute, []string{`{name="workers", namespace="clusters"}`}},
		"it ends within the hour":    {[]string{pool("deleting_duration_seconds", "a", "1+60x50 stale")}, 70 * minute, nil},
	},
	"HyperShiftNodeCertificatePending": {
		"a request waits for half an hour": {[]string{`hypershift_node_certificate_requests_oldest_timestamp_seconds{namespace="clusters-demo",pod="a"} 60x60`}, 40 * minute, []string{`{namespace="clusters-demo"}`}},
		"each waits for a moment":          {[]string{`hypershift_node_certificate_requests_oldest_timestamp_seconds{namespace="clusters-demo",pod="a"} 0+60x60`}, 60 * minute, nil},
		"none waits":                       {[]string{`hypershift_node_certificate_requests_pending{namespace="clusters-demo",pod="a"} 0x60`}, 60 * minute, nil},
	},
	"HyperShiftUpgradeStuck": {
		"it takes more than two hours": {[]string{`hypershift_cluster_upgrading_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a",previous_version="1.35.0",new_version="1.36.0"} 1+60x140`}, 130 * minute, []string{demo}},
		"it ends":                      {[]string{`hypershift_cluster_upgrading_duration_seconds{namespace="clusters",name="demo",_id="1",pod="a",previous_version="1.35.0",new_version="1.36.0"} 1+60x100 stale`}, 130 * minute, nil},
	},
	"HyperShiftEncryptionMigrationFailing": {
		"data can't be written again": {[]string{`hypershift_encryption_migration_state{namespace="clusters",name="demo",_id="1",pod="a",state="Failing"} 1x60`}, 32 * minute, []string{demo}},
		"it goes on":                  {[]string{`hypershift_encryption_migration_state{namespace="clusters",name="demo",_id="1",pod="a",state="Migrating"} 1x60`}, 60 * minute, nil},
		"it fails for a moment": {[]string{`hypershift_encryption_migration_state{namespace="clusters",name="demo",_id="1",pod="a",state="Failing"} 1x5 stale`,
			`hypershift_encryption_migration_state{namespace="clusters",name="demo",_id="1",pod="a",state="Migrating"} _x6 1x60`}, 60 * minute, nil},
	},
	"HyperShiftProxyCAExpires": {
		"it ends within a week": {[]string{`hypershift_cluster_proxy_ca_expiry_timestamp{namespace="clusters",name="demo",_id="1",pod="a"} 600000x70`}, 62 * minute, []string{demo}},
		"it ends later":         {[]string{`hypershift_cluster_proxy_ca_expiry_timestamp{namespace="clusters",name="demo",_id="1",pod="a"} 700000x70`}, 62 * minute, nil},
	},
	"HyperShiftOperatorNotReconciling": {
		"objects wait, and no pass is made": {[]string{working("workqueue_depth", "3x60"), working("controller_runtime_reconcile_total", "7x60")}, 32 * minute, []string{`{controller="nodepool"}`}},
		"a pass hangs":                      {[]string{working("workqueue_longest_running_processor_seconds", "0+60x60")}, 30 * minute, []string{`{controller="nodepool"}`}},
		"objects wait, and passes are made": {[]string{working("workqueue_depth", "3x60"), working("controller_runtime_reconcile_total", "7+2x60")}, 60 * minute, nil},
		"there is nothing to do":            {[]string{working("workqueue_depth", "0x60"), working("controller_runtime_reconcile_total", "7x60")}, 60 * minute, nil},
		"another operator hangs":            {[]string{`workqueue_longest_running_processor_seconds{namespace="elsewhere",controller="nodepool"} 0+60x60`}, 60 * minute, nil},
	},
	"HyperShiftObjectHotLoop": {
		"something is written over and over": {[]string{
			`hypershift_object_hot_loops{kind="MachineSet",loop="fields",managers="a, b",pod="x"} 2x20`, `hypershift_object_hot_loops{kind="MachineSet",loop="fields",managers="a, b",pod="y"} 1x20`,
		}, 12 * minute, []string{`{kind="MachineSet", loop="fields", managers="a, b"}`}},
		"it ends within ten minutes": {[]string{`hypershift_object_hot_loops{kind="MachineSet",loop="fields",managers="a, b",pod="x"} 2x8 stale`}, 12 * minute, nil},
	},
	"HyperShiftRolloutHeld": {
		"nothing has moved for an hour": {[]string{rollout("progressing", "1x100"), updated("2x100")}, 62 * minute, []string{`{pko_name="addon"}`}},
		"clusters go up and down, and nobody gets on": {[]string{rollout("progressing", "1x100"), updated("2x100"),
			`package_operator_hosted_cluster_package_packages{pko_name="addon",state="available"} 3 2 3 2 3 2 3 2 3 2 3 2 3`}, 62 * minute, []string{`{pko_name="addon"}`}},
		"the operator of packages is replaced meanwhile": {[]string{
			`package_operator_hosted_cluster_package_rollout{pko_name="addon",state="progressing",pod="a"} 1x30 stale`, updated("2x100"),
			`package_operator_hosted_cluster_package_rollout{pko_name="addon",state="progressing",pod="b"} _x30 1x70`,
		}, 62 * minute, []string{`{pko_name="addon"}`}},
		"it goes on slowly": {[]string{rollout("progressing", "1x200"), updated("1x50 2x50 3x50")}, 140 * minute, nil},
		"it soaks":          {[]string{rollout("progressing", "0x200"), rollout("soaking", "1x200"), updated("2x200")}, 140 * minute, nil},
		"it is paused":      {[]string{rollout("progressing", "0x200"), rollout("paused", "1x200"), updated("2x200")}, 140 * minute, nil},
		"it is complete":    {[]string{rollout("progressing", "1x20 0x200"), updated("2x200")}, 140 * minute, nil},
		"another one is being rolled out": {[]string{rollout("progressing", "0x200"), updated("2x200"),
			`package_operator_hosted_cluster_package_rollout{pko_name="other",state="progressing"} 1x200`,
			`package_operator_hosted_cluster_package_packages{pko_name="other",state="updated"} 1+1x200`}, 140 * minute, nil},
	},
	"HypershiftSLOTimeToAvailability": {
		"it takes more than half an hour": {[]string{`hypershift_cluster_waiting_initial_availability_duration_seconds{namespace="clusters",name="demo",_id="1"} 1+60x60`}, 33 * minute,
			[]string{`{_id="1", name="demo", namespace="clusters"}`}},
		"it takes less": {[]string{`hypershift_cluster_waiting_initial_availability_duration_seconds{namespace="clusters",name="demo",_id="1"} 1+60x28 stale`}, 33 * minute, nil},
	},
	"HyperShiftAPIProxyHighLatency": {
		"most requests are slow": {proxied("GET", 10, 100), 20 * minute, []string{`{namespace="clusters-demo", pod="a"}`}},
		"few requests are slow":  {proxied("GET", 99, 100), 20 * minute, nil},
		"watches last long":      {proxied("WATCH", 0, 100), 20 * minute, nil},
		"nobody asks":            {proxied("GET", 0, 0), 20 * minute, nil},
	},
	"HyperShiftConversionWebhookUnavailable": {
		"one of ten fails":     {converted(10, 100), 10 * minute, []string{`{namespace="hypershift"}`}},
		"one of a hundred":     {converted(1, 100), 10 * minute, nil},
		"nothing is converted": {converted(0, 0), 10 * minute, nil},
	},
	"HyperShiftPrivateCAPIMigrationFailed": {
		"one was taken back": {[]string{`hypershift_private_capi_migration_failed_hosted_clusters_total{failure_reason="internal"} 1x60`}, 2 * minute, []string{`{failure_reason="internal"}`}},
		"none was":           {[]string{`hypershift_private_capi_migration_failed_hosted_clusters_total{failure_reason="internal"} 0x60`}, 20 * minute, nil},
	},
	"HyperShiftPrivateCAPIMigrationStuck": {
		"it began two hours ago": {[]string{`hypershift_private_capi_migration_start_time{namespace="clusters",name="demo"} 0x300`}, 120 * minute, []string{`{name="demo", namespace="clusters"}`}},
		"it began just now":      {[]string{`hypershift_private_capi_migration_start_time{namespace="clusters",name="demo"} 0x300`}, 20 * minute, nil},
	},
}

func rollout(state, values string) string {
	return fmt.Sprintf(`package_operator_hosted_cluster_package_rollout{pko_name="addon",state=%q} %s`, state, values)
}

func updated(values string) string {
	return `package_operator_hosted_cluster_package_packages{pko_name="addon",state="updated"} ` + values
}

// proxied are so many requests a minute, some of them quick.
func proxied(method string, quick, all int) (series []string) {
	for _, bucket := range []struct {
		le string
		n  int
	}{{"0.1", quick}, {"0.5", all}, {"+Inf", all}} {
		series = append(series, fmt.Sprintf(`hypershift_api_proxy_request_duration_seconds_bucket{namespace="clusters-demo",pod="a",method=%q,le=%q} 0+%dx30`, method, bucket.le, bucket.n))
	}
	return series
}

func converted(failed, all int) []string {
	return []string{
		fmt.Sprintf(`hypershift_conversion_webhook_errors_total{namespace="hypershift",pod="a"} 0+%dx30`, failed),
		fmt.Sprintf(`hypershift_conversion_webhook_requests_total{namespace="hypershift",pod="a"} 0+%dx30`, all),
	}
}

func TestAlerts(t *testing.T) {
	alerts := installed(t)
	for _, name := range slices.Sorted(maps.Keys(alerts)) {
		fires, silent := 0, 0
		for what, c := range cases[name] {
			verb := "fire"
			if c.fires == nil {
				verb = "not fire"
				silent++
			} else {
				fires++
			}
			t.Run(fmt.Sprintf("When %s %s should %s", what, name, verb), func(t *testing.T) {
				if got := firing(t, alerts[name], c.series, c.after); !slices.Equal(got, c.fires) {
					t.Errorf("fires for %v, want %v", got, c.fires)
				}
			})
		}
		if fires == 0 || silent == 0 {
			t.Errorf("alert %s has %d cases in which it should fire and %d in which not: add some of both", name, fires, silent)
		}
	}
	for name := range cases {
		if _, ok := alerts[name]; !ok {
			t.Errorf("there are cases for alert %s, which install does not have", name)
		}
	}
}

// pool is a metric of a NodePool as one replica of the operator tells it.
func pool(metric, replica, values string) string {
	return fmt.Sprintf(`hypershift_nodepools_%s{namespace="clusters",name="workers",_id="1",cluster_name="demo",platform="Local",pod=%q} %s`, metric, replica, values)
}

// working is a metric of a controller of the operator.
func working(metric, values string) string {
	return fmt.Sprintf(`%s{namespace="hypershift",controller="nodepool",pod="a"} %s`, metric, values)
}
