package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	semver "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/version"
)

// world is what is there already.
type world struct {
	// cluster and namespace have the names of the new ones; nil: there are none.
	cluster   *hyperv1.HostedCluster
	namespace *corev1.Namespace
	// others are all HostedClusters.
	others []hyperv1.HostedCluster
	// sources are those that exist under the names of the new ones, nil where none does.
	sources []client.Object
	// secrets likewise, of the control plane.
	secrets []*corev1.Secret
	// etcd is the StatefulSet of the cluster that is there; nil: there is none.
	etcd *appsv1.StatefulSet
	// versions are the minors that the operator can host; nil: it doesn't say.
	versions []string
}

// look reads what could be in the way.
func look(ctx context.Context, c client.Client, operator string, m made) (world, error) {
	w := world{}
	var err error
	if w.cluster, err = read.Optional(ctx, c, m.key(), &hyperv1.HostedCluster{}); err != nil {
		return w, err
	}
	if w.namespace, err = read.Optional(ctx, c, client.ObjectKey{Name: m.controlPlane()}, &corev1.Namespace{}); err != nil {
		return w, err
	}
	if w.etcd, err = read.Optional(ctx, c, client.ObjectKey{Namespace: m.controlPlane(), Name: names.Etcd}, &appsv1.StatefulSet{}); err != nil {
		return w, err
	}
	all := &hyperv1.HostedClusterList{}
	if err := c.List(ctx, all); err != nil {
		return w, fmt.Errorf("listing HostedClusters: %w", err)
	}
	w.others = all.Items
	for _, s := range m.sources {
		var found client.Object
		key := client.ObjectKeyFromObject(s)
		switch s.(type) {
		case *corev1.Secret:
			if o, err := read.Optional(ctx, c, key, &corev1.Secret{}); err != nil {
				return w, err
			} else if o != nil {
				found = o
			}
		case *corev1.ConfigMap:
			if o, err := read.Optional(ctx, c, key, &corev1.ConfigMap{}); err != nil {
				return w, err
			} else if o != nil {
				found = o
			}
		}
		w.sources = append(w.sources, found)
	}
	for _, s := range m.secrets {
		o, err := read.Optional(ctx, c, client.ObjectKeyFromObject(s), &corev1.Secret{})
		if err != nil {
			return w, err
		}
		w.secrets = append(w.secrets, o)
	}
	cm, err := read.Optional(ctx, c, client.ObjectKey{Namespace: operator, Name: "supported-versions"}, &corev1.ConfigMap{})
	if err != nil || cm == nil {
		return w, err
	}
	var supported struct {
		Versions []string `json:"versions"`
	}
	if json.Unmarshal([]byte(cm.Data["supported-versions"]), &supported) == nil {
		w.versions = supported.Versions
	}
	return w, nil
}

// report is what a person decides by.
type report struct {
	lines    []string
	refusals []string
	// again: the HostedCluster is there, by a command that has not ended, and what that has left is to be done.
	again bool
}

// judge says what would be done, and why it can't be. It is pure.
func judge(s saved, w world, m made, t target) report {
	r := report{}
	say := func(format string, args ...any) { r.lines = append(r.lines, fmt.Sprintf(format, args...)) }
	refuse := func(format string, args ...any) { r.refusals = append(r.refusals, fmt.Sprintf(format, args...)) }
	b := s.manifest
	say("Backup         %s of HostedCluster %s/%s, made at %s", b.Backup, b.Cluster.Namespace, b.Cluster.Name, b.Created.Format(time.RFC3339))
	say("Snapshot       revision %d, %d keys, %d bytes; whole, and sealed with key %s", b.Etcd.Revision, b.Etcd.Keys, b.Etcd.Bytes, b.Key)
	say("Release        %s %s", b.Cluster.Version, b.Cluster.Release)
	what := "Restore"
	if t.clone {
		what = "Clone"
	}
	say("%-14s HostedCluster %s/%s with its control plane in namespace %s", what, t.namespace, t.name, m.controlPlane())
	if r.again = begun(s, w, t); r.again {
		say("Continue       it was created from this backup at %s, by a command that has not ended: nothing is restored again. NodePools of the backup that are missing are created, "+
			"unless there is --without-node-pools, and what that command has left is done", w.cluster.CreationTimestamp.UTC().Format(time.RFC3339))
		return r
	}
	say("Objects        %d that it names, %d authorities and keys, %d NodePools", len(m.sources), len(m.secrets)-1, len(m.pools))
	if hc := s.objects.HostedCluster; t.clone && hc.Spec.ServiceAccountSigningKey != nil {
		say("Left out       spec.serviceAccountSigningKey, and issuer %s, which is that key's: the clone makes a key of its own, and its issuer is the default", hc.Spec.IssuerURL)
	}
	sayShards(b, say)
	if len(b.Etcd.Shards) > 0 {
		say("Not saved      shards of etcd start empty: %s", strings.Join(b.Etcd.Shards, ", "))
	}
	if w.cluster != nil {
		refuse("HostedCluster %s/%s exists: destroy it first, or give another name by --name", t.namespace, t.name)
	}
	if ns := w.namespace; ns != nil {
		switch owner := ns.Annotations[hyperv1.HostedClusterAnnotation]; {
		case !ns.DeletionTimestamp.IsZero():
			refuse("namespace %s is being deleted: wait until it is gone", ns.Name)
		case owner != t.namespace+"/"+t.name:
			refuse("namespace %s, which the control plane would be in, exists and is not of this cluster: give another name by --name", ns.Name)
		}
	}
	refuseTwins(s, w, t, refuse)
	for i, have := range w.sources {
		if have != nil && !same(have, m.sources[i]) {
			refuse("%T %s/%s exists with another content: delete or rename it first", have, have.GetNamespace(), have.GetName())
		}
	}
	for i, have := range w.secrets {
		// That of the way to the storage may be left from a try with other credentials.
		if i > 0 && have != nil && !equality.Semantic.DeepEqual(have.Data, m.secrets[i].Data) {
			refuse("Secret %s/%s exists with another content: a control plane has been made there since; delete its namespace first", have.Namespace, have.Name)
		}
	}
	refuseVersions(b, w, refuse)
	if room, need := roomOf(m.cluster), need(b.Largest()); room < need {
		refuse("the volume of etcd has %d bytes, and restoring takes %d: give spec.etcd.managed.storage.persistentVolume.size more", room, need)
	} else {
		say("Room           %d bytes on the volume of etcd, %d are taken for a moment", room, need)
	}
	if p := m.cluster.Spec.Platform.Type; t.clone && p != hyperv1.NonePlatform && p != hyperv1.LocalPlatform {
		refuse("clusters of platform %s can't be cloned: controllers in the clone would take disks and load balancers of the other cluster for their own", p)
	}
	return r
}

// begun says whether the HostedCluster that is there was made of this backup by a command that has not ended: Secret etcd-restore is what goes last. A restore in place has such a
// Secret, too, and is noted.
func begun(s saved, w world, t target) bool {
	hc, ns := w.cluster, w.namespace
	if hc == nil || !hc.DeletionTimestamp.IsZero() || ns == nil || ns.Annotations[hyperv1.HostedClusterAnnotation] != t.namespace+"/"+t.name || len(w.secrets) == 0 || w.secrets[0] == nil {
		return false
	}
	if hc.Spec.Etcd.Managed == nil || !slices.Equal(hc.Spec.Etcd.Managed.Storage.RestoreSnapshotURL, []string{t.url}) {
		return false
	}
	if w.etcd != nil && w.etcd.Annotations[backups.RecoveryAnnotation] != "" {
		return false
	}
	from, saved := hc.Annotations[backups.CloneOfAnnotation], s.objects.HostedCluster
	if t.clone {
		return from == saved.Namespace+"/"+saved.Name
	}
	return from == saved.Annotations[backups.CloneOfAnnotation] && hc.Spec.InfraID == saved.Spec.InfraID
}

// sayShards tells what the backup has of other etcds.
func sayShards(b bundle.Manifest, say func(string, ...any)) {
	for _, s := range b.Shards {
		say("Shard          %s: revision %d, %d keys, %d bytes; whole", s.Name, s.Etcd.Revision, s.Etcd.Keys, s.Etcd.Bytes)
	}
}

// refuseTwins: a restored cluster has the identity of the one that was saved, which must not be there any more.
func refuseTwins(s saved, w world, t target, refuse func(string, ...any)) {
	if t.clone {
		return
	}
	id := s.objects.HostedCluster.Spec.InfraID
	for i := range w.others {
		o := &w.others[i]
		if id != "" && o.Spec.InfraID == id && (o.Namespace != t.namespace || o.Name != t.name) {
			refuse("HostedCluster %s/%s is the one that was saved (infraID %s): destroy it first, or make a second one with its data by hypershift clone", o.Namespace, o.Name, id)
		}
	}
}

// refuseVersions: what made the backup, or what runs in it, may be newer than what is here.
func refuseVersions(b bundle.Manifest, w world, refuse func(string, ...any)) {
	ours, err := semver.ParseSemantic(version.Semver())
	theirs, errTheirs := semver.ParseSemantic(b.Producer)
	if err == nil && errTheirs == nil && (theirs.Major() > ours.Major() || theirs.Major() == ours.Major() && theirs.Minor() > ours.Minor()) {
		refuse("the backup was made by version %s, and this is %s: use one that is as new", b.Producer, version.Semver())
	}
	if release, err := semver.ParseGeneric(b.Cluster.Version); err == nil && release.Major() > 1 {
		refuse("release %s is an OpenShift payload, whose etcd reads no sealed snapshot: restore a plain one by spec.etcd.managed.storage.restoreSnapshotURL", b.Cluster.Version)
	} else if err == nil && len(w.versions) > 0 {
		if minor := fmt.Sprintf("%d.%d", release.Major(), release.Minor()); !slices.Contains(w.versions, minor) {
			refuse("the operator here can't host release %s: it hosts %s", b.Cluster.Version, strings.Join(w.versions, ", "))
		}
	}
}

// spare is what etcd writes beside its database when it starts.
const spare = 256 << 20

// need is how much of a volume restoring takes: the snapshot as it was read, and the database that is made of it.
func need(bytes int64) int64 { return 2*bytes + spare }

// roomOf is the size of an etcd volume.
func roomOf(hc *hyperv1.HostedCluster) int64 {
	size := resource.MustParse("8Gi") // the default of the API
	if v := hc.Spec.Etcd.Managed.Storage.PersistentVolume; v != nil && v.Size != nil {
		size = *v.Size
	}
	return size.Value()
}

// same compares the content of two sources.
func same(a, b client.Object) bool {
	switch x := a.(type) {
	case *corev1.Secret:
		y, ok := b.(*corev1.Secret)
		return ok && equalData(x.Data, y.Data)
	case *corev1.ConfigMap:
		y, ok := b.(*corev1.ConfigMap)
		return ok && equality.Semantic.DeepEqual(x.Data, y.Data) && equalData(x.BinaryData, y.BinaryData)
	}
	return false
}

func equalData(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || !bytes.Equal(v, w) {
			return false
		}
	}
	return true
}
