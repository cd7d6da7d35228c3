package reencryption

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is one API server that is both clusters, with a control-plane-operator that does no more than the keys.
type world struct {
	client client.WithWatch
	hcp    *hyperv1.HostedControlPlane
	// written is the key that wrote each Secret last, by namespace and name.
	written map[string]string
	// refuse is the answer to writing a Secret; nil lets it through.
	refuse func(name string) error
	// silent is a Secret whose writing nobody answers, and patience how long that is waited for.
	silent   string
	patience time.Duration
}

func newWorld(t testing.TB) *world {
	t.Helper()
	env, scheme := testenv.Start(t), runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{written: map[string]string{}}
	w.client = interceptor.NewClient(env.Client(t, scheme), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if u, ok := obj.(*unstructured.Unstructured); ok && (u.GetKind() == "Secret" || u.GetKind() == "ConfigMap") {
				if obj.GetName() == w.silent {
					<-ctx.Done()
					return fmt.Errorf("Put \"https://hosted\": %w", ctx.Err())
				}
				if w.refuse != nil {
					if err := w.refuse(obj.GetName()); err != nil {
						return err
					}
				}
				w.written[obj.GetNamespace()+"/"+obj.GetName()] = w.keys(t)[:1]
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	w.hcp = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	spec := &w.hcp.Spec
	spec.IssuerURL, spec.PullSecret.Name, spec.Platform.Type, spec.InfraID = "https://kubernetes.default.svc", "pull-secret", hyperv1.NonePlatform, "demo"
	spec.ReleaseImage = "example.com/release:1"
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		spec.Services = append(spec.Services, hyperv1.ServicePublishingStrategyMapping{
			Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
		})
	}
	spec.Etcd.ManagementType = hyperv1.Managed
	spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
	spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key-a"}}}
	w.create(t, w.hcp)
	for _, letter := range []string{"a", "b", "c"} {
		w.create(t, w.secret("key-"+letter, []byte(strings.Repeat(letter, encryption.KeySize))))
	}
	for i := range 5 {
		w.create(t, w.secret(fmt.Sprintf("data-%d", i), []byte("x")))
	}
	t.Cleanup(func() {
		// The next world lists these, too.
		if err := w.client.DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Secret{}, client.InNamespace(w.hcp.Namespace)); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) create(t testing.TB, obj client.Object) {
	t.Helper()
	if err := w.client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func (w *world) secret(name string, key []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: name}, Data: map[string][]byte{hyperv1.AESCBCKeySecretKey: key}}
}

// keys are the letters of the live configuration.
func (w *world) keys(t testing.TB) string {
	t.Helper()
	live, err := encryption.ReadConfig(t.Context(), w.client, w.hcp.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	letters := ""
	for _, key := range live.Keys {
		if key.Name == encryption.Plain.Name {
			letters += "."
		} else if key.Form == encryption.InCloud {
			for _, letter := range []string{"1", "2"} {
				if encryption.CloudKey(cloudRef(letter), "").Name == key.Name {
					letters += letter
				}
			}
		} else if key.Form == encryption.InPlugin {
			letters += strings.ToUpper(string(key.Data[:1]))
		} else {
			letters += string(key.Data[:1])
		}
	}
	return letters
}

func (w *world) read(t testing.TB) *hyperv1.HostedControlPlane {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp); err != nil {
		t.Fatal(err)
	}
	return hcp
}

func (w *world) activate(t testing.TB, letter string) {
	t.Helper()
	hcp := w.read(t)
	hcp.Spec.SecretEncryption.AESCBC.ActiveKey.Name = "key-" + letter
	if err := w.client.Update(t.Context(), hcp); err != nil {
		t.Fatal(err)
	}
}

// operate does the keys as the control-plane-operator does, and rolls them out when so asked.
func (w *world) operate(t testing.TB, rollout bool) {
	t.Helper()
	ns := w.hcp.Namespace
	hcp := w.read(t)
	live, err1 := encryption.ReadConfig(t.Context(), w.client, ns)
	converged, err2 := encryption.Converged(t.Context(), w.client, ns, live.Hash)
	find := func(ref encryption.Ref) *encryption.Key {
		if encryption.HashOf(ref, "") == "" {
			return nil
		}
		if ref.AESCBC == nil {
			return ptr.To(encryption.CloudKey(ref, ""))
		}
		for _, name := range []string{"key-a", "key-b", "key-c"} {
			if key, err := encryption.ReadKey(t.Context(), w.client, ns, name); err == nil {
				if found, ok := key.Matching(ref.AESCBC.DataHash); ok {
					return &found
				}
			}
		}
		t.Fatalf("no Secret has key %s", ref.AESCBC.DataHash)
		return nil
	}
	var spec encryption.Key
	var err3 error
	if active, _, ok := encryption.CloudRefs(hcp); ok {
		spec = encryption.CloudKey(active, "")
	} else {
		spec, err3 = encryption.ReadKey(t.Context(), w.client, ns, hcp.Spec.SecretEncryption.AESCBC.ActiveKey.Name)
		spec = spec.In(encryption.FormOf(hcp))
	}
	status := hcp.Status.SecretEncryption
	active := find(status.ActiveKey)
	if active == nil && encryption.HashOf(status.TargetKey, "") != "" {
		active = &encryption.Plain
	}
	deployed, err6 := encryption.Deployed(t.Context(), w.client, ns)
	next, err4 := encryption.Order(encryption.Wanted{
		Live: live.Keys, Unencrypted: deployed, Converged: converged, Spec: &spec, Active: active, Target: find(status.TargetKey), Promoted: encryption.Promoted(status),
	})
	raw, err5 := encryption.Layout{Resources: []string{"secrets"}, Socket: func(int) string { return "/run/kms.sock" }}.Config(next)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	if encryption.ConfigHash(raw) != live.Hash {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: encryption.ConfigSecret}}
		if _, err := ctrl.CreateOrUpdate(t.Context(), w.client, secret, func() error {
			secret.Data = encryption.Files(next)
			secret.Data[encryption.ConfigKey] = raw
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.deploy(t, encryption.ConfigHash(raw), rollout)
}

// cloudRef names a key of a cloud.
func cloudRef(letter string) encryption.Ref {
	return encryption.Ref{Provider: hyperv1.SecretEncryptionProviderAWS, AWS: &hyperv1.AWSKMSKeyEntry{ARN: "arn:aws:kms:::key/" + letter}}
}

func (w *world) deploy(t testing.TB, hash string, complete bool) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: names.KubeAPIServer}}
	labels := map[string]string{"app": names.KubeAPIServer}
	if _, err := ctrl.CreateOrUpdate(t.Context(), w.client, d, func() error {
		d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels, d.Spec.Template.Annotations = labels, map[string]string{encryption.HashAnnotation: hash}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/kube"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if complete {
		w.rollOut(t)
	}
}

// rollOut completes the Deployment.
func (w *world) rollOut(t testing.TB) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: names.KubeAPIServer}, d); err != nil {
		t.Fatal(err)
	}
	if d.Status.ObservedGeneration == d.Generation {
		return
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := w.client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func (w *world) reconcile(t testing.TB, c client.Client) (ctrl.Result, error) {
	c = testenv.Uncached(c) // neither is cached
	r := &Reconciler{
		Management: c, Hosted: c, Clock: clocktesting.NewFakePassiveClock(noon), PageSize: 3, Request: w.patience,
		Hold: func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 },
	}
	return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
}

// settle runs both operators until nothing is left to do.
func (w *world) settle(t testing.TB, c client.Client) error {
	for range 40 {
		w.operate(t, true)
		if _, err := w.reconcile(t, c); err != nil {
			return err
		}
		hcp := w.read(t)
		if w.done(hcp) && len(w.keys(t)) == 1 {
			_, err := w.reconcile(t, c)
			return err
		}
	}
	return fmt.Errorf("it does not settle: %+v", w.condition(t))
}

func (w *world) done(hcp *hyperv1.HostedControlPlane) bool {
	s := hcp.Status.SecretEncryption
	return conditions.IsTrue(hcp.Status.Conditions, hyperv1.EtcdDataEncryptionUpToDate) && s.TargetKey.AESCBC == nil &&
		s.ActiveKey.AESCBC.Secret.Name == hcp.Spec.SecretEncryption.AESCBC.ActiveKey.Name
}

func (w *world) condition(t testing.TB) string {
	t.Helper()
	c := conditions.Get(w.read(t).Status.Conditions, hyperv1.EtcdDataEncryptionUpToDate)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}
