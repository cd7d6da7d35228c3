package conformance

import (
	"regexp"
	"strings"
)

// quick are specs of every group that end within seconds: what breaks when a control plane, its tunnel, its workers, DNS, the network, volumes
// or permissions do.
var quick = []string{
	"AdmissionWebhook [Privileged:ClusterAdmin] should be able to deny pod and configmap creation",
	"AggregatedDiscovery should support aggregated discovery interface for CRDs",
	"CustomResourcePublishOpenAPI [Privileged:ClusterAdmin] works for CRD with validation schema",
	"Garbage collector should not be blocked by dependency circle",
	"ResourceQuota should create a ResourceQuota and capture the life of a pod.",
	"ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should validate against a Deployment",
	"Watchers should be able to restart watching from the last resource version observed by the previous watch",
	"Deployment should run the lifecycle of a Deployment",
	"DisruptionController should block an eviction until the PDB is updated to allow it",
	"Job should adopt matching orphans and release non-matching pods",
	"ReplicaSet should serve a basic image on each replica with a public image",
	"Certificates API [Privileged:ClusterAdmin] should support CSR API operations",
	"ServiceAccounts should mount projected service account token",
	"Guestbook application should create and stop a working application",
	"Kubectl patch should add annotations for pods in rc",
	"Events should manage the lifecycle of an event",
	"API Server should have Endpoints and EndpointSlices pointing to API Server",
	"DNS should provide DNS for services",
	"DNS should provide DNS for the cluster",
	"Proxy version v1 should proxy through a service and a pod",
	"Services should complete a service status lifecycle",
	"Container Runtime blackbox test on terminated container should report termination message from log output",
	"Downward API should provide container's limits.cpu/memory and requests.cpu/memory as env vars",
	"Ephemeral Containers [NodeConformance] will start an ephemeral container in an existing pod",
	"InitContainer [NodeConformance] should invoke init containers on a RestartAlways pod",
	"Pods should support remote command execution over websockets",
	"Pods should support retrieving logs from the container over websockets",
	"should not allow privilege escalation when false",
	"LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied.",
	"ConfigMap should be consumable from pods in volume as non-root",
	"Downward API volume should update labels on modification",
	"EmptyDir volumes should support (non-root,0644,tmpfs)",
	"PersistentVolumes CSI Conformance should apply changes to a pv/pvc status",
	"Projected combined should project all components that make up the projection API",
}

// Quick is a regular expression on a few specs of every group that take seconds each.
func Quick() string {
	names := make([]string, 0, len(quick))
	for _, n := range quick {
		names = append(names, regexp.QuoteMeta(n))
	}
	return strings.Join(names, "|")
}
