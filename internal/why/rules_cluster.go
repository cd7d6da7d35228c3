package why

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

// unseenAfter is how long an operator may take to look at a change before that is told: passes take seconds.
const unseenAfter = 2 * time.Minute

// pausedText is what conditions say that repeat ReconciliationActive.
var pausedText = regexp.MustCompile(`^Reconciliation paused`)

// clusterRules are about HostedClusters.
var clusterRules = []Rule{
	{ID: "etcd-recovery-unfinished", On: kindHostedCluster, See: recoveryUnfinished, Sees: "a StatefulSet of its control plane has annotation `" + backups.RecoveryAnnotation + "`", State: Broken, Health: Blocked,
		Do: "unless the command still runs, run it again: `hypershift restore --in-place --from URL` or `hypershift etcd recover --from POD`, as the annotation names them. It continues where it stopped. " +
			keepPause},
	{ID: "cluster-invalid", On: kindHostedCluster, Condition: hyperv1.ValidHostedClusterConfiguration, Is: no, State: Broken, Health: Blocked,
		Do: "correct the field that the message names; until then nothing is changed"},
	{ID: "cluster-unsupported", On: kindHostedCluster, Condition: hyperv1.SupportedHostedCluster, Is: no, State: Broken, Health: Blocked,
		Do: "use a platform or release that this installation supports, as the message says"},
	{ID: "release-unreadable", On: kindHostedCluster, Condition: hyperv1.ValidReleaseImage, Is: no, State: Broken, Health: Blocked, Knows: true,
		Do: "correct spec.release.image or the pull secret; `hypershift version` lists the supported versions"},
	{ID: "release-incomplete", On: kindHostedCluster, Condition: hyperv1.ValidReleaseInfo, Is: no, State: Broken, Health: Blocked, Do: "use another release: this one lacks images"},
	{ID: "proxy-invalid", On: kindHostedCluster, Condition: hyperv1.ValidProxyConfiguration, Is: no, State: Broken, Do: "correct the ConfigMap that the message names"},
	{ID: "credentials-missing", On: kindHostedCluster, Condition: hyperv1.PlatformCredentialsFound, Is: no, State: Broken, Health: Blocked, Do: "create the Secret that the message names"},
	{ID: "control-plane-config-invalid", On: kindHostedCluster, Condition: hyperv1.ValidHostedControlPlaneConfiguration, Is: no, State: Broken, Health: Blocked,
		Do: "correct the field that the message names"},
	{ID: "identity-provider-invalid", On: kindHostedCluster, Condition: hyperv1.ValidIDPConfiguration, Is: no, State: Broken, Do: "correct the identity provider that the message names"},
	{ID: "oidc-invalid", On: kindHostedCluster, Condition: hyperv1.ValidOIDCConfiguration, Is: no, State: Broken, Do: "make the bucket of the OIDC documents writable for the operator, or follow the message if the infraID is taken"},
	{ID: "unmanaged-etcd-misconfigured", On: kindHostedCluster, Condition: hyperv1.UnmanagedEtcdAvailable, Is: no, State: Broken, Do: "complete the Secret that the message names"},
	// A pause shows in these, too. Its own rule tells of it, unless something is broken.
	{ID: "cluster-paused-shows", On: kindHostedCluster, Condition: hyperv1.HostedClusterProgressing, Is: no, Says: pausedText, Ask: []edge{nobody}, Leads: true},
	{ID: "cluster-paused-shows", On: kindHostedCluster, Condition: hyperv1.HostedClusterAvailable, Is: no, Says: pausedText, Ask: []edge{nobody}, Leads: true},
	// A cluster that sleeps lacks all that follows, and is not broken.
	{ID: "cluster-hibernation-shows", On: kindHostedCluster, Condition: hyperv1.HostedClusterAvailable, Is: no, Reasons: []string{hyperv1.HostedClusterHibernated}, Ask: []edge{nobody}, Leads: true},
	{ID: "upgrade-returned", On: kindHostedCluster, Condition: upgrades.Returned, Is: yes, State: Broken, Health: Blocked,
		Do: "read in the message what failed; then set another release in spec.release.image, or remove the annotation that the message names to try again"},
	{ID: "migration-held", On: kindHostedCluster, Condition: hyperv1.PrivateCAPIMigrationProgressing, Is: no,
		Reasons: []string{hyperv1.MigrationHeldReason, hyperv1.MigrationRolledBackReason, hyperv1.MigrationFailedReason}, State: Broken,
		Do: "follow the message, then run `hypershift capi migrate --resume`; see docs/migration.md"},
	{ID: "cluster-unseen", On: kindHostedCluster, See: unseen, Sees: "its conditions are missing or older than the newest generation", Ask: []edge{operators}, State: Broken,
		Do: "check the operator: kubectl logs -n hypershift deployment/operator"},
	{ID: "operator-down", On: kindHostedCluster, See: operatorDown, Sees: "always, to check the operators", Ask: []edge{operators}, Leads: true},
	{ID: "no-room", On: kindHostedCluster, Condition: hyperv1.ControlPlaneAdmitted, Is: no, State: Broken, Health: Blocked,
		Do: "add nodes to the management cluster, or destroy hosted clusters; it starts by itself when there is room"},
	{ID: "reconciliation-failed", On: kindHostedCluster, Condition: hyperv1.ReconciliationSucceeded, Is: no, State: Broken, Health: Blocked,
		Do: "read the message; the operator keeps trying, and its log has the details"},
	{ID: "etcd-restore-failed", On: kindHostedCluster, Condition: hyperv1.EtcdSnapshotRestored, Is: no, State: Broken,
		Do: "correct the URL of the snapshot, and read the log of pod etcd-0, container etcd-init"},
	{ID: "etcd-recovery-failed", On: kindHostedCluster, Condition: hyperv1.EtcdRecoveryActive, Is: no, Reasons: []string{hyperv1.EtcdRecoveryJobFailedReason}, State: Broken,
		Do: "read the log of Job etcd-recovery in the control-plane namespace"},
	{ID: "infrastructure-not-ready", On: kindHostedCluster, Condition: hyperv1.InfrastructureReady, Is: no, Ask: []edge{controlPlane}, State: Broken, Young: comingUp,
		Do: "install a load balancer provider, or publish the API by NodePort in spec.services"},
	{ID: "cluster-unavailable", On: kindHostedCluster, Condition: hyperv1.HostedClusterAvailable, Is: no, Ask: []edge{controlPlane, controlPlaneNamespace}, State: Broken, Young: comingUp,
		Do: "follow the message; docs/conditions.md explains its reason"},
	{ID: "cluster-degraded", On: kindHostedCluster, Condition: hyperv1.HostedClusterDegraded, Is: yes, Ask: []edge{controlPlane}, State: Broken, Young: comingUp,
		Do: "find out why the Deployments in the message lack replicas: kubectl get pods in the control-plane namespace"},
	{ID: "encryption-keys-away", On: kindHostedCluster, Condition: encryption.KeysAvailable, Is: no, Ask: []edge{controlPlaneNamespace}, State: Broken,
		Do: "restore the key management, as the message says: until then Secrets can't be written, and don't restart API servers"},
	// A HostedCluster tells nothing of a control plane whose own operator is gone.
	{ID: "control-plane", On: kindHostedCluster, See: hasControlPlane, Sees: "it has a control plane, to check it", Ask: []edge{controlPlane}, Leads: true},
	{ID: "etcd-backup-failed", On: kindHostedCluster, Condition: hyperv1.EtcdBackupSucceeded, Is: no, Reasons: []string{hyperv1.BackupFailedReason, hyperv1.BackupRejectedReason}, State: Broken,
		Do: "correct what the message names; the schedule makes the next backup"},
	{ID: "config-operator-failed", On: kindHostedCluster, Condition: hyperv1.ConfigOperatorReconciliationSucceeded, Is: no, Ask: []edge{hostedSide}, State: Broken,
		Do: "check for webhooks and quotas in the hosted cluster that refuse the objects in the message"},
	{ID: "version-failing", On: kindHostedCluster, Condition: hyperv1.ClusterVersionSucceeding, Is: no, Ask: []edge{controlPlane}, State: Broken, Do: "follow the message; the rollout then continues by itself"},
	{ID: "rollout-blocked", On: kindHostedCluster, Condition: hyperv1.HostedClusterProgressing, Is: no, Reasons: []string{hyperv1.BlockedReason}, Ask: []edge{controlPlane}, State: Broken,
		Do: "follow the message: the rollout doesn't start before that"},
	{ID: "tunnel-down", On: kindHostedCluster, Condition: hyperv1.DataPlaneConnectionAvailable, Is: no, Ask: []edge{nodePools, tunnel}, State: Broken,
		Do: "check that nodes are Ready and that the tunnel's agents run in kube-system of the hosted cluster"},
	{ID: "api-not-reached-from-nodes", On: kindHostedCluster, Condition: hyperv1.ControlPlaneConnectionAvailable, Is: no, Ask: []edge{nodePools}, State: Broken,
		Do: "check for network policies, or firewalls between nodes and the advertised address of the API"},
	{ID: "ignition-endpoint-down", On: kindHostedCluster, See: ignitionDown, Sees: "`IgnitionEndpointAvailable` is False while it is Available and has NodePools with machines", Ask: []edge{ignitionServer}, State: Broken,
		Do: "find out why the ignition server doesn't run: kubectl get pods -l app=ignition-server in the control-plane namespace"},
	{ID: "dns-unresolved", On: kindHostedCluster, Condition: hyperv1.ExternalDNSReachable, Is: no, State: Broken, Do: "check that external-dns runs and may write to the zone"},
	{ID: "cluster-restoring", On: kindHostedCluster, Condition: hyperv1.HostedClusterRestoredFromBackup, Is: no, Ask: []edge{controlPlane}, State: Waiting,
		Do: "wait: the restored cluster is not complete yet; the message says what is missing"},
	{ID: "cluster-pools", On: kindHostedCluster, See: hasPools, Sees: "it has NodePools, to check them", Ask: []edge{nodePools}, Leads: true},
	// It breaks nothing by itself.
	{ID: "hot-loop", On: kindHostedCluster, See: hotLoop, Sees: "a HotLoop event in the last hour, and no event that it has ended", State: Broken, Do: "make one of the two writers that the event names stop writing that field"},
	{ID: "hibernation-invalid", On: kindHostedCluster, Condition: hyperv1.HostedClusterHibernated, Is: no, Reasons: []string{hyperv1.InvalidHibernateValueReason}, State: Held,
		Do: "correct the annotation as the message says, or run `hypershift hibernate`"},
	{ID: "cluster-asleep", On: kindHostedCluster, Condition: hyperv1.HostedClusterHibernated, Is: yes, State: Held, Do: "wake it with `hypershift wake`; its data is kept"},
	{ID: "cluster-falling-asleep", On: kindHostedCluster, Condition: hyperv1.HostedClusterHibernated, Is: no, State: Waiting,
		Do: "wait: it is falling asleep or waking, as the message says"},
	{ID: "nodes-lack-authorities", On: kindHostedCluster, Condition: hyperv1.NodesTrustAuthorities, Is: no, State: Waiting,
		Do: "repair the nodes that the message names, delete the Nodes of machines that no longer exist, or stop waiting for them with `hypershift rotate authorities --force`"},
	{ID: "cluster-paused", On: kindHostedCluster, Condition: hyperv1.ReconciliationActive, Is: no, State: Held, While: always,
		Do: "remove spec.pausedUntil, or wait until then: nothing changes before"},
	{ID: "etcd-recovering", On: kindHostedCluster, Condition: hyperv1.EtcdRecoveryActive, Is: yes, State: Waiting, Do: "wait: an etcd member is being replaced"},
	{ID: "migration-under-way", On: kindHostedCluster, Condition: hyperv1.PrivateCAPIMigrationProgressing, Is: yes, State: Waiting,
		Do: "wait: the machines' objects are being migrated; nothing scales or heals until then"},
	{ID: "reencrypting", On: kindHostedCluster, Condition: hyperv1.EtcdDataEncryptionUpToDate, Is: no, State: Waiting, Do: "wait, and keep the old keys until the condition is True"},
	{ID: "cluster-starting", On: kindHostedCluster, Condition: hyperv1.HostedClusterAvailable, Is: unknown, Ask: []edge{controlPlane}, State: Waiting, Do: "wait: the control plane has not reported its status yet"},
	{ID: "cluster-rolling-out", On: kindHostedCluster, Condition: hyperv1.HostedClusterProgressing, Is: yes, Ask: []edge{controlPlane}, State: Waiting,
		Do: "wait: it continues by itself"},
	{ID: "field-not-heeded", On: kindHostedCluster, Condition: hyperv1.AllFieldsHeeded, Is: no, State: Held, Health: Healthy, Do: "remove the fields in the message, or use what it suggests instead: they have no effect", Ask: []edge{nobody}},
}

// keepPause is what ends badly while etcd is recovered or restored.
const keepPause = "Don't end the pause (spec.pausedUntil) yourself: members would start with mixed data"

// recoveryUnfinished: a restore in place or a recovery of etcd has begun and not ended. Everything else that is wrong, and the pause, may be a part of it.
func recoveryUnfinished(s *scene, it *item) *seen {
	for _, set := range s.filter(kindStatefulSet, func(o *item) bool { return o.Namespace == names.ControlPlaneNamespace(it.Namespace, it.Name) }) {
		text := set.meta.Annotations[backups.RecoveryAnnotation]
		if text == "" {
			continue
		}
		saw := &seen{field: "StatefulSet " + set.Name, text: "annotation " + backups.RecoveryAnnotation, cause: fmt.Sprintf("a recovery of StatefulSet %s has begun and not ended", set.Name)}
		var of backups.Recovery
		if json.Unmarshal([]byte(text), &of) != nil || of.From == "" {
			return saw
		}
		from, cluster := Clean(of.From), it.Name+" --namespace "+it.Namespace
		command := fmt.Sprintf("hypershift etcd recover --name %s --etcd %s --from %s --yes", cluster, set.Name, from)
		saw.cause = fmt.Sprintf("a recovery of StatefulSet %s from the data of %s has begun and not ended", set.Name, from)
		if of.Snapshot != "" {
			url := Clean(of.Snapshot)
			command = fmt.Sprintf("hypershift restore --in-place --name %s --from %s --yes", cluster, url)
			saw.cause = fmt.Sprintf("a restore in place of %s has begun and not ended", url)
		}
		saw.do = fmt.Sprintf("unless the command still runs, run it again, with the flags that it had: `%s`. It continues where it stopped. %s", command, keepPause)
		return saw
	}
	return nil
}

// comesUpIn is how long a new control plane may lack what it has not had yet before somebody should look.
const comesUpIn = 15 * time.Minute

// comingUp: a HostedCluster, or the control plane of one, that is new and has never been available.
func comingUp(s *scene, it *item) bool {
	owner := it.meta
	if key, ok := names.ParseBackReference(it.meta.Annotations[hyperv1.HostedClusterAnnotation]); ok && it.Kind != kindHostedCluster {
		if hc := s.byName[Object{kindHostedCluster, key.Namespace, key.Name}]; hc != nil {
			owner = hc.meta
		}
	}
	return owner.Annotations[hyperv1.HasBeenAvailableAnnotation] != "true" && s.Now.Sub(owner.CreationTimestamp.Time) < comesUpIn
}

// nobody is asked: an edge that keeps a rule from being told as a pause.
func nobody(*scene, *item) []*item { return nil }

// unseen: a change of the spec, or a new object, that the operator has not looked at for long.
func unseen(s *scene, it *item) *seen {
	changed := it.created
	if len(it.conditions) > 0 {
		newest := int64(0)
		for _, c := range it.conditions {
			newest = max(newest, c.ObservedGeneration)
		}
		if newest == 0 || newest >= it.meta.Generation {
			return nil
		}
		changed = specChanged(it.meta)
	}
	if changed.IsZero() || s.Now.Sub(changed) < 0 {
		return nil
	}
	saw := &seen{field: "metadata.generation", since: changed, state: Waiting, do: "wait: the operator will process it in a moment",
		text: fmt.Sprintf("generation %d, but the status is older", it.meta.Generation), cause: "the operator has not processed the newest change of the spec yet"}
	if len(it.conditions) == 0 {
		saw.text, saw.cause = "no conditions", "no operator has looked at it yet"
	}
	if s.Now.Sub(changed) > unseenAfter {
		saw.state, saw.do = "", ""
		saw.cause += ", though it had time: its watch is dead, or it stands still"
	}
	return saw
}

// specChanged is when somebody last wrote anything but the status, such as spec by kubectl scale.
func specChanged(meta *metav1.ObjectMeta) time.Time {
	last := meta.CreationTimestamp.Time
	for _, f := range meta.ManagedFields {
		if f.Subresource != "status" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// operatorDown: the operator's Deployment has no pod that works, or its leader stands still.
func operatorDown(s *scene, it *item) *seen {
	if len(operators(s, it)) == 0 {
		return nil
	}
	return &seen{field: "status", text: "kept by the operator"}
}

// Reasons of events of internal/kube/hotloop, which is about controllers and no part of programs that explain.
const (
	hotLoopBegins = "HotLoop"
	hotLoopEnds   = "HotLoopEnded"
)

// hotLoop: the detector has told of a fight, and not of its end.
func hotLoop(s *scene, it *item) *seen {
	var last *corev1.Event
	for i := range s.Warnings {
		e := &s.Warnings[i]
		about := Object{e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name} == it.Object
		if about && (e.Reason == hotLoopBegins || e.Reason == hotLoopEnds) && (last == nil || !lastSeen(e).Before(lastSeen(last))) {
			last = e
		}
	}
	if last == nil || last.Reason == hotLoopEnds || s.Now.Sub(lastSeen(last)) > time.Hour {
		return nil
	}
	return &seen{field: "event", text: "HotLoop: " + Clean(last.Message), since: lastSeen(last)}
}

// ignitionDown: machines can't get their configuration although there are to be some.
func ignitionDown(s *scene, it *item) *seen {
	c := conditions.Get(it.conditions, hyperv1.IgnitionEndpointAvailable)
	if c == nil || c.Status != no || !conditions.IsTrue(it.conditions, hyperv1.HostedClusterAvailable) {
		return nil
	}
	for _, p := range nodePools(s, it) {
		if n := p.typed.(*hyperv1.NodePool).Spec.Replicas; n == nil || *n > 0 {
			return ofCondition(*c)
		}
	}
	return nil
}

func hasControlPlane(s *scene, it *item) *seen {
	if len(controlPlane(s, it)) == 0 || pause.Asleep(it.conditions) {
		return nil
	}
	return &seen{field: "spec", text: "has a control plane"}
}

func hasPools(s *scene, it *item) *seen {
	pools := nodePools(s, it)
	if len(pools) == 0 || pause.Asleep(it.conditions) {
		return nil
	}
	return &seen{field: "spec", text: fmt.Sprintf("has %d NodePools", len(pools))}
}

// Edges from a HostedCluster.

func controlPlane(s *scene, it *item) []*item {
	return s.named(kindHostedControlPlane, names.ControlPlaneNamespace(it.Namespace, it.Name), it.Name)
}

func controlPlaneNamespace(s *scene, it *item) []*item {
	return s.named(kindNamespace, "", names.ControlPlaneNamespace(it.Namespace, it.Name))
}

func nodePools(s *scene, it *item) []*item {
	return s.filter(kindNodePool, func(p *item) bool {
		return p.Namespace == it.Namespace && p.typed.(*hyperv1.NodePool).Spec.ClusterName == it.Name
	})
}

func ignitionServer(s *scene, it *item) []*item {
	return s.named(kindDeployment, names.ControlPlaneNamespace(it.Namespace, it.Name), names.IgnitionServer)
}

func tunnel(s *scene, it *item) []*item {
	ns := names.ControlPlaneNamespace(it.Namespace, it.Name)
	return append(s.named(kindDeployment, ns, "konnectivity-server"), s.named(kindDeployment, ns, "konnectivity-agent")...)
}

// hostedSide are the nodes of a hosted cluster.
func hostedSide(s *scene, it *item) []*item {
	return s.filter(kindHostedNode, func(n *item) bool { return n.hosted == it.Namespace+"/"+it.Name })
}

// operators are those of the installation that this object needs.
func operators(s *scene, it *item) []*item {
	if s.OperatorNamespace == "" {
		return nil
	}
	in := func(o *item) bool { return o.Namespace == s.OperatorNamespace }
	return append(s.filter(kindDeployment, in), s.filter(kindLease, in)...)
}

// named is the one object of that name, or none.
func (s *scene) named(kind, namespace, name string) []*item {
	if it := s.byName[Object{kind, namespace, name}]; it != nil {
		return []*item{it}
	}
	return nil
}

// filter are the objects of a kind that fit, by name.
func (s *scene) filter(kind string, fits func(*item) bool) []*item {
	var out []*item
	for _, it := range s.byKind[kind] {
		if fits(it) {
			out = append(out, it)
		}
	}
	return out
}
