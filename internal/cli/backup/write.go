package backup

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/kubeconfig"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/kube/read"
)

// write creates everything; what is there already with the same content is left as it is, so that an interrupted restore can be run again. The HostedCluster comes after all that it
// is made of, since the operator would make authorities of its own.
func write(ctx context.Context, c client.Client, m made, p *progress.Printer) error {
	if err := ensure(ctx, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.cluster.Namespace}}); err != nil {
		return err
	}
	for _, s := range m.sources {
		if err := ensure(ctx, c, s); err != nil {
			return err
		}
	}
	if err := ensure(ctx, c, m.namespace); err != nil {
		return err
	}
	for i, s := range m.secrets {
		if i == 0 {
			// An older one may be left from a try with other credentials.
			if _, err := connect.Apply(ctx, c, s); err != nil {
				return err
			}
			continue
		}
		if err := ensure(ctx, c, s); err != nil {
			return err
		}
	}
	if m.way != nil {
		if _, err := connect.Apply(ctx, c, m.way); err != nil {
			return err
		}
	}
	p.Printf("%d objects and %d authorities are there", len(m.sources), len(m.secrets)-1)
	if err := ensure(ctx, c, m.cluster); err != nil {
		return err
	}
	p.Printf("HostedCluster %s/%s created", m.cluster.Namespace, m.cluster.Name)
	return writePools(ctx, c, m, p)
}

func writePools(ctx context.Context, c client.Client, m made, p *progress.Printer) error {
	for _, pool := range m.pools {
		if err := ensure(ctx, c, pool); err != nil {
			return err
		}
		p.Printf("NodePool %s/%s created", pool.Namespace, pool.Name)
	}
	return nil
}

// ensure creates an object unless it is there. obj isn't changed.
func ensure(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Create(ctx, obj.DeepCopyObject().(client.Object), client.FieldOwner(connect.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", connect.DescribeIn(c.Scheme(), obj), err)
	}
	return nil
}

const (
	// settle bounds how long etcd may take to start without the init container that restores.
	settle = 10 * time.Minute
	// page bounds one answer of the hosted cluster's API.
	page = 500
)

// finish clears up when the cluster is available: what let etcd read the backup goes, and in the hosted cluster what belongs to machines that are no more. The Secret without its
// keys goes last: while it is there, the command can be run again.
func finish(ctx context.Context, c client.Client, flags connect.Flags, m made, t target, p *progress.Printer) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, m.key(), hc); err != nil {
		return fmt.Errorf("reading HostedCluster %s: %w", m.key(), err)
	}
	shards, _ := backups.ShardsOf(m.cluster.Spec.Etcd)
	err := p.Until(ctx, "etcd without its init container", func(ctx context.Context) (progress.State, error) {
		for _, name := range backups.EtcdsOf(shards) {
			set := &appsv1.StatefulSet{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: m.controlPlane(), Name: name}, set); err != nil {
				return progress.State{}, err
			}
			if waits := readsBackup(set); waits != "" {
				return progress.Waiting("%s", waits), nil
			}
		}
		return progress.Done(), nil
	})
	if err != nil {
		return err
	}
	access := m.secrets[0].DeepCopy()
	if err := c.Patch(ctx, access, client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the keys from %s: %w", connect.DescribeIn(c.Scheme(), access), err)
	}
	if m.way != nil {
		if err := drop(ctx, c, m.way.DeepCopy()); err != nil {
			return err
		}
	}
	hosted, err := hostedClient(ctx, c, flags, t)
	if err != nil {
		return err
	}
	// By the clock of the management cluster, not by that of who runs the command: what is older came with the snapshot.
	if err := forgetOld(ctx, hosted, m, t, hc.CreationTimestamp.Time, p); err != nil {
		return err
	}
	return drop(ctx, c, access)
}

func drop(ctx context.Context, c client.Client, o client.Object) error {
	if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", connect.DescribeIn(c.Scheme(), o), err)
	}
	return nil
}

// forgetOld deletes in the hosted cluster what is of machines, and of the cluster that a clone was made of, from before a time.
func forgetOld(ctx context.Context, hosted client.Client, m made, t target, before time.Time, p *progress.Printer) error {
	// Workers of one's own find the same cluster under the same address. Others have been made anew.
	own := m.cluster.Spec.Platform.Type == hyperv1.NonePlatform || m.cluster.Spec.Platform.Type == hyperv1.AgentPlatform
	if own && !t.clone {
		return nil
	}
	lists := []client.ObjectList{&corev1.NodeList{}, &storagev1.VolumeAttachmentList{}, &certificatesv1.CertificateSigningRequestList{}}
	for _, list := range lists {
		if err := deleteOlder(ctx, hosted, list, before, p, nil); err != nil {
			return err
		}
	}
	if err := deleteOlder(ctx, hosted, &coordinationv1.LeaseList{}, before, p, nil, client.InNamespace(corev1.NamespaceNodeLease)); err != nil || !t.clone {
		return err
	}
	token := func(o client.Object) bool { return o.(*corev1.Secret).Type == corev1.SecretTypeServiceAccountToken }
	return deleteOlder(ctx, hosted, &corev1.SecretList{}, before, p, token)
}

// readsBackup says why an etcd may still need what lets it read the backup; empty: it doesn't.
func readsBackup(set *appsv1.StatefulSet) string {
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.Name == backups.Secret {
			return set.Name + " still reads the backup when it starts"
		}
	}
	if s := set.Status; s.UpdatedReplicas < s.Replicas || s.ReadyReplicas < s.Replicas || s.ObservedGeneration < set.Generation {
		return fmt.Sprintf("%d of %d members of %s have been started without it", min(s.UpdatedReplicas, s.ReadyReplicas), s.Replicas, set.Name)
	}
	return ""
}

func hostedClient(ctx context.Context, c client.Client, flags connect.Flags, t target) (client.Client, error) {
	raw, err := kubeconfig.Kubeconfig(ctx, c, kubeconfig.Options{Connect: flags, Name: t.name, Namespace: t.namespace}, io.Discard)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the hosted cluster: %w", err)
	}
	config.Timeout = time.Minute
	return client.New(config, client.Options{Scheme: connect.Scheme()})
}

// deleteOlder deletes what is from before: objects of the backup. which chooses among them; nil: all.
func deleteOlder(ctx context.Context, c client.Client, list client.ObjectList, before time.Time, p *progress.Printer, which func(client.Object) bool, options ...client.ListOption) error {
	n := 0
	for err := range read.Pages(ctx, c, list, page, options...) {
		if err != nil {
			return fmt.Errorf("listing %T in the hosted cluster: %w", list, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		for _, item := range items {
			o, ok := item.(client.Object)
			if !ok {
				continue
			}
			if !o.GetCreationTimestamp().Time.Before(before) || which != nil && !which(o) {
				continue
			}
			uid := o.GetUID()
			if err := c.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return fmt.Errorf("deleting %s in the hosted cluster: %w", connect.DescribeIn(c.Scheme(), o), err)
			}
			n++
		}
	}
	if n > 0 {
		p.Printf("deleted in the hosted cluster: %d old %ss", n, kindOf(list))
	}
	return nil
}

// kindOf is what a list is of.
func kindOf(list client.ObjectList) string {
	return strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
}
