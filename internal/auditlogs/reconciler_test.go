package auditlogs

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// wait bounds what other programs need; a slow machine takes long for it.
const wait = 3 * time.Minute

type scene struct {
	*testing.T
	c   client.WithWatch
	now *testclock.FakePassiveClock
	hcp *hyperv1.HostedControlPlane
}

func newScene(t *testing.T) *scene {
	g, env := NewWithT(t), testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme, auditlogv1alpha1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s := &scene{T: t, c: env.Client(t, scheme), now: testclock.NewFakePassiveClock(time.Now().Truncate(time.Second))}
	s.hcp = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	s.hcp.Spec.ReleaseImage, s.hcp.Spec.InfraID, s.hcp.Spec.IssuerURL = "registry.example.com/release:1", "demo", "https://kubernetes.default.svc"
	s.hcp.Spec.Platform.Type, s.hcp.Spec.PullSecret.Name = hyperv1.NonePlatform, "pull-secret"
	s.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		s.hcp.Spec.Services = append(s.hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	g.Expect(s.c.Create(t.Context(), s.hcp)).To(Succeed())
	t.Cleanup(func() { _ = s.c.Delete(context.Background(), s.hcp) }) // it would count in other tests
	return s
}

func (s *scene) configure(edit func(*auditlogv1alpha1.AuditLogPersistenceConfigSpec)) *auditlogv1alpha1.AuditLogPersistenceConfig {
	config := &auditlogv1alpha1.AuditLogPersistenceConfig{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}, Spec: auditlogv1alpha1.AuditLogPersistenceConfigSpec{Enabled: true}}
	edit(&config.Spec)
	NewWithT(s.T).Expect(s.c.Create(s.Context(), config)).To(Succeed())
	s.Cleanup(func() { _ = s.c.Delete(context.Background(), config) })
	return config
}

// keep is a pass of the Keeper.
func (s *scene) keep() ctrl.Result {
	s.Helper()
	result, err := s.keeper(s.c).Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.hcp)})
	NewWithT(s.T).Expect(err).NotTo(HaveOccurred())
	return result
}

func (s *scene) keeper(c client.Client) *Keeper {
	return &Keeper{Client: c, Live: c, Mapper: s.c.RESTMapper(), Clock: s.now}
}

// serve makes the Pods of a kube-apiserver, and waits for the claim of the first.
func (s *scene) serve() (*appsv1.Deployment, *corev1.Pod) {
	g := NewWithT(s.T)
	settings := auditlogs.Settings{Size: "5Gi", MaxSize: 200, MaxBackup: 10}
	s.hcp.Annotations = map[string]string{auditlogs.SettingsAnnotation: settings.Encode()}
	g.Expect(s.c.Update(s.Context(), s.hcp)).To(Succeed())
	labels := map[string]string{"app": names.KubeAPIServer}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.hcp.Namespace, Name: names.KubeAPIServer}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0), AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: names.KubeAPIServer, Image: "registry.invalid/kas:1", VolumeMounts: []corev1.VolumeMount{{Name: auditlogs.Volume, MountPath: "/var/log/kube-apiserver"}}}},
			Volumes:    []corev1.Volume{{Name: auditlogs.Volume, VolumeSource: settings.Source(names.KubeAPIServer)}},
		}},
	}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.hcp.Namespace, Name: "default"}}
	g.Expect(client.IgnoreAlreadyExists(s.c.Create(s.Context(), sa))).To(Succeed())
	g.Expect(s.c.Create(s.Context(), d)).To(Succeed())
	return d, s.pod("")
}

// pod waits for the Pod, which is not the one named, and its claim.
func (s *scene) pod(not string) *corev1.Pod {
	g, found := NewWithT(s.T), &corev1.Pod{}
	g.Eventually(func(g Gomega) {
		list := &corev1.PodList{}
		g.Expect(s.c.List(s.Context(), list, client.InNamespace(s.hcp.Namespace), client.MatchingLabels{"app": names.KubeAPIServer})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Name).NotTo(Equal(not))
		*found = list.Items[0]
		g.Expect(s.claim(found.Name)).NotTo(BeNil())
	}).WithTimeout(wait).Should(Succeed())
	return found
}

func (s *scene) claim(pod string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	err := s.c.Get(s.Context(), client.ObjectKey{Namespace: s.hcp.Namespace, Name: auditlogs.Claim(pod)}, claim)
	NewWithT(s.T).Expect(client.IgnoreNotFound(err)).To(Succeed())
	if apierrors.IsNotFound(err) {
		return nil
	}
	return claim
}

func (s *scene) owners(pod string) (kinds []string) {
	claim := s.claim(pod)
	if claim == nil {
		return nil
	}
	for _, o := range claim.OwnerReferences {
		kinds = append(kinds, o.Kind)
	}
	return kinds
}

func TestKeeper(t *testing.T) {
	s := newScene(t)
	g, env := NewWithT(t), testenv.Start(t)
	env.StartControllers(t)
	env.StartWorkloadControllers(t)
	d, first := s.serve()
	g.Expect(s.owners(first.Name)).To(ConsistOf("Pod"))
	s.keep()
	g.Expect(s.owners(first.Name)).To(ConsistOf("Pod", "ReplicaSet"))
	g.Expect(metav1.IsControlledBy(s.claim(first.Name), first)).To(BeTrue(), "the kubelet mounts no other")
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := s.keeper(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.hcp)})
		return err
	})

	// Kubernetes' own collector takes the Pod off the claim, and leaves it.
	g.Expect(s.c.Delete(t.Context(), first, client.GracePeriodSeconds(0))).To(Succeed())
	second := s.pod(first.Name)
	g.Eventually(func() []string { return s.owners(first.Name) }).WithTimeout(wait).Should(ConsistOf("ReplicaSet"))
	s.keep()
	g.Expect(s.owners(second.Name)).To(ConsistOf("Pod", "ReplicaSet"))
	g.Expect(s.claim(first.Name).DeletionTimestamp).To(BeNil())

	g.Expect(s.c.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	for _, pod := range []string{first.Name, second.Name} {
		// A protection of claims holds them while nobody runs the controller for it: that they are being deleted is what we look for.
		g.Eventually(func() bool { c := s.claim(pod); return c == nil || c.DeletionTimestamp != nil }).WithTimeout(wait).Should(BeTrue(), "of Pod %s", pod)
	}
}

// snapshotDefinition is as much of VolumeSnapshots as is needed: the real one is not among our modules.
func snapshotDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "volumesnapshots.snapshot.storage.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter/pull/814"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: volumeSnapshot.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "volumesnapshots", Singular: "volumesnapshot", Kind: volumeSnapshot.Kind, ListKind: "VolumeSnapshotList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", XPreserveUnknownFields: ptr.To(true)}}}}}},
		},
	}
}

func (s *scene) snapshots() (found []string) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(volumeSnapshot.GroupVersion().WithKind("VolumeSnapshotList"))
	NewWithT(s.T).Expect(s.c.List(s.Context(), list, client.InNamespace(s.hcp.Namespace))).To(Succeed())
	for _, item := range list.Items {
		found = append(found, item.GetName())
	}
	return found
}

func (s *scene) restarts(pod *corev1.Pod, n int32) {
	g := NewWithT(s.T)
	g.Expect(s.c.Get(s.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: names.KubeAPIServer, Image: "x", ImageID: "x", RestartCount: n}}
	g.Expect(s.c.Status().Update(s.Context(), pod)).To(Succeed())
}

func TestSnapshots(t *testing.T) {
	s := newScene(t)
	g, env := NewWithT(t), testenv.Start(t)
	env.StartWorkloadControllers(t)
	env.Install(t, snapshotDefinition())
	s.configure(func(spec *auditlogv1alpha1.AuditLogPersistenceConfigSpec) {
		spec.Snapshots = auditlogv1alpha1.SnapshotConfig{Enabled: true, PerPodRetentionCount: ptr.To[int32](1), VolumeSnapshotClassName: "fast"}
	})
	d, pod := s.serve()
	t.Cleanup(func() { _ = s.c.Delete(context.Background(), d) })
	claim := s.claim(pod.Name)
	claim.Status.Phase = corev1.ClaimBound
	g.Expect(s.c.Status().Update(t.Context(), claim)).To(Succeed())
	s.keep()
	g.Expect(s.snapshots()).To(BeEmpty(), "nothing restarted")

	s.restarts(pod, 1)
	s.keep()
	g.Expect(s.snapshots()).To(ConsistOf(claim.Name + "-snapshot-1"))
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := s.keeper(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.hcp)})
		return err
	})

	// The next one waits for the interval, is taken then, and the old one goes in the pass after it.
	s.restarts(pod, 2)
	g.Expect(s.keep().RequeueAfter).To(BeNumerically("~", time.Hour, time.Minute))
	g.Expect(s.snapshots()).To(HaveLen(1))
	s.now.SetTime(s.now.Now().Add(time.Hour))
	s.keep()
	s.now.SetTime(s.now.Now().Add(time.Second))
	s.keep()
	g.Expect(s.snapshots()).To(ContainElement(claim.Name + "-snapshot-2"))

	// Somebody who dies between the snapshot and its note takes no second one.
	g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	delete(pod.Annotations, restartsAnnotation)
	delete(pod.Annotations, snapshotAnnotation)
	g.Expect(s.c.Update(t.Context(), pod)).To(Succeed())
	before := s.snapshots()
	s.keep()
	g.Expect(s.snapshots()).To(ConsistOf(before))
}

func TestValidator(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	v := &Validator{Client: s.c, Live: s.c, Mapper: s.c.RESTMapper(), Clock: s.now}
	config := s.configure(func(spec *auditlogv1alpha1.AuditLogPersistenceConfigSpec) { spec.Storage.StorageClassName = "gold" })
	pass := func() map[string]string {
		_, err := v.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(config), config)).To(Succeed())
		said := map[string]string{}
		for _, c := range config.Status.Conditions {
			said[c.Type] = c.Reason
		}
		return said
	}
	g.Expect(pass()).To(Equal(map[string]string{"Valid": "StorageMissing", "Applied": "Invalid"}))
	g.Expect(conditions.Get(config.Status.Conditions, "Valid").Message).To(ContainSubstring("StorageClass gold does not exist"))
	g.Expect(Wanted(config, "")).To(BeEmpty())

	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Provisioner: "example.com/disk"}
	g.Expect(s.c.Create(t.Context(), class)).To(Succeed())
	t.Cleanup(func() { _ = s.c.Delete(context.Background(), class) })
	g.Expect(pass()).To(Equal(map[string]string{"Valid": "AsExpected", "Applied": "Applying"}))
	g.Expect(conditions.Get(config.Status.Conditions, "Applied").Message).To(ContainSubstring(s.hcp.Namespace))
	s.hcp.Annotations = map[string]string{auditlogs.SettingsAnnotation: Wanted(config, "")}
	g.Expect(s.c.Update(t.Context(), s.hcp)).To(Succeed())
	g.Expect(pass()).To(HaveKeyWithValue("Applied", "AsExpected"))
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := (&Validator{Client: c, Live: c, Mapper: s.c.RESTMapper(), Clock: s.now}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
		return err
	})

	config.Spec.Storage.StorageClassName = ""
	g.Expect(s.c.Update(t.Context(), config)).To(Succeed())
	g.Expect(pass()).To(HaveKeyWithValue("Valid", "StorageMissing"), "no class is the default")
	config.Spec.Enabled, config.Spec.Storage.StorageClassName = false, "gold"
	g.Expect(s.c.Update(t.Context(), config)).To(Succeed())
	g.Expect(pass()).To(HaveKeyWithValue("Applied", "Disabled"))
}
