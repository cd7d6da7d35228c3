package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
)

// observed is everything that a decision may look at. Adding a read means adding a field.
type observed struct {
	pool *hyperv1.NodePool
	hc   *hyperv1.HostedCluster
	// namespace of the control plane; namespaceErr says why nothing can be made in it.
	namespace    string
	namespaceErr error

	platform    platform.Platform // nil with platformErr
	platformErr error
	release     *release.Release // nil with releaseErr
	releaseErr  error

	// userConfig are the ConfigMaps of spec.config, coreConfig those that the control plane made.
	userConfig, coreConfig []nodeconfig.Source
	userConfigErr          error

	// tuningConfig are the ConfigMaps of spec.tuningConfig by name, and generated those of the pool in the control plane namespace: ours for the tuning
	// operator, and its own. For OpenShift releases.
	tuningConfig []nodeconfig.Source
	tuningErr    error
	generated    []corev1.ConfigMap
	// foreign are the other ConfigMaps of that namespace by name, and whose they are: copies of this pool's must not have their names.
	foreign map[string]string

	ignitionCA []byte // PEM; nil: not there yet
	// pullSecret and trustBundle are contents; the errors say what is wrong with them.
	pullSecret, trustBundle       []byte
	pullSecretErr, trustBundleErr error

	template    *machine.Template // nil: no machines of ours, or an error
	templateErr error

	secrets     []corev1.Secret // token and user data Secrets of the pool, of all generations
	deployment  *clusterv1.MachineDeployment
	set         *clusterv1.MachineSet
	sets        []clusterv1.MachineSet // of the pool, those of the deployment included
	machines    []clusterv1.Machine    // by name
	healthCheck *clusterv1.MachineHealthCheck
	spotName    string                          // of the health check of machines that may be taken away at any time
	spotChecks  []*clusterv1.MachineHealthCheck // what the pool has of these, under this or its other name
	templates   []metav1.PartialObjectMetadata  // machine templates of the pool
	// kept is what the platform keeps of boot images; nil: nothing. keptErr says why that is not known.
	kept    *machine.KeptImage
	keptErr error
	// infraMachines are the infrastructure provider's, read when the template asks for a change of those that there are, or the platform reports of them.
	infraMachines []unstructured.Unstructured
}

// explain is how the platform tells of its machines, nil when it has no words of its own.
func (o *observed) explain() func(*clusterv1.Machine) string {
	e, ok := o.platform.(platform.MachineExplainer)
	if !ok {
		return nil
	}
	return func(m *clusterv1.Machine) string {
		for i := range o.infraMachines {
			if infra := &o.infraMachines[i]; infra.GetName() == m.Spec.InfrastructureRef.Name {
				return e.ExplainMachine(infra)
			}
		}
		return ""
	}
}

// machineInput is what the platform describes machines from.
func (o *observed) machineInput() machine.Input {
	in := machine.Input{HostedCluster: o.hc, NodePool: o.pool, Release: o.release}
	if o.kept != nil {
		in.NodePool = o.pool.DeepCopy() // its status is written at the end of the pass
		in.NodePool.Status.Platform = o.kept.Status
	}
	return in
}

// observeTemplate asks the platform what machines are made from.
func (r *Reconciler) observeTemplate(ctx context.Context, obs *observed) {
	if keeper, ok := obs.platform.(platform.ImageKeeper); ok {
		if obs.kept, obs.keptErr = keeper.KeptImage(ctx, r.Live, obs.machineInput()); obs.keptErr != nil {
			obs.templateErr = obs.keptErr
			return
		}
	}
	obs.template, obs.templateErr = obs.platform.MachineTemplate(obs.machineInput())
}

// releases is what observing needs of release.Registry.
type releases interface {
	Lookup(ctx context.Context, image string, pullSecret []byte) (*release.Release, error)
}

// observe reads everything. An error means that the API server could not be read; what is wrong with the input is in the result.
func (r *Reconciler) observe(ctx context.Context, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) (*observed, error) {
	obs := &observed{pool: pool, hc: hc, namespace: names.ControlPlaneNamespace(hc.Namespace, hc.Name)}
	if err := r.observeNamespace(ctx, obs); err != nil {
		return nil, err
	}
	if err := errors.Join(r.observeReferences(ctx, obs), r.observeConfig(ctx, obs)); err != nil {
		return nil, err
	}
	if obs.pullSecretErr == nil {
		obs.release, obs.releaseErr = release.WithTrustOf(operator.WithMirrorsOf(r.Releases, hc), obs.trustBundle).Lookup(ctx, pool.Spec.Release.Image, obs.pullSecret)
	} else {
		obs.releaseErr = obs.pullSecretErr
	}
	if obs.release != nil && !obs.release.Kubernetes {
		if err := r.observeTuning(ctx, obs); err != nil {
			return nil, err
		}
	}
	if obs.platform, obs.platformErr = r.Platforms.For(pool.Spec.Platform.Type); obs.platformErr != nil {
		obs.platform = nil
	} else if obs.release != nil {
		r.observeTemplate(ctx, obs)
	}
	return obs, r.observeMachines(ctx, obs)
}

// observeNamespace finds out whether the namespace is that of our HostedCluster: two of them can have the same name for it.
func (r *Reconciler) observeNamespace(ctx context.Context, obs *observed) error {
	ns := &corev1.Namespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: obs.namespace}, ns)
	switch {
	case apierrors.IsNotFound(err):
		obs.namespaceErr = fmt.Errorf("namespace %s does not exist yet", obs.namespace)
	case err != nil:
		return fmt.Errorf("reading Namespace %s: %w", obs.namespace, err)
	case ns.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(obs.hc):
		obs.namespaceErr = fmt.Errorf("namespace %s belongs to another hosted cluster", obs.namespace)
	case !ns.DeletionTimestamp.IsZero():
		obs.namespaceErr = fmt.Errorf("namespace %s is being deleted", obs.namespace)
	}
	return nil
}

// observeReferences reads what the HostedCluster and the control plane have for machines. These are read from the API server: a cache of
// all Secrets would be large and a risk.
func (r *Reconciler) observeReferences(ctx context.Context, obs *observed) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: obs.hc.Namespace, Name: obs.hc.Spec.PullSecret.Name}
	switch found, err := r.get(ctx, key, secret); {
	case err != nil:
		return err
	case !found:
		obs.pullSecretErr = fmt.Errorf("Secret %s, which spec.pullSecret of the HostedCluster names, does not exist", key)
	case len(secret.Data[names.DockerConfigKey]) == 0:
		obs.pullSecretErr = fmt.Errorf("Secret %s, which spec.pullSecret of the HostedCluster names, has no key %s", key, names.DockerConfigKey)
	default:
		obs.pullSecret = secret.Data[names.DockerConfigKey]
	}
	if ref := obs.hc.Spec.AdditionalTrustBundle; ref != nil {
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: obs.hc.Namespace, Name: ref.Name}
		switch found, err := r.get(ctx, key, cm); {
		case err != nil:
			return err
		case !found || cm.Data[names.CABundleKey] == "":
			obs.trustBundleErr = fmt.Errorf("ConfigMap %s, which spec.additionalTrustBundle of the HostedCluster names, does not exist or has no key %s", key, names.CABundleKey)
		default:
			obs.trustBundle = []byte(cm.Data[names.CABundleKey])
		}
	}
	ca := &corev1.Secret{}
	found, err := r.get(ctx, client.ObjectKey{Namespace: obs.namespace, Name: ignitionCASecret}, ca)
	if found {
		obs.ignitionCA = ca.Data[ignitionCAKey]
	}
	return err
}

// get reads from the API server and tells whether the object exists.
func (r *Reconciler) get(ctx context.Context, key client.ObjectKey, obj client.Object) (bool, error) {
	err := r.Live.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", obj, key, err)
	}
	return true, nil
}

// observeConfig reads the manifests that configure machines.
func (r *Reconciler) observeConfig(ctx context.Context, obs *observed) error {
	for _, ref := range obs.pool.Spec.Config {
		cm := &corev1.ConfigMap{}
		found, err := r.get(ctx, client.ObjectKey{Namespace: obs.pool.Namespace, Name: ref.Name}, cm)
		if err != nil {
			return err
		}
		text, ok := cm.Data[configKey]
		switch {
		case !found:
			obs.userConfigErr = errors.Join(obs.userConfigErr, fmt.Errorf("ConfigMap %q, which spec.config names, does not exist in namespace %s", ref.Name, obs.pool.Namespace))
		case !ok:
			obs.userConfigErr = errors.Join(obs.userConfigErr, fmt.Errorf("ConfigMap %q, which spec.config names, has no key %s", ref.Name, configKey))
		default:
			obs.userConfig = append(obs.userConfig, nodeconfig.Source{Name: fmt.Sprintf("ConfigMap %q", ref.Name), Data: text})
		}
	}
	list := &corev1.ConfigMapList{}
	if err := r.Live.List(ctx, list, client.InNamespace(obs.namespace), client.MatchingLabels{hyperv1.CoreIgnitionConfigLabel: "true"}); err != nil {
		return fmt.Errorf("listing the ConfigMaps with the control plane's machine configuration: %w", err)
	}
	for _, cm := range list.Items {
		obs.coreConfig = append(obs.coreConfig, nodeconfig.Source{Name: fmt.Sprintf("ConfigMap %s/%s", cm.Namespace, cm.Name), Data: cm.Data[configKey]})
	}
	slices.SortFunc(obs.coreConfig, func(a, b nodeconfig.Source) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// maxGenerated bounds what is read of the control plane namespace: a pool has a few ConfigMaps there.
const maxGenerated = 200

// maxForeign bounds how many names are: a control plane has dozens, and each of its pools a few.
const maxForeign = 2000

// observeTuning reads what node tuning goes by.
func (r *Reconciler) observeTuning(ctx context.Context, obs *observed) error {
	for _, ref := range obs.pool.Spec.TuningConfig {
		cm := &corev1.ConfigMap{}
		found, err := r.get(ctx, client.ObjectKey{Namespace: obs.pool.Namespace, Name: ref.Name}, cm)
		if err != nil {
			return err
		}
		text, ok := cm.Data[tuningKey]
		switch {
		case !found:
			obs.tuningErr = errors.Join(obs.tuningErr, fmt.Errorf("ConfigMap %q, which spec.tuningConfig names, does not exist in namespace %s", ref.Name, obs.pool.Namespace))
		case !ok:
			obs.tuningErr = errors.Join(obs.tuningErr, fmt.Errorf("ConfigMap %q, which spec.tuningConfig names, has no key %s", ref.Name, tuningKey))
		default:
			obs.tuningConfig = append(obs.tuningConfig, nodeconfig.Source{Name: ref.Name, Data: text})
		}
	}
	list := &corev1.ConfigMapList{}
	if err := r.Live.List(ctx, list, client.InNamespace(obs.namespace), client.MatchingLabels{hyperv1.NodePoolLabel: obs.pool.Name}, client.Limit(maxGenerated)); err != nil {
		return fmt.Errorf("listing the ConfigMaps of the pool's tuning: %w", err)
	}
	obs.generated = list.Items
	slices.SortFunc(obs.generated, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	if len(obs.pool.Spec.TuningConfig)+len(obs.pool.Spec.Config) == 0 {
		return nil
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := r.Live.List(ctx, all, client.InNamespace(obs.namespace), client.Limit(maxForeign)); err != nil {
		return fmt.Errorf("listing the ConfigMaps of the control plane: %w", err)
	}
	obs.foreign = map[string]string{}
	for i := range all.Items {
		switch pool := all.Items[i].Labels[hyperv1.NodePoolLabel]; pool {
		case obs.pool.Name:
		case "":
			obs.foreign[all.Items[i].Name] = "the control plane"
		default:
			obs.foreign[all.Items[i].Name] = "NodePool " + pool
		}
	}
	return nil
}

// observeMachines reads the pool's objects of Cluster API, and its Secrets.
func (r *Reconciler) observeMachines(ctx context.Context, obs *observed) error {
	if err := r.readSecrets(ctx, obs); err != nil {
		return err
	}
	if !r.ClusterAPI {
		return nil
	}
	key := client.ObjectKey{Namespace: obs.namespace, Name: obs.pool.Name}
	md, ms, mhc := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.MachineHealthCheck{}
	for obj, found := range map[client.Object]func(){
		md:  func() { obs.deployment = md },
		ms:  func() { obs.set = ms },
		mhc: func() { obs.healthCheck = mhc },
	} {
		err := r.Client.Get(ctx, key, obj)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading %T %s: %w", obj, key, err)
		case obj.GetAnnotations()[hyperv1.NodePoolAnnotation] == keyOf(obs.pool):
			found()
		}
	}
	if err := r.readSpotChecks(ctx, obs); err != nil {
		return err
	}
	var err error
	if obs.machines, obs.sets, err = r.readMachines(ctx, obs.namespace, keyOf(obs.pool)); err != nil {
		return err
	}
	if obs.template == nil {
		return nil
	}
	if obs.templates, err = r.readTemplates(ctx, obs); err != nil {
		return err
	}
	if kind := obs.infraKind(); !kind.Empty() {
		obs.infraMachines, err = r.readInfraMachines(ctx, obs, kind)
	}
	return err
}

// infraKind is that of the infrastructure machines that are to be read; empty: none.
func (o *observed) infraKind() schema.GroupVersionKind {
	if o.template.Retag != nil {
		return o.template.Retag.Kind
	}
	if reporter, ok := o.platform.(platform.MachineReporter); ok && len(o.machines) > 0 {
		return reporter.MachineKind()
	}
	return schema.GroupVersionKind{}
}

// readInfraMachines lists the infrastructure provider's machines of the pool, which bear the annotations of their Machines.
func (r *Reconciler) readInfraMachines(ctx context.Context, obs *observed, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Live.List(ctx, list, client.InNamespace(obs.namespace)); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	ours := slices.DeleteFunc(list.Items, func(m unstructured.Unstructured) bool {
		return m.GetAnnotations()[hyperv1.NodePoolAnnotation] != keyOf(obs.pool) || m.GetDeletionTimestamp() != nil
	})
	slices.SortFunc(ours, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return ours, nil
}

// readSpotChecks reads the health check that a pool has while its machines are interruptible, or was so. Which of its names it should have follows from
// the other pools.
func (r *Reconciler) readSpotChecks(ctx context.Context, obs *observed) error {
	candidates := machines.SpotHealthCheckNames(obs.pool.Name)
	namesake, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: obs.pool.Namespace, Name: candidates[0]}, &hyperv1.NodePool{})
	if err != nil {
		return err
	}
	obs.spotName = candidates[0]
	if namesake != nil && namesake.Spec.ClusterName == obs.pool.Spec.ClusterName {
		obs.spotName = candidates[1]
	}
	for _, name := range candidates {
		mhc, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: obs.namespace, Name: name}, &clusterv1.MachineHealthCheck{})
		if err != nil {
			return err
		}
		if mhc != nil && mhc.Annotations[hyperv1.NodePoolAnnotation] == keyOf(obs.pool) {
			obs.spotChecks = append(obs.spotChecks, mhc)
		}
	}
	return nil
}

func (r *Reconciler) readSecrets(ctx context.Context, obs *observed) error {
	secrets := &corev1.SecretList{}
	if err := r.Client.List(ctx, secrets, r.ofPool(obs.namespace, keyOf(obs.pool))...); err != nil {
		return fmt.Errorf("listing the Secrets of the pool: %w", err)
	}
	obs.secrets = slices.DeleteFunc(secrets.Items, func(s corev1.Secret) bool { return s.Annotations[hyperv1.NodePoolAnnotation] != keyOf(obs.pool) })
	slices.SortFunc(obs.secrets, func(a, b corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (r *Reconciler) readMachines(ctx context.Context, namespace, pool string) ([]clusterv1.Machine, []clusterv1.MachineSet, error) {
	machines, sets := &clusterv1.MachineList{}, &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, machines, r.ofPool(namespace, pool)...); err != nil {
		return nil, nil, fmt.Errorf("listing the Machines of the pool: %w", err)
	}
	if err := r.Client.List(ctx, sets, r.ofPool(namespace, pool)...); err != nil {
		return nil, nil, fmt.Errorf("listing the MachineSets of the pool: %w", err)
	}
	ours := slices.DeleteFunc(machines.Items, func(m clusterv1.Machine) bool { return m.Annotations[hyperv1.NodePoolAnnotation] != pool })
	slices.SortFunc(ours, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return ours, slices.DeleteFunc(sets.Items, func(s clusterv1.MachineSet) bool { return poolOfSet(&s) != pool }), nil
}

// readTemplates lists the machine templates of the pool.
func (r *Reconciler) readTemplates(ctx context.Context, obs *observed) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	gvk := obs.platform.Traits().TemplateKind
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := r.Client.List(ctx, list, client.InNamespace(obs.namespace)); err != nil {
		return nil, fmt.Errorf("listing machine templates: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(t metav1.PartialObjectMetadata) bool {
		return t.Annotations[hyperv1.NodePoolAnnotation] != keyOf(obs.pool)
	})
	slices.SortFunc(ours, func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	return ours, nil
}

// poolOfSet is the NodePool of a MachineSet. One that a MachineDeployment made has our annotation in its template at least.
func poolOfSet(ms *clusterv1.MachineSet) string {
	if pool := ms.Annotations[hyperv1.NodePoolAnnotation]; pool != "" {
		return pool
	}
	return ms.Spec.Template.Annotations[hyperv1.NodePoolAnnotation]
}

// poolIndex is the name of the index by which caches find what belongs to a pool without looking at anything else.
const poolIndex = "nodePool"

// ofPool are the options to list what belongs to a pool. Callers filter again: without a cache there is no index.
func (r *Reconciler) ofPool(namespace, pool string) []client.ListOption {
	options := []client.ListOption{client.InNamespace(namespace)}
	if r.Indexed {
		options = append(options, client.MatchingFields{poolIndex: pool})
	}
	return options
}
