package etcdbackup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/version"
)

// pageSize bounds one answer of a list; maxPages what a tenant can make us read.
const pageSize, maxPages = 500, 40

// Keys of the Secret that the Job gets, and the files that it has them in.
const (
	metaKey    = "meta"
	objectsKey = "objects"
)

// payload is the Secret with what the Job stores beside the snapshot: who the cluster is, and its objects, sealed. It carries nothing that could be read without the key.
func (r *Reconciler) payload(ctx context.Context, o observed) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: payloadName(o.backup), Labels: jobLabels(o)}, Data: map[string][]byte{}}
	m := bundle.Manifest{Backup: o.backup.Namespace + "/" + o.backup.Name, Schedule: o.backup.Labels[backups.ScheduleLabel],
		Producer: version.This().Version, Cluster: clusterOf(o)}
	saved, volatile := backups.ShardsOf(o.hcp.Spec.Etcd)
	m.Etcd.Shards = volatile
	for _, name := range saved {
		m.Shards = append(m.Shards, bundle.Shard{Name: name})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the description of the backup: %w", err)
	}
	s.Data[metaKey] = raw
	if len(o.key) == 0 || o.hc == nil {
		return s, nil
	}
	objects, err := r.collect(ctx, o)
	if err != nil {
		return nil, err
	}
	s.Annotations = map[string]string{}
	s.Data[objectsKey], err = objects.Seal(o.key, rand.Reader)
	if errors.Is(err, bundle.ErrTooLarge) && len(objects.Machines) > 0 {
		// They are a record for people, and grow with the cluster.
		s.Annotations[annotationLeftOut] = "the record of its machines"
		s.Data[objectsKey], err = objects.WithoutMachines().Seal(o.key, rand.Reader)
	}
	if err != nil {
		return nil, err
	}
	config := slices.IndexFunc(objects.Authorities, func(s corev1.Secret) bool { return s.Name == encryption.ConfigSecret })
	var keys []string
	if config >= 0 {
		keys = keysIn(&objects.Authorities[config])
	}
	s.Annotations[annotationKeys] = strings.Join(keys, ",")
	return s, nil
}

// keysIn are the names of the keys of an encryption configuration, which don't tell what they are. One that can't be read counts as a key.
func keysIn(config *corev1.Secret) []string {
	keys, err := encryption.ParseKeys(config.Data)
	if err != nil {
		return []string{encryption.ConfigHash(config.Data[encryption.ConfigKey])}
	}
	var list []string
	for _, key := range keys {
		list = append(list, key.Name)
	}
	return list
}

// newKeys are the encryption keys that came after the objects were sealed. The snapshot is taken minutes later, and may hold what was written with them. Keys that
// have gone, or another order, change nothing: the sealed objects have what the snapshot needs. So a change of keys that hangs stops no backups.
func (r *Reconciler) newKeys(ctx context.Context, o *observed) ([]string, error) {
	sealed, ok := o.job.Annotations[annotationKeys]
	if !ok {
		return nil, nil
	}
	config, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: o.backup.Namespace, Name: encryption.ConfigSecret}, &corev1.Secret{})
	if err != nil || config == nil {
		return nil, err
	}
	known := strings.Split(sealed, ",")
	return slices.DeleteFunc(keysIn(config), func(key string) bool { return slices.Contains(known, key) }), nil
}

func clusterOf(o observed) bundle.Cluster {
	c := bundle.Cluster{Name: o.hcp.Name, UID: string(o.hcp.UID), InfraID: o.hcp.Spec.InfraID, ClusterID: o.hcp.Spec.ClusterID, Platform: string(o.hcp.Spec.Platform.Type), Release: o.hcp.Spec.ReleaseImage}
	if o.hc != nil {
		c.Namespace, c.Name, c.UID = o.hc.Namespace, o.hc.Name, string(o.hc.UID)
		c.Release = o.hc.Spec.Release.Image
		if v := o.hc.Status.Version; v != nil {
			for _, h := range v.History {
				if h.Version != "" {
					c.Version = h.Version
					break
				}
			}
		}
	}
	return c
}

// collect reads the objects.
func (r *Reconciler) collect(ctx context.Context, o observed) (bundle.Objects, error) {
	out := bundle.Objects{HostedCluster: o.hc.DeepCopy()}
	pools := &hyperv1.NodePoolList{}
	configs := map[string]bool{}
	if err := r.pages(ctx, pools, o.hc.Namespace, func() error {
		for _, p := range pools.Items {
			if p.Spec.ClusterName != o.hc.Name {
				continue
			}
			out.NodePools = append(out.NodePools, p)
			for _, ref := range slices.Concat(p.Spec.Config, p.Spec.TuningConfig) {
				configs[ref.Name] = true
			}
		}
		return nil
	}); err != nil {
		return out, err
	}
	if err := r.collectSources(ctx, o, configs, &out); err != nil {
		return out, err
	}
	secrets := &corev1.SecretList{}
	err := r.pages(ctx, secrets, o.hcp.Namespace, func() error {
		for _, s := range secrets.Items {
			// While keys of encryption change, the configuration is all that has both.
			if len(s.Data[pki.CAKeyKey]) > 0 || len(s.Data[pki.ServiceAccountPrivateKeyKey]) > 0 || s.Name == encryption.ConfigSecret {
				out.Authorities = append(out.Authorities, s)
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	return out, r.collectMachines(ctx, o, &out)
}

// collectSources reads what the HostedCluster refers to, which the operator has marked, and what its NodePools do.
func (r *Reconciler) collectSources(ctx context.Context, o observed, configs map[string]bool, out *bundle.Objects) error {
	mark := hyperv1.ReferencedResourceAnnotationPrefix + o.hc.Name
	for _, kind := range []string{"Secret", "ConfigMap"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind + "List"})
		err := r.pages(ctx, list, o.hc.Namespace, func() error {
			for _, m := range list.Items {
				_, marked := m.Annotations[mark]
				if !marked && (kind != "ConfigMap" || !configs[m.Name]) {
					continue
				}
				key := client.ObjectKeyFromObject(&m)
				if kind == "Secret" {
					s, err := read.Optional(ctx, r.Client, key, &corev1.Secret{})
					if err != nil || s == nil {
						return err
					}
					out.Secrets = append(out.Secrets, *s)
					continue
				}
				c, err := read.Optional(ctx, r.Client, key, &corev1.ConfigMap{})
				if err != nil || c == nil {
					return err
				}
				out.ConfigMaps = append(out.ConfigMaps, *c)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// collectMachines reads the objects of Cluster API of either group; a group that isn't served has none.
func (r *Reconciler) collectMachines(ctx context.Context, o observed, out *bundle.Objects) error {
	for _, group := range []string{translate.Standard, translate.Private} {
		for _, kind := range []string{"MachineDeployment", "MachineSet", "Machine"} {
			mapping, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("looking up %s.%s: %w", kind, group, err)
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind + "List"))
			if err := r.pages(ctx, list, o.hcp.Namespace, func() error {
				out.Machines = append(out.Machines, list.Items...)
				return nil
			}); err != nil {
				return err
			}
		}
	}
	for i := range out.Machines {
		out.Machines[i].SetManagedFields(nil)
	}
	return nil
}

// pages lists a namespace in parts, which visit finds in list.
func (r *Reconciler) pages(ctx context.Context, list client.ObjectList, namespace string, visit func() error) error {
	pages := 0
	for err := range read.Pages(ctx, r.Client, list, pageSize, client.InNamespace(namespace)) {
		if err != nil {
			return fmt.Errorf("listing %T of namespace %s: %w", list, namespace, err)
		}
		if err := visit(); err != nil {
			return err
		}
		if pages++; pages == maxPages {
			break
		}
	}
	if list.GetContinue() == "" {
		return nil
	}
	return fmt.Errorf("%w: namespace %s has more than %d objects of one kind", bundle.ErrTooLarge, namespace, pageSize*maxPages)
}

// payloadName is the Secret of a backup's Job.
func payloadName(b *hyperv1.HCPEtcdBackup) string { return "etcd-backup-" + string(b.UID) }

// hostedCluster is the one that a control plane says it is of, when that is so.
func (r *Reconciler) hostedCluster(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*hyperv1.HostedCluster, error) {
	key, ok := names.ParseBackReference(hcp.Annotations[hyperv1.HostedClusterAnnotation])
	if !ok {
		return nil, nil
	}
	hc, err := read.Optional(ctx, r.Client, key, &hyperv1.HostedCluster{})
	// The annotation is not proof: a control plane must not write into the status of another's cluster, nor be saved with its Secrets.
	if err != nil || hc == nil || names.NamespaceOf(hc) != hcp.Namespace {
		return nil, err
	}
	return hc, nil
}
