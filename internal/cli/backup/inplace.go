package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	semver "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/etcdrecovery"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/read"
)

// standing is a hosted cluster whose data is to be replaced.
type standing struct {
	cluster *hyperv1.HostedCluster // nil: there is none
	// keys is what kube-apiserver decrypts with; nil: nothing is encrypted. rotation is how far a change of them is.
	keys     *corev1.Secret
	rotation hyperv1.SecretEncryptionStatus
	// image has the programs that restore; empty: the control plane has no operator.
	image    string
	machines []unstructured.Unstructured
	// etcd is its StatefulSet, on which a restore is noted whose command was killed; nil: there is none.
	etcd *appsv1.StatefulSet
}

// lookInPlace reads what is decided by.
func lookInPlace(ctx context.Context, c client.Client, key client.ObjectKey) (standing, error) {
	st := standing{}
	var err error
	if st.cluster, err = read.Optional(ctx, c, key, &hyperv1.HostedCluster{}); err != nil || st.cluster == nil {
		return st, err
	}
	namespace := names.NamespaceOf(st.cluster)
	if st.keys, err = read.Optional(ctx, c, client.ObjectKey{Namespace: namespace, Name: encryption.ConfigSecret}, &corev1.Secret{}); err != nil {
		return st, err
	}
	hcp, err := read.Optional(ctx, c, client.ObjectKey{Namespace: namespace, Name: st.cluster.Name}, &hyperv1.HostedControlPlane{})
	if err != nil {
		return st, err
	}
	if hcp != nil { // the HostedCluster says the same a little later
		st.rotation = hcp.Status.SecretEncryption
	}
	operator, err := read.Optional(ctx, c, client.ObjectKey{Namespace: namespace, Name: names.ControlPlaneOperator}, &appsv1.Deployment{})
	if err != nil {
		return st, err
	}
	if operator != nil {
		for _, container := range operator.Spec.Template.Spec.Containers {
			if container.Name == names.ControlPlaneOperator {
				st.image = container.Image
			}
		}
	}
	if st.etcd, err = read.Optional(ctx, c, client.ObjectKey{Namespace: namespace, Name: names.Etcd}, &appsv1.StatefulSet{}); err != nil {
		return st, err
	}
	st.machines, err = listMachines(ctx, c, namespace)
	return st, err
}

// restoredAt says when the snapshot came, by a command that has not ended; empty: it is to be restored.
func (st standing) restoredAt(url string) string {
	if st.etcd == nil {
		return ""
	}
	return etcdrecovery.RestoredAt(st.etcd, url)
}

// listMachines lists the Machines of either group; a group that isn't served has none.
func listMachines(ctx context.Context, c client.Client, namespace string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, group := range []string{translate.Standard, translate.Private} {
		mapping, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Machine"})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking up Machine.%s: %w", group, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind("MachineList"))
		for err := range read.Pages(ctx, c, list, page, client.InNamespace(namespace)) {
			if err != nil {
				return nil, fmt.Errorf("listing machines of namespace %s: %w", namespace, err)
			}
			out = append(out, list.Items...)
		}
	}
	return out, nil
}

// nodesOnlyIn are the Nodes that Machines of a have become which b doesn't have, sorted. A Machine that both have keeps its Node, whatever is known of it, and so does
// one of b that has got the name of an earlier one's Node: hosts that come again have the names of before.
func nodesOnlyIn(a, b []unstructured.Unstructured) []string {
	kept, nodes := map[string]bool{}, map[string]bool{}
	for _, m := range b {
		if m.GetKind() == "Machine" {
			kept[m.GetName()], nodes[nodeOf(m)] = true, true
		}
	}
	var out []string
	for _, m := range a {
		if node := nodeOf(m); m.GetKind() == "Machine" && node != "" && !kept[m.GetName()] && !nodes[node] {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nodeOf is the name of the Node that a Machine has become; empty: none that is known.
func nodeOf(m unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
	return name
}

// judgeInPlace says what would be done, and why it can't be. It is pure.
func judgeInPlace(s saved, st standing, t target) report {
	r := report{}
	say := func(format string, args ...any) { r.lines = append(r.lines, fmt.Sprintf(format, args...)) }
	refuse := func(format string, args ...any) { r.refusals = append(r.refusals, fmt.Sprintf(format, args...)) }
	b := s.manifest
	say("Backup         %s of HostedCluster %s/%s, made at %s", b.Backup, b.Cluster.Namespace, b.Cluster.Name, b.Created.Format(time.RFC3339))
	say("Snapshot       revision %d, %d keys, %d bytes; whole, and sealed with key %s", b.Etcd.Revision, b.Etcd.Keys, b.Etcd.Bytes, b.Key)
	sayShards(b, say)
	if at := st.restoredAt(t.url); at != "" {
		say("Restored       at %s, by a command that has not ended: nothing is replaced again, and what was written since stays. What that command has left is done; once it is, also with --wait=false, the backup can be restored again", at)
	} else {
		say("Restore        the data of HostedCluster %s/%s, in place: what was written after %s is lost", t.namespace, t.name, b.Created.Format(time.RFC3339))
	}
	if st.cluster == nil {
		refuse("there is no HostedCluster %s/%s: without --in-place, it is created from the backup", t.namespace, t.name)
		return r
	}
	hc := st.cluster
	if id := s.objects.HostedCluster.Spec.InfraID; id != hc.Spec.InfraID {
		refuse("the backup is of another cluster: its infraID is %q, that of HostedCluster %s/%s %q", id, t.namespace, t.name, hc.Spec.InfraID)
	}
	if !hc.DeletionTimestamp.IsZero() {
		refuse("HostedCluster %s/%s is being deleted: wait until it is gone, and restore without --in-place", t.namespace, t.name)
	}
	if conditions.IsTrue(hc.Status.Conditions, hyperv1.HostedClusterHibernated) {
		refuse("HostedCluster %s/%s sleeps: wake it first, by hypershift wake %s", t.namespace, t.name, t.name)
	}
	if hc.Spec.Etcd.Managed == nil {
		refuse("the etcd of HostedCluster %s/%s is yours: restore the snapshot where it runs", t.namespace, t.name)
	} else if room, need := roomOf(hc), need(b.Largest()); room < need {
		refuse("the volume of etcd has %d bytes, and restoring takes %d beside the data that is there: destroy the cluster, and restore with a larger spec.etcd.managed.storage.persistentVolume.size", room, need)
	}
	if st.image == "" {
		refuse("Deployment %s is not there, whose programs restore: restore without --in-place once the cluster is destroyed", names.ControlPlaneOperator)
	}
	refuseVersions(b, world{}, refuse)
	refuseRelease(b.Cluster.Version, hc, refuse)
	if st.restoredAt(t.url) == "" { // what is in may be written with newer ones since
		refuseKeys(s, st, refuse)
	}
	if len(b.Etcd.Shards) > 0 {
		say("Not saved      shards of etcd keep what they have: %s", strings.Join(b.Etcd.Shards, ", "))
	}
	if hc.Spec.Etcd.Managed != nil {
		if err := ofOneBackup(b, hc); err != nil {
			refuse("the backup is not of this cluster's etcds: %v", err)
		}
	}
	say("Machines       %d stay", len(st.machines))
	if later := nodesOnlyIn(st.machines, s.objects.Machines); len(later) > 0 && !s.objects.NoMachines {
		say("Later nodes    %s: they aren't in the backup, and don't come back by themselves. A health check replaces their machines (spec.management.autoRepair); otherwise, delete the Machines",
			strings.Join(later, ", "))
	}
	return r
}

// refuseRelease: an older server can't read what a newer one has stored, nor a much newer one everything of an older.
func refuseRelease(saved string, hc *hyperv1.HostedCluster, refuse func(string, ...any)) {
	now := ""
	if v := hc.Status.Version; v != nil {
		for _, h := range v.History {
			if h.Version != "" {
				now = h.Version
				break
			}
		}
	}
	then, err := semver.ParseGeneric(saved)
	present, errPresent := semver.ParseGeneric(now)
	if err != nil || errPresent != nil {
		return // a release without a number is compared by nobody
	}
	if then.Major() != present.Major() || then.Minor() > present.Minor() || then.Minor()+1 < present.Minor() {
		refuse("the backup is of release %s, and the cluster runs %s: at most one minor version may lie between them, and the backup's must be the older one", saved, now)
	}
}

// refuseKeys: what the snapshot's Secrets are encrypted with must be what kube-apiserver decrypts with.
func refuseKeys(s saved, st standing, refuse func(string, ...any)) {
	var then, now map[string][]byte
	for i := range s.objects.Authorities {
		if a := &s.objects.Authorities[i]; a.Name == encryption.ConfigSecret {
			then = a.Data
		}
	}
	if st.keys != nil {
		now = st.keys.Data
	}
	const remedy = "Destroy the cluster and restore without --in-place, which brings the keys"
	switch {
	case !equality.Semantic.DeepEqual(then, now):
		refuse("Secrets of the backup are encrypted with other keys than those that kube-apiserver has now: they could not be read. %s", remedy)
	case severalKeys(now) && !sameRotation(s.objects.HostedCluster.Status.SecretEncryption, st.rotation):
		refuse("Secrets of the backup are encrypted with several keys, whose change was not where it is now: one of them may be dropped, and what is encrypted with it could not be read any more. %s", remedy)
	}
}

// severalKeys: something stored may be encrypted with any of them.
func severalKeys(config map[string][]byte) bool {
	keys, err := encryption.ParseKeys(config)
	return err == nil && len(keys) > 1
}

// sameRotation says whether a change of keys has the same beginning and end, so that who carries it out, or has, knows of each key that anything in the backup has. A change that
// is under way writes everything again, from the first object, once the data is in.
func sameRotation(then, now hyperv1.SecretEncryptionStatus) bool {
	same := func(a, b encryption.Ref) bool { return encryption.HashOf(a, "") == encryption.HashOf(b, "") }
	return same(then.ActiveKey, now.ActiveKey) && same(then.TargetKey, now.TargetKey)
}

// wayOut lets the pod that restores reach names and the storage, whatever else its namespace forbids.
func wayOut(credentials []byte, namespace string) *networkingv1.NetworkPolicy {
	p := wayTo(credentials, namespace)
	if p == nil {
		p = wayTo([]byte("endpoint_url = https://aws"), namespace)
	}
	p.Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{backups.RestoreLabel: ""}}
	rule := networkingv1.NetworkPolicyEgressRule{}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		for _, port := range []int32{53, 5353} {
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(port))})
		}
	}
	p.Spec.Egress = append(p.Spec.Egress, rule)
	return p
}

// runInPlace replaces the data of a cluster that is there.
func (r *restoring) runInPlace(ctx context.Context, out io.Writer, c client.Client, s opened, read saved, t target) error {
	key := client.ObjectKey{Namespace: t.namespace, Name: t.name}
	st, err := lookInPlace(ctx, c, key)
	if err != nil {
		return err
	}
	report := judgeInPlace(read, st, t)
	for _, line := range report.lines {
		fmt.Fprintln(out, line)
	}
	switch {
	case len(report.refusals) > 0:
		return fmt.Errorf("nothing was written:\n  %s", strings.Join(report.refusals, "\n  "))
	case r.dryRun:
		_, err := fmt.Fprintln(out, "Nothing was written: this was a dry run.")
		return err
	case !r.yes:
		return fmt.Errorf("nothing was written: all data of HostedCluster %s/%s would be replaced: add --yes if you want the backup's data instead", t.namespace, t.name)
	}
	namespace := names.NamespaceOf(st.cluster)
	parts, err := tell(ctx, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}, read.manifest, s.data)
	if err != nil {
		return err
	}
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: backups.Secret}, Data: s.data}
	way := wayOut(s.data[backups.CredentialsKey], namespace)
	for _, o := range []client.Object{access, way} {
		if _, err := connect.Apply(ctx, c, o); err != nil {
			return err
		}
	}
	q := etcdrecovery.Quorum{Client: c, Cluster: key, Namespace: namespace, Name: names.Etcd, From: names.Etcd + "-0", Log: out, Poll: time.Second,
		Snapshot: &etcdrecovery.Snapshot{URL: t.url, Image: st.image, Bump: parts[""].RevisionBump, ShardBumps: bumpsOf(parts), Shards: read.manifest.ShardNames()}}
	err = q.Run(ctx)
	if err != nil && !errors.Is(err, etcdrecovery.ErrNotRestored) {
		return err // the next run needs the Secret, too
	}
	for _, o := range []client.Object{access, way} {
		if gone := client.IgnoreNotFound(c.Delete(ctx, o)); gone != nil {
			return errors.Join(err, fmt.Errorf("deleting %s: %w", connect.DescribeIn(c.Scheme(), o), gone))
		}
	}
	if err != nil {
		return err
	}
	if r.wait {
		if err := r.awaitInPlace(ctx, out, c, st.cluster, read, t); err != nil {
			return err
		}
	}
	return q.Forget(ctx)
}

// awaitInPlace waits until the cluster is available, and cleans up in it.
func (r *restoring) awaitInPlace(ctx context.Context, out io.Writer, c client.Client, hc *hyperv1.HostedCluster, read saved, t target) error {
	p := progress.New(out, nil)
	o := create.NewOptions(hc.Spec.Platform.Type)
	o.Namespace, o.Name, o.Timeout = t.namespace, t.name, r.timeout
	if err := create.Wait(ctx, o, c, p); err != nil {
		return err
	}
	machines, err := listMachines(ctx, c, names.NamespaceOf(hc)) // some were made while it waited
	if err != nil {
		return err
	}
	return r.forgetNodes(ctx, c, t, nodesOnlyIn(read.objects.Machines, machines), p)
}

// forgetNodes deletes the Nodes of machines that have gone since the backup was made.
func (r *restoring) forgetNodes(ctx context.Context, c client.Client, t target, gone []string, p *progress.Printer) error {
	if len(gone) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	hosted, err := hostedClient(ctx, c, r.connect, t)
	if err != nil {
		return err
	}
	err = p.Until(ctx, "the API of the hosted cluster", func(ctx context.Context) (progress.State, error) {
		var errs []error
		for _, name := range gone {
			errs = append(errs, client.IgnoreNotFound(hosted.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
		}
		return progress.Done(), errors.Join(errs...)
	})
	if err == nil {
		p.Printf("deleted in the hosted cluster: Nodes of machines that are gone: %s", strings.Join(gone, ", "))
	}
	return err
}
