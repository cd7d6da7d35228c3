package why

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

// joinsAfter is how long a machine may take from its infrastructure to its node before that is told.
const joinsAfter = 10 * time.Minute

// poolRules are about NodePools.
var poolRules = []Rule{
	{ID: "pool-without-cluster", On: kindNodePool, Condition: hyperv1.NodePoolReadyConditionType, Is: no, Reasons: []string{hyperv1.NodePoolNotFoundReason}, Says: regexp.MustCompile(`spec\.clusterName`),
		State: Broken, Health: Blocked, Do: "create the HostedCluster, or correct spec.clusterName"},
	{ID: "pool-release-invalid", On: kindNodePool, Condition: hyperv1.NodePoolValidReleaseImageConditionType, Is: no, State: Broken, Health: Blocked, Knows: true, Do: "correct spec.release.image, or the pull secret of the HostedCluster"},
	{ID: "pool-version-skew", On: kindNodePool, Condition: hyperv1.NodePoolSupportedVersionSkewConditionType, Is: no, State: Broken, Health: Blocked,
		Do: "use a release that is close to the HostedCluster's and no newer"},
	{ID: "pool-config-invalid", On: kindNodePool, Condition: hyperv1.NodePoolValidMachineConfigConditionType, Is: no, State: Broken, Health: Blocked, Do: "correct the ConfigMap of spec.config that the message names"},
	{ID: "pool-tuning-invalid", On: kindNodePool, Condition: hyperv1.NodePoolValidTuningConfigConditionType, Is: no, State: Broken, Health: Blocked, Do: "correct the ConfigMap of spec.tuningConfig that the message names"},
	{ID: "pool-platform-invalid", On: kindNodePool, Condition: hyperv1.NodePoolValidPlatformConfigConditionType, Is: no, State: Broken, Health: Blocked, Do: "correct the field of spec.platform that the message names"},
	{ID: "pool-image-invalid", On: kindNodePool, Condition: hyperv1.NodePoolValidPlatformImageType, Is: no, State: Broken, Do: "use a release that has an image for this platform and region"},
	{ID: "pool-arch-invalid", On: kindNodePool, Condition: hyperv1.NodePoolValidArchPlatform, Is: no, State: Broken, Health: Blocked, Do: "use another spec.arch, or a release for several architectures"},
	{ID: "pool-template-refused", On: kindNodePool, Condition: hyperv1.NodePoolValidMachineTemplateConditionType, Is: no, State: Broken, Health: Blocked, Do: "correct the field of spec.platform that the message names"},
	{ID: "pool-payload-failed", On: kindNodePool, Condition: hyperv1.NodePoolValidGeneratedPayloadConditionType, Is: no, Ask: []edge{poolIgnition}, State: Broken, Health: Blocked,
		Do: "correct what the message names; it is the ignition server's error"},
	{ID: "pool-update-invalid", On: kindNodePool, Condition: hyperv1.NodePoolUpdateManagementEnabledConditionType, Is: no, State: Broken, Health: Blocked, Do: "correct spec.management, as the message says"},
	{ID: "pool-autoscaling-invalid", On: kindNodePool, Condition: hyperv1.NodePoolAutoscalingEnabledConditionType, Is: no, Reasons: []string{hyperv1.NodePoolValidationFailedReason}, State: Broken,
		Do: "correct spec.autoScaling or spec.replicas, as the message says"},
	{ID: "pool-rollout-unrequested", On: kindNodePool, Condition: hyperv1.NodePoolUnrequestedRolloutConditionType, Is: yes, State: Broken, Do: "check the change that the message names, and allow it with the annotation that it names"},
	{ID: "machine-network-conflict", On: kindNodePool, Condition: hyperv1.NodePoolClusterNetworkCIDRConflictType, Is: yes, State: Broken, Do: "give the machines other addresses, or create a cluster with another spec.networking.clusterNetwork"},
	{ID: "pool-upgrade-failed", On: kindNodePool, Condition: hyperv1.NodePoolUpdatingConfigConditionType, Is: no, Reasons: []string{hyperv1.NodePoolInplaceUpgradeFailedReason}, Ask: []edge{machinesOf}, State: Broken,
		Do: "check the status of the machine that the message names"},
	{ID: "pool-upgrade-failed", On: kindNodePool, Condition: hyperv1.NodePoolUpdatingVersionConditionType, Is: no, Reasons: []string{hyperv1.NodePoolInplaceUpgradeFailedReason}, Ask: []edge{machinesOf}, State: Broken,
		Do: "check the status of the machine that the message names"},
	{ID: "machine-api-down", On: kindNodePool, See: poolUnserved, Sees: "it lacks machines, to check the Cluster API programs", Ask: []edge{machinePrograms}, Leads: true},
	{ID: "too-many-unhealthy", On: kindNodePool, Condition: hyperv1.NodePoolReadyConditionType, Is: no, Reasons: []string{hyperv1.NodePoolTooManyUnhealthyReason, "TooManyUnhealthy", "RemediationNotAllowed"}, Ask: []edge{machinesOf}, State: Broken,
		Do: "repair machines by hand: too many are unhealthy, so none is replaced"},
	{ID: "ignition-not-reached", On: kindNodePool, Condition: hyperv1.NodePoolReachedIgnitionEndpoint, Is: no, Ask: []edge{poolIgnition, machinesOf}, State: Broken,
		Do: "check that machines reach the ignition address (firewalls, DNS); then read the console of a machine"},
	// Machines that come and go are what a replacement looks like.
	{ID: "pool-updating", On: kindNodePool, See: updating, Sees: "`UpdatingVersion`, `UpdatingConfig` or `UpdatingPlatformMachineTemplate` is True", Ask: []edge{machinesOf}, Whole: true, State: Waiting, Do: "wait: machines are being replaced, as many at a time as spec.management allows"},
	{ID: "machines-not-ready", On: kindNodePool, Condition: hyperv1.NodePoolAllMachinesReadyConditionType, Is: no, Ask: []edge{machinesOf, machineDeploymentsOf}, State: Waiting, Late: joinsAfter,
		Do: "wait: machines are being created; if it continues, check the machine that the message names"},
	{ID: "nodes-not-healthy", On: kindNodePool, Condition: hyperv1.NodePoolAllNodesHealthyConditionType, Is: no, Ask: []edge{machinesOf}, State: Waiting, Late: joinsAfter, Do: "wait: nodes are coming up; if it continues, check the node that the message names"},
	{ID: "pool-not-ready", On: kindNodePool, Condition: hyperv1.NodePoolReadyConditionType, Is: no, Ask: []edge{machinesOf, machineDeploymentsOf, poolCluster}, State: Waiting, Do: "wait: machines are being created"},
	{ID: "pool-waits-for-cluster", On: kindNodePool, See: poolSaysNothing, Sees: "it has no conditions yet", Ask: []edge{poolCluster}, State: Waiting, Do: "wait: the operator will process it in a moment"},
	{ID: "pool-paused", On: kindNodePool, Condition: hyperv1.NodePoolReconciliationActiveConditionType, Is: no, State: Held, While: always,
		Do: "remove spec.pausedUntil of the NodePool, or wait until then"},
	{ID: "pool-field-not-heeded", On: kindNodePool, Condition: hyperv1.AllFieldsHeeded, Is: no, State: Held, Health: Healthy, Ask: []edge{nobody}, Do: "remove the fields in the message: they have no effect"},

	{ID: "machine-deployment-not-available", On: kindMachineDeployment, Condition: clusterv1.AvailableCondition, Is: no, Ask: []edge{machinePrograms}, State: Waiting, Do: "wait: Cluster API is creating machines"},
}

// machineRules are about Machines and the nodes that become of them.
var machineRules = []Rule{
	{ID: "machine-paused", On: kindMachine, Condition: clusterv1.PausedCondition, Is: yes, State: Held, While: always, Do: "remove spec.pausedUntil of the NodePool: until then, Cluster API does nothing with this machine"},
	{ID: "infrastructure-refused", On: kindMachine, Condition: clusterv1.MachineInfrastructureReadyCondition, Is: no, Reasons: nil, State: Broken, Says: regexp.MustCompile(`.`),
		Do: "follow the platform's message: quota, credentials, image or network of the cloud"},
	{ID: "bootstrap-not-ready", On: kindMachine, Condition: clusterv1.MachineBootstrapConfigReadyCondition, Is: no, Ask: []edge{machinePrograms}, State: Waiting, Do: "wait: the configuration for the machine is being generated"},
	{ID: "node-request-denied", On: kindMachine, See: neverJoined, Sees: "its infrastructure is ready and there is no node, to check its certificate requests", Ask: []edge{requestsOf}, Leads: true},
	{ID: "machine-never-joined", On: kindMachine, See: neverJoined, Sees: "its infrastructure is ready and there is no node", Ask: []edge{machinePrograms}, State: Broken,
		Do: "find out why its kubelet doesn't reach the API: read the machine's console; the NodePool's condition ReachedIgnitionEndpoint says whether it got its configuration"},
	{ID: "machine-unhealthy", On: kindMachine, Condition: clusterv1.MachineHealthCheckSucceededCondition, Is: no, Ask: []edge{nodeOfMachine}, State: Waiting, Do: "wait: it will be replaced, unless too many are unhealthy"},
	{ID: "machine-node-unhealthy", On: kindMachine, Condition: clusterv1.MachineNodeHealthyCondition, Is: no, Ask: []edge{nodeOfMachine}, State: Broken,
		Do: "check the node: kubectl describe node in the hosted cluster. With spec.management.autoRepair it is replaced automatically"},
	{ID: "machine-failed", On: kindMachine, See: machineFailed, Sees: "`status.phase` is Failed", State: Broken, Do: "delete the machine, and another takes its place; its conditions have the platform's message"},
	{ID: "machine-starting", On: kindMachine, Condition: clusterv1.MachineReadyCondition, Is: no, State: Waiting, Do: "wait: the machine is starting"},
	{ID: "machine-starting", On: kindMachine, Condition: clusterv1.MachineReadyCondition, Is: unknown, State: Waiting, Do: "wait: the machine is starting"},

	{ID: "hosted-node-not-ready", On: kindHostedNode, Condition: string(corev1.NodeReady), Is: no, State: Broken, Young: justJoined, Do: "check the node's kubelet and network: the message is the kubelet's"},
	{ID: "hosted-node-silent", On: kindHostedNode, Condition: string(corev1.NodeReady), Is: unknown, State: Broken, Do: "check that the machine runs and reaches the API: its kubelet has stopped reporting"},
	{ID: "hosted-node-under-pressure", On: kindHostedNode, See: pressure, Sees: "it has DiskPressure, MemoryPressure or PIDPressure", State: Broken, Do: "make room on the node: until then, its kubelet evicts pods"},
	{ID: "request-denied", On: kindRequest, See: requestDenied, Sees: "it was denied or failed", State: Broken,
		Do: "if you know the machine, approve the request: kubectl certificate approve in the hosted cluster. A request for a name that no machine has is refused on purpose"},
	{ID: "request-pending", On: kindRequest, See: requestPending, Sees: "it has been pending for a minute", State: Broken, Do: "check that the hosted-cluster-config-operator runs: it approves requests of machines that it knows"},
}

// poolUnserved: what machines depend on does not work.
func poolUnserved(s *scene, it *item) *seen {
	if !conditions.IsFalse(it.conditions, hyperv1.NodePoolReadyConditionType) && !conditions.IsFalse(it.conditions, hyperv1.NodePoolAllMachinesReadyConditionType) {
		return nil
	}
	return &seen{field: "status", text: "machines are made by Cluster API"}
}

func updating(_ *scene, it *item) *seen {
	for _, t := range []string{hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType} {
		if c := conditions.Get(it.conditions, t); c != nil && c.Status == yes {
			saw := ofCondition(*c)
			if changes := lastRoll(it); changes != "" {
				saw.cause = "machines are being replaced, since " + changes
			}
			return saw
		}
	}
	return nil
}

func poolSaysNothing(_ *scene, it *item) *seen {
	if len(it.conditions) > 0 {
		return nil
	}
	return &seen{field: "status.conditions", text: "none yet", cause: "no operator has looked at it yet", since: it.created}
}

func neverJoined(s *scene, it *item) *seen {
	m := it.typed.(*clusterv1.Machine)
	if m.Status.NodeRef.IsDefined() {
		return nil
	}
	c := conditions.Get(it.conditions, clusterv1.MachineInfrastructureReadyCondition)
	if c == nil || c.Status != yes {
		return nil
	}
	saw := &seen{field: "status.nodeRef", text: "none, although its infrastructure is ready", since: c.LastTransitionTime.Time,
		cause: fmt.Sprintf("machine %s runs and has never joined as a node", it.Name)}
	if s.Now.Sub(c.LastTransitionTime.Time) < joinsAfter {
		saw.state, saw.do, saw.cause = Waiting, "wait: the machine is booting", fmt.Sprintf("machine %s is booting and has not joined yet", it.Name)
	}
	return saw
}

// comesReadyIn is how long a new node may take until its network works: images over a slow line.
const comesReadyIn = 5 * time.Minute

// justJoined: a node that nobody expects to be ready yet.
func justJoined(s *scene, it *item) bool { return s.Now.Sub(it.created) < comesReadyIn }

// machineFailed: Cluster API has given it up.
func machineFailed(_ *scene, it *item) *seen {
	if it.typed.(*clusterv1.Machine).Status.Phase != string(clusterv1.MachinePhaseFailed) { //nolint:staticcheck // because machines of older versions still have it
		return nil
	}
	saw := &seen{field: "status.phase", text: "Failed", cause: fmt.Sprintf("machine %s has failed", it.Name)}
	if c := conditions.Get(it.conditions, clusterv1.MachineReadyCondition); c != nil && c.Status != yes && c.Message != "" {
		saw.cause += ": " + Clean(c.Message)
		saw.since = c.LastTransitionTime.Time
	}
	return saw
}

func requestDenied(_ *scene, it *item) *seen {
	for _, c := range it.typed.(*certificatesv1.CertificateSigningRequest).Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return &seen{field: "status.conditions[" + string(c.Type) + "]", text: Clean(c.Reason + ": " + c.Message), since: c.LastUpdateTime.Time,
				cause: fmt.Sprintf("the certificate request of %s was refused: %s", Clean(it.typed.(*certificatesv1.CertificateSigningRequest).Spec.Username), Clean(c.Message))}
		}
	}
	return nil
}

// requestPending: nobody has decided for a minute.
func requestPending(s *scene, it *item) *seen {
	r := it.typed.(*certificatesv1.CertificateSigningRequest)
	if len(r.Status.Conditions) > 0 || s.Now.Sub(it.created) < time.Minute {
		return nil
	}
	return &seen{field: "status.conditions", text: "neither approved nor denied", since: it.created,
		cause: fmt.Sprintf("nobody has approved the certificate request of %s", Clean(r.Spec.Username))}
}

// Edges from pools and machines.

func clusterOf(pool *item) (namespace, name string) {
	return pool.Namespace, pool.typed.(*hyperv1.NodePool).Spec.ClusterName
}

func poolCluster(s *scene, it *item) []*item {
	namespace, name := clusterOf(it)
	ns := names.ControlPlaneNamespace(namespace, name)
	return append(s.named(kindHostedControlPlane, ns, name), operators(s, it)...)
}

func poolIgnition(s *scene, it *item) []*item {
	namespace, name := clusterOf(it)
	return s.named(kindDeployment, names.ControlPlaneNamespace(namespace, name), names.IgnitionServer)
}

func ofThisPool(it *item) func(*item) bool {
	namespace, name := clusterOf(it)
	ns, key := names.ControlPlaneNamespace(namespace, name), names.BackReference(it.meta)
	return func(m *item) bool { return m.Namespace == ns && m.meta.Annotations[hyperv1.NodePoolAnnotation] == key }
}

func machinesOf(s *scene, it *item) []*item { return s.filter(kindMachine, ofThisPool(it)) }

func machineDeploymentsOf(s *scene, it *item) []*item {
	return s.filter(kindMachineDeployment, ofThisPool(it))
}

// machinePrograms are the Deployments of Cluster API for a pool, a machine or a MachineDeployment.
func machinePrograms(s *scene, it *item) []*item {
	ns := it.Namespace
	if it.Kind == kindNodePool {
		namespace, name := clusterOf(it)
		ns = names.ControlPlaneNamespace(namespace, name)
	}
	return append(s.named(kindDeployment, ns, names.ClusterAPI), s.named(kindDeployment, ns, names.CAPIProvider)...)
}

// hostedOf is the key of the HostedCluster whose control plane is in a namespace.
func (s *scene) hostedOf(namespace string) string {
	for key := range s.Hosted {
		if n, ok := names.ParseBackReference(key); ok && names.ControlPlaneNamespace(n.Namespace, n.Name) == namespace {
			return key
		}
	}
	return ""
}

func nodeOfMachine(s *scene, it *item) []*item {
	name, key := it.typed.(*clusterv1.Machine).Status.NodeRef.Name, s.hostedOf(it.Namespace)
	return s.filter(kindHostedNode, func(n *item) bool { return name != "" && n.Name == name && n.hosted == key })
}

// requestsOf are the certificates that the kubelet of a machine asks for: as itself, or with its name in the request while it has none yet. Nodes are
// named as their machines are, or after an address.
func requestsOf(s *scene, it *item) []*item {
	m, key := it.typed.(*clusterv1.Machine), s.hostedOf(it.Namespace)
	users := []string{nodeUser + m.Name}
	for _, a := range m.Status.Addresses {
		users = append(users, nodeUser+a.Address)
	}
	return s.filter(kindRequest, func(r *item) bool {
		if r.hosted != key {
			return false
		}
		spec := &r.typed.(*certificatesv1.CertificateSigningRequest).Spec
		return slices.Contains(users, spec.Username) || slices.Contains(users, commonName(spec.Request))
	})
}

const nodeUser = "system:node:"

// commonName is that of a certificate request in PEM; empty: it is none.
func commonName(request []byte) string {
	block, _ := pem.Decode(request)
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return parsed.Subject.CommonName
}
