package hostedcluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/platform"
)

// Cluster-scoped rights of the Cluster API programs: to find out which version of a kind follows which version of the contract.
const capiClusterRole = "hypershift-cluster-api"

func capiClusterRoleBinding(hcpNamespace string) string {
	return "hypershift-cluster-api-" + hcpNamespace
}

// machinesDisabled tells that the user manages machines with something else.
func machinesDisabled(hc *hyperv1.HostedCluster) bool {
	_, disabled := hc.Annotations[hyperv1.DisableMachineManagement]
	return disabled
}

// infraCR is the platform's cluster object, nil when there is none to be.
func infraCR(obs *observed) (client.Object, error) {
	if obs.platform == nil || machinesDisabled(obs.hc) {
		return nil, nil
	}
	endpoint := hyperv1.APIEndpoint{}
	if obs.hcp != nil {
		endpoint = obs.hcp.Status.ControlPlaneEndpoint
	}
	return obs.platform.InfraCR(obs.hc, names.NamespaceOf(obs.hc), endpoint)
}

// capiCluster is the Cluster that the machines belong to. Its endpoint is copied from the infrastructure by Cluster API itself.
func capiCluster(hc *hyperv1.HostedCluster, infra client.Object, paused bool) *clusterv1.Cluster {
	gvk := infra.GetObjectKind().GroupVersionKind()
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: hc.Spec.InfraID},
		Spec: clusterv1.ClusterSpec{
			Paused:            ptr.To(paused),
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: hyperv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: hc.Name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: infra.GetName()},
		},
	}
}

// capiStep makes the Cluster and its infrastructure object. It is empty on platforms without Cluster API.
func capiStep(obs *observed) step {
	s := step{name: stepCAPICluster, class: critical}
	infra, err := infraCR(obs)
	if infra == nil || err != nil {
		s.err = err
		return s
	}
	if !obs.caps.ClusterAPI {
		s.err = fmt.Errorf("platform %s needs the kinds of Cluster API, which this management cluster does not serve: run hypershift install", obs.hc.Spec.Platform.Type)
		return s
	}
	if obs.hcp == nil {
		return s // what refers to it comes after it
	}
	s.apply = []client.Object{infra, capiCluster(obs.hc, infra, false)}
	if obs.capiCluster != nil && obs.hcp.Status.Initialized && !initialized(obs.capiCluster) {
		s.initialized = obs.capiCluster
	}
	return s
}

// initialized tells whether Cluster API knows that the control plane has served: one controller looks at the field, others at the condition.
func initialized(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false) &&
		conditions.IsTrue(cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
}

// markInitialized tells Cluster API that the control plane has served. It would look for that in a field of version v1beta2 of its contract,
// which a HostedControlPlane, whose schema is fixed, does not have. Cluster API itself never takes it back, nor a condition that is True.
func markInitialized(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, now time.Time) error {
	after := cluster.DeepCopy()
	after.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	conditions.Set(&after.Status.Conditions, now, metav1.Condition{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, ObservedGeneration: cluster.Generation,
		Reason: clusterv1.ClusterControlPlaneInitializedReason,
	})
	if err := patch.Status(ctx, c, cluster, after); err != nil {
		return fmt.Errorf("marking Cluster %s initialized: %w", client.ObjectKeyFromObject(cluster), err)
	}
	return nil
}

// webhookValidity is long because nobody calls these webhooks: the manager only refuses to start without a certificate.
const webhookValidity = 10 * 365 * 24 * time.Hour

func selfSigned(host string, now time.Time) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(webhookValidity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey}), nil
}

// Times after which the finalizer of a Cluster is removed on platforms whose clusters lie in their namespace altogether, and once nothing
// else is left: see operatorGone for the first two.
const (
	managerGone = operatorGone
	managerDown = operatorDown
	// managerStuck is longer than the 137 s for which a manager that was killed still holds its lease.
	managerStuck = 3 * time.Minute
)

// planCluster decides about the CAPI Cluster. The manager deletes the HostedControlPlane first, then the infrastructure.
func planCluster(r remains, now time.Time, t *teardown) {
	if r.cluster.DeletionTimestamp.IsZero() {
		t.delete = append(t.delete, r.cluster)
		t.waiting = append(t.waiting, waitingFor("Cluster", r.cluster, "Cluster API removes what belongs to it first"))
		return
	}
	hint := "Cluster API removes its finalizer when the HostedControlPlane is gone"
	if r.contained && r.hcp == nil {
		allowance := managerStuck
		switch {
		case r.manager == nil:
			allowance, hint = managerGone, "Cluster API's manager is gone, so its finalizer is removed soon"
		case r.manager.Status.AvailableReplicas == 0:
			allowance, hint = managerDown, "Cluster API's manager does not run, so its finalizer is removed soon"
		}
		left := r.cluster.DeletionTimestamp.Add(allowance).Sub(now)
		t.stripCluster = left <= 0
		t.recheckAfter = min(t.recheckAfter, max(left, time.Second))
	}
	t.waiting = append(t.waiting, waitingFor("Cluster", r.cluster, hint))
}

// unpause lets Cluster API work on a cluster again.
func unpause(ctx context.Context, c client.Client, cluster *clusterv1.Cluster) error {
	body := []byte(`{"spec":{"paused":false}}`)
	if err := c.Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(names.HypershiftOperator)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unpausing Cluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	return nil
}

// remainingCluster reads the CAPI Cluster and its manager.
func (r *Reconciler) remainingCluster(ctx context.Context, hc *hyperv1.HostedCluster, left *remains) (err error) {
	if !r.Capabilities.ClusterAPI || hc.Spec.InfraID == "" {
		return nil
	}
	ns := names.NamespaceOf(hc)
	if left.cluster, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: hc.Spec.InfraID}, &clusterv1.Cluster{}); err != nil || left.cluster == nil {
		return err
	}
	if left.cluster.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(hc) {
		left.cluster = nil
		return nil
	}
	if left.manager, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: clusterapi.Name}, &appsv1.Deployment{}); err != nil {
		return err
	}
	left.provider, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: capiprovider.Name}, &appsv1.Deployment{})
	return err
}

// orphanedAfter is how long machines of a pool may take while one of the programs that remove them does not run. It is longer than a restart.
const orphanedAfter = time.Minute

// orphaned tells that machines wait for somebody who does not come. Where a cluster lies in its namespace altogether, the namespace will take
// them with it.
func orphaned(r remains, now time.Time) bool {
	runs := func(d *appsv1.Deployment) bool { return d != nil && d.Status.AvailableReplicas > 0 }
	if !r.contained || r.cluster == nil || (runs(r.manager) && runs(r.provider)) {
		return false
	}
	for i := range r.pools {
		if since := r.pools[i].DeletionTimestamp; since.IsZero() || now.Sub(since.Time) < orphanedAfter {
			return false
		}
	}
	return true
}

// deleteOrphans lets the platform take the finalizers off machines.
func (r *Reconciler) deleteOrphans(ctx context.Context, hc *hyperv1.HostedCluster) error {
	p, err := platform.For(hc.Spec.Platform.Type)
	if err != nil || !r.Capabilities.ClusterAPI {
		return nil //nolint:nilerr // because a platform that was refused has made no machines
	}
	orphans, ok := p.(platform.OrphanDeleter)
	if !ok {
		return nil
	}
	return orphans.DeleteOrphanedMachines(ctx, r.Client, hc, names.NamespaceOf(hc))
}
