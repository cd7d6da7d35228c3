package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/patch"
)

// Deployer brings the programs that the operator deploys for a hosted cluster to what they are with the one or the other storage.
type Deployer interface {
	// Deploy does what a pass about hc would do about Cluster API's manager, the provider and their rights, and, awake, about the
	// control-plane-operator, if hc were stored privately or not. Unless awake, what has no replica keeps none.
	Deploy(ctx context.Context, hc *hyperv1.HostedCluster, private, awake bool) error
	// Speaks says why the control-plane-operator of hc can't work with private types; nil: it can.
	Speaks(ctx context.Context, hc *hyperv1.HostedCluster) error
}

// writers is how many requests are under way at once. The API server answers in milliseconds; the window in which nothing scales is made of them.
const writers = 16

// executor carries plans out.
type executor struct {
	client.Client // under the names that are stored
	deployer      Deployer
	hc            *hyperv1.HostedCluster
	now           time.Time
	// reason is that of a move that was taken back; empty: none is left.
	reason    Reason
	direction Direction
}

// run does all steps. The error is that of the first that failed; what is permanent is a *Failure.
func (x executor) run(ctx context.Context, p Plan) error {
	if p.Ordered {
		for _, s := range p.Steps {
			if err := x.do(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	queue, errs := make(chan Step), make([]error, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for s := range queue {
				if errs[i] == nil {
					errs[i] = x.do(ctx, s)
				}
			}
		})
	}
	for _, s := range p.Steps {
		queue <- s
	}
	close(queue)
	all.Wait()
	return errors.Join(errs...)
}

func (x executor) do(ctx context.Context, s Step) error {
	err := x.step(ctx, s)
	if err == nil {
		return nil
	}
	var failure *Failure
	if errors.As(err, &failure) {
		return err
	}
	reason := Reason("")
	switch {
	case !permanent(err):
	case s.Op == OpCreate:
		reason = ReasonConversion
	case s.Op == OpComplete:
		reason = ReasonStatus
	case s.Op == OpRepoint:
		reason = ReasonRepoint
	case s.Op == OpDeploy || s.Op == OpNoteHCP:
		reason = ReasonWorkload
	case s.Op == OpPause || s.Op == OpCommit:
		reason = ReasonInternal
	}
	if reason != "" {
		return &Failure{reason, fmt.Sprintf("%s: %v", s.Op, err)}
	}
	return fmt.Errorf("%s: %w", s.Op, err)
}

// permanent: the API server won't take the same request a second later.
func permanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}

func (x executor) step(ctx context.Context, s Step) error {
	ns := names.NamespaceOf(x.hc)
	switch s.Op {
	case OpPause:
		return x.annotate(ctx, s.Object.Unstructured, map[string]*string{clusterv1.PausedAnnotation: ptr.To(pausedValue)})
	case OpUnpause:
		change := map[string]*string{copyAnnotation: nil}
		if ours, _ := s.Object.paused(); ours {
			change[clusterv1.PausedAnnotation] = nil
		}
		return x.annotate(ctx, s.Object.Unstructured, change)
	case OpScale, OpRestore:
		return x.scale(ctx, ns, s)
	case OpDeleteLease:
		return x.deleteLease(ctx, ns)
	case OpCreate:
		return x.create(ctx, s)
	case OpComplete:
		return x.complete(ctx, s.Object, s.Copy, s.Target.Unstructured)
	case OpRepoint:
		return x.repoint(ctx, ns, s)
	case OpNoteHCP:
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: x.hc.Name}}
		if err := x.annotate(ctx, hcp, map[string]*string{hyperv1.PrivateCAPITypesAnnotation: isTrue(s.Private)}); err != nil && !isGone(err) {
			return err
		}
		return nil
	case OpDeploy:
		return x.deployer.Deploy(ctx, x.hc, s.Private, s.Awake)
	case OpCommit:
		return x.commit(ctx, s.Private)
	case OpRelease:
		return x.release(ctx, s.Object)
	case OpNotePool:
		err := x.annotate(ctx, s.Pool, map[string]*string{hyperv1.PrivateCAPITypesAnnotation: isTrue(s.Private)})
		return client.IgnoreNotFound(err)
	case OpUnlock:
		return x.unlock(ctx)
	}
	panic("unknown step " + s.Op)
}

func isTrue(b bool) *string {
	if !b {
		return nil
	}
	return ptr.To("true")
}

func (x executor) annotate(ctx context.Context, obj client.Object, annotations map[string]*string) error {
	return x.Patch(ctx, obj, patch.Metadata{Annotations: annotations}.Patch(), client.FieldOwner(fieldOwner))
}

// scale writes how many replicas there are and, the first time, how many there were: in one patch, or a second try would note what the first did.
func (x executor) scale(ctx context.Context, ns string, s Step) error {
	p := s.Program
	var before any
	if s.Op == OpScale {
		before = strconv.Itoa(int(p.Replicas))
		if p.Before != nil {
			before = strconv.Itoa(int(*p.Before))
		}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID, "annotations": map[string]any{beforeAnnotation: before}},
		"spec":     map[string]any{"replicas": s.Replicas},
	})
	if err != nil {
		return err
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: p.Name}}
	if err := x.Patch(ctx, d, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("scaling Deployment %s/%s to %d: %w", ns, p.Name, s.Replicas, err)
	}
	return nil
}

func (x executor) deleteLease(ctx context.Context, ns string) error {
	lease := &coordinationv1.Lease{}
	if err := x.Get(ctx, client.ObjectKey{Namespace: ns, Name: managerLease}, lease); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(x.Delete(ctx, lease, client.Preconditions{UID: &lease.UID}))
}

// create makes a copy, and completes it. One that is there has been made before a crash: the next pass sees it, or that it is somebody else's.
func (x executor) create(ctx context.Context, s Step) error {
	made := s.Copy.DeepCopy()
	unstructured.RemoveNestedField(made.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(made.Object, "status")
	err := x.Create(ctx, made, client.FieldOwner(fieldOwner), client.FieldValidation(metav1.FieldValidationStrict))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating the copy of %s: %w", s.Object.ID(), err)
	}
	return x.complete(ctx, s.Object, s.Copy, made)
}

// complete writes what a creation leaves out: the status, then in one patch who manages which field and that the copy is whole, then that it is
// being deleted. Its finalizers keep it, and it is paused.
func (x executor) complete(ctx context.Context, from Object, made, target *unstructured.Unstructured) error {
	there, _, _ := unstructured.NestedMap(target.Object, "status")
	if status := statusOf(from, made); len(status) > 0 && !reflect.DeepEqual(status, there) {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": target.GetUID()}, "status": status})
		if err != nil {
			return err
		}
		err = x.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner))
		if err != nil {
			return fmt.Errorf("writing the status of the copy of %s: %w", from.ID(), err)
		}
	}
	if from.deleting() && len(from.GetFinalizers()) > 0 && target.GetDeletionTimestamp().IsZero() {
		if err := x.Delete(ctx, target, client.Preconditions{UID: ptr.To(target.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return fmt.Errorf("deleting the copy of %s, which is being deleted: %w", from.ID(), err)
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": target.GetUID(), "managedFields": made.GetManagedFields(), "annotations": map[string]any{copyAnnotation: copyWhole},
	}})
	if err != nil {
		return err
	}
	if err := x.Patch(ctx, target, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing who manages the copy of %s: %w", from.ID(), err)
	}
	return nil
}

// repoint replaces the whole list of owners of the object that was looked at: at no moment does it have two controllers, or none that exists.
func (x executor) repoint(ctx context.Context, ns string, s Step) error {
	d := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: s.Dependent.Name}}
	gvk, err := x.RESTMapper().KindFor(s.Dependent.Resource)
	if err != nil {
		return err
	}
	d.SetGroupVersionKind(gvk)
	body, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": s.Dependent.UID},
		{"op": "test", "path": "/metadata/ownerReferences", "value": s.Dependent.Owners},
		{"op": "replace", "path": "/metadata/ownerReferences", "value": s.Owners},
	})
	if err != nil {
		return err
	}
	err = x.Patch(ctx, d, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(fieldOwner))
	if err == nil || isGone(err) {
		return nil
	}
	if apierrors.IsInvalid(err) { // the test failed: it was changed since, and is looked at again
		return apierrors.NewConflict(s.Dependent.Resource.GroupResource(), s.Dependent.Name, err)
	}
	return fmt.Errorf("giving %s %s its new owner: %w", s.Dependent.Resource.Resource, s.Dependent.Name, err)
}

// commit is the one patch that says where objects are.
func (x executor) commit(ctx context.Context, private bool) error {
	scope := ptr.To(hyperv1.LegacyScope)
	if private {
		scope = nil
	}
	return x.Patch(ctx, x.hc, patch.Metadata{ResourceVersion: x.hc.ResourceVersion, Annotations: map[string]*string{
		hyperv1.PrivateCAPITypesAnnotation: isTrue(private), hyperv1.HostedClusterScopeAnnotation: scope,
	}}.Patch(), client.FieldOwner(fieldOwner))
}

// release takes the finalizers off an object and then deletes it, so that it is never one that is being deleted and has a finalizer.
func (x executor) release(ctx context.Context, o Object) error {
	obj := o.DeepCopy()
	if len(obj.GetFinalizers()) > 0 {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "finalizers": nil}})
		if err != nil {
			return err
		}
		if err := x.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
			return ignoreGone(err)
		}
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return ignoreGone(x.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func ignoreGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// unlock is the last write of a move. What is asked for since the HostedCluster was read has to be looked at first.
func (x executor) unlock(ctx context.Context) error {
	const migrate, back, failed = hyperv1.PrivateCAPIMigrateAnnotation, hyperv1.PrivateCAPIRollbackAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation
	change := map[string]*string{
		hyperv1.PrivateCAPIMigrationInProgressAnnotation: nil, hyperv1.PrivateCAPIMigrationLockAnnotation: nil, hyperv1.PrivateCAPIMigrationAckAnnotation: nil,
		migrate: nil, failed: nil,
	}
	if x.reason != "" {
		change[failed] = ptr.To(string(x.reason))
	} else {
		change[hyperv1.PrivateCAPIMovedAnnotation] = ptr.To(x.now.UTC().Format(time.RFC3339))
	}
	if x.direction == Reverse || x.hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] != "true" {
		// It is done, or would veto every later move: objects in the standard groups can't be moved back.
		change[back] = nil
	}
	if x.direction == Reverse && x.reason == "" {
		if x.hc.Annotations[migrate] == "true" {
			delete(change, migrate) // asked for during the way back, and comes next
		} else {
			change[failed] = ptr.To(string(ReasonRequested)) // or it would be moved again at once
		}
	}
	err := x.Patch(ctx, x.hc, patch.Metadata{ResourceVersion: x.hc.ResourceVersion, Annotations: change}.Patch(), client.FieldOwner(fieldOwner))
	return client.IgnoreNotFound(err)
}

// writeJournal replaces the journal that was read, or makes one.
func writeJournal(ctx context.Context, c client.Client, ns string, j Journal, was *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if was == nil {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: JournalName}, Data: map[string]string{journalKey: string(raw)}}
		return cm, c.Create(ctx, cm, client.FieldOwner(fieldOwner))
	}
	cm := was.DeepCopy()
	cm.Data = map[string]string{journalKey: string(raw)}
	return cm, c.Update(ctx, cm, client.FieldOwner(fieldOwner))
}
