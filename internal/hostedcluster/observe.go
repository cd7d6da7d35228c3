package hostedcluster

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/auditlogs"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/recovery"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/version"
)

// observed is everything that the plan and the conditions may look at.
type observed struct {
	hc        *hyperv1.HostedCluster
	hcp       *hyperv1.HostedControlPlane // nil: there is none
	namespace *corev1.Namespace           // nil: there is none
	pools     []hyperv1.NodePool
	// capiCluster is Cluster API's view of the cluster; nil: there is none.
	capiCluster *clusterv1.Cluster
	sources     sources.Set // every object that references(hc.Spec) mentions

	platform    platform.Platform // nil with platformErr
	platformErr error
	// domainErr says why the platform finds no base domain for the cluster, which has none.
	domainErr error
	// elsewhere says whether machines in another cluster are bounded there; nil: there are none.
	elsewhere *metav1.Condition
	// credentials and credentialsErr are what the platform asks to have in the namespace.
	credentials    []client.Object
	credentialsErr error
	// platformObjects are those that the platform's conditions depend on.
	platformObjects []client.Object
	getenv          func(string) string // the operator's environment

	// target is the release of the control plane, userRelease that of spec.release; the same unless controlPlaneRelease is set.
	target, userRelease *release.Release
	releaseErr          error
	// returned is what stands in for spec.release of hc, whose upgrade failed; nil: nothing does. last is the release that was rolled out completely before
	// target, and before what is in it; nil: there is none, it can't be read, or nobody asks.
	returned *upgrades.Note
	last     *configv1.UpdateHistory
	before   *release.Release

	// operatorImage is what the control-plane-operator runs from, operatorLabels the labels of that image; nil means unknown.
	operatorImage  string
	operatorLabels map[string]string

	// copies are the copies of sources in the control-plane namespace that exist, whether still wanted or not.
	copies []client.Object

	ignition *appsv1.Deployment
	// ignitionEndpoint is where machines reach the ignition server; empty until it is known.
	ignitionEndpoint string
	published        publishedSecrets
	uid              int64 // for the pods of the namespace; 0: the management cluster assigns one itself
	caps             operator.Capabilities
	documents        bool                                        // OIDC documents are published by the program beside this one
	privateCAPI      bool                                        // the operator is one for private types
	off              []support.Switch                            // parts that the installation lacks
	auditLogs        *auditlogv1alpha1.AuditLogPersistenceConfig // nil: there is none, or it is not heeded
	// management is what network policies depend on.
	management netpolicy.Management
	// nodes and mirrors are what operators are told of the management cluster; operatorsErr says why that is not known.
	nodes        component.Management
	mirrors      string
	operatorsErr error

	// etcds are those whose members are replaced when they fail; none when that is switched off. recoveryImage is what does it.
	etcds         []recovery.Etcd
	recoveryImage string

	// troubles are why pods that this operator deploys do not run, the likeliest root cause first.
	troubles []trouble.Trouble
	// lacking: something that this operator deploys has fewer replicas than wanted. Why may show only later, in a pod, and no event tells of that.
	lacking bool

	// hibernation is what the annotation of that name asks for.
	hibernation pause.Sleep

	// admission is what became of the question whether there is room; nil: nobody asked.
	admission *admission.Decision
}

// publishedSecrets is what the control plane offers for publication, and what is published already.
type publishedSecrets struct {
	// kubeconfig, custom and password are the data in the control-plane namespace; nil when it is not there yet.
	kubeconfig, custom, password []byte
	// existing holds the names of published Secrets that are ours, foreign those that belong to somebody else.
	existing, foreign map[string]bool
}

// releases is what observing needs of release.Registry.
type releases interface {
	Lookup(ctx context.Context, image string, pullSecret []byte) (*release.Release, error)
	Inspect(ctx context.Context, image string, pullSecret []byte) (*release.Info, error)
}

// observe reads everything. An error means that the API server could not be read; what is wrong with the user's input is in the result.
func (r *Reconciler) observe(ctx context.Context, hc *hyperv1.HostedCluster) (observed, error) {
	obs := observed{hc: hc, caps: r.Capabilities, privateCAPI: r.PrivateCAPI, documents: r.Documents, hibernation: pause.Hibernation(hc.Annotations, r.Clock.Now())}
	if !r.Environment.SizeTagging {
		obs.off = append(obs.off, support.SizeTagging)
	}
	ns := names.NamespaceOf(hc)
	var err error
	if obs.hcp, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: hc.Name}, &hyperv1.HostedControlPlane{}); err != nil {
		return obs, err
	}
	if obs.namespace, err = r.namespace(ctx, ns); err != nil {
		return obs, err
	}
	if obs.pools, err = operator.NodePoolsOf(ctx, r.Client, hc); err != nil {
		return obs, err
	}
	if r.Capabilities.ClusterAPI && hc.Spec.InfraID != "" {
		if obs.capiCluster, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: hc.Spec.InfraID}, &clusterv1.Cluster{}); err != nil {
			return obs, err
		}
	}
	if obs.sources, err = sources.Read(ctx, r.Live, hc); err != nil {
		return obs, err
	}
	if obs.copies, err = sources.Copies(ctx, r.Client, hc); err != nil {
		return obs, err
	}
	if obs.ignition, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: names.IgnitionServer}, &appsv1.Deployment{}); err != nil {
		return obs, err
	}
	if obs.ignition != nil {
		if obs.ignitionEndpoint, err = r.ignitionEndpoint(ctx, hc, ns); err != nil {
			return obs, err
		}
	}
	if obs.published, err = r.publishedSecrets(ctx, hc, obs.hcp); err != nil {
		return obs, err
	}
	if !r.Capabilities.SecurityContextConstraints {
		if obs.uid, err = r.uids.Allocate(ctx, r.Client, ns, obs.namespace); err != nil {
			return obs, err
		}
	}
	if err := r.observeTroubles(ctx, &obs); err != nil {
		return obs, err
	}
	if obs.management, err = r.Management.Network(ctx); err != nil {
		return obs, err
	}
	if r.AuditLogs {
		if obs.auditLogs, err = read.Optional(ctx, r.Client, client.ObjectKey{Name: auditlogs.ConfigurationName}, &auditlogv1alpha1.AuditLogPersistenceConfig{}); err != nil {
			return obs, fmt.Errorf("reading AuditLogPersistenceConfig %s: %w", auditlogs.ConfigurationName, err)
		}
	}
	obs.management.Prometheus = r.Environment.PrometheusNamespace
	r.observeOperators(ctx, &obs)
	obs.recoveryImage = r.OperatorImage
	if r.EtcdRecovery && obs.hcp != nil {
		if obs.etcds, err = recovery.Observe(ctx, r.Client, r.Live, hc); err != nil {
			return obs, err
		}
	}
	if err := r.observePlatform(ctx, &obs); err != nil {
		return obs, err
	}
	r.observeRelease(ctx, &obs)
	return obs, nil
}

// namespace reads the control-plane namespace. The cache has only ours, so when it has none, the API server is asked whether somebody else's
// is in the way.
func (r *Reconciler) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	ns, err := read.Optional(ctx, r.Client, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if ns != nil || err != nil {
		return ns, err
	}
	return read.Optional(ctx, r.Live, client.ObjectKey{Name: name}, &corev1.Namespace{})
}

func (r *Reconciler) observePlatform(ctx context.Context, obs *observed) (err error) {
	obs.getenv = os.Getenv
	if obs.platform, obs.platformErr = r.Platforms.For(obs.hc.Spec.Platform.Type); obs.platformErr != nil {
		obs.platform = nil
		return nil
	}
	obs.credentials, obs.credentialsErr = obs.platform.Credentials(ctx, r.Live, obs.hc, names.NamespaceOf(obs.hc))
	if o, ok := obs.platform.(platform.Observer); ok {
		obs.platformObjects, err = o.Observe(ctx, r.Client, obs.hc, names.NamespaceOf(obs.hc))
	}
	return err
}

// observeRelease looks the release up, and the image of the control-plane-operator and its labels.
func (r *Reconciler) observeRelease(ctx context.Context, obs *observed) {
	secret, err := obs.sources.PullSecret(obs.hc)
	if err != nil {
		obs.releaseErr = err
		return
	}
	provider := release.WithTrustOf(operator.WithMirrorsOf(r.Releases, obs.hc), obs.sources.TrustBundle(&obs.hc.Spec))
	spec := &obs.hc.Spec
	if obs.userRelease, obs.releaseErr = provider.Lookup(ctx, spec.Release.Image, secret); obs.releaseErr != nil {
		return
	}
	obs.target = obs.userRelease
	if spec.ControlPlaneRelease != nil && spec.ControlPlaneRelease.Image != "" {
		if obs.target, obs.releaseErr = provider.Lookup(ctx, spec.ControlPlaneRelease.Image, secret); obs.releaseErr != nil {
			return
		}
	}
	r.observeLastGood(ctx, obs, provider, secret)
	obs.operatorImage = operatorImage(obs.hc.Annotations, obs.target, r.OperatorImage)
	if labels, ok := obs.hc.Annotations[hyperv1.ControlPlaneOperatorImageLabelsAnnotation]; ok {
		obs.operatorLabels = parseLabels(labels)
		return
	}
	if obs.operatorImage == r.OperatorImage {
		obs.operatorLabels = ownLabels
		return
	}
	// Labels only switch details; when they can't be read, the operator is taken for a current one.
	info, err := provider.Inspect(ctx, obs.operatorImage, secret)
	switch {
	case isPending(err):
		obs.releaseErr = err
	case err == nil:
		obs.operatorLabels = info.Labels
		if obs.operatorLabels == nil {
			obs.operatorLabels = map[string]string{}
		}
	}
}

// ownLabels is what control-plane-operators of our own image can do; no registry has to be asked for that.
var ownLabels = map[string]string{labelCustomKubeconfig: "true", labelSignsCSRs: "true", capiproxy.ImageLabel: "true", images.LabelVersion: version.Semver()}

// operatorImage: the annotation beats the release, and the release beats our own image. What an OpenShift payload has under that tag is another project's,
// which knows nothing of what this one hands over.
func operatorImage(annotations map[string]string, target *release.Release, own string) string {
	if image := annotations[hyperv1.ControlPlaneOperatorImageAnnotation]; image != "" {
		return image
	}
	if image, ok := target.ImageFor(releaseTag); ok && target.Kubernetes {
		return image
	}
	return own
}

// publishedSecrets reads the credentials that the control plane offers, and who holds the names under which they are published.
func (r *Reconciler) publishedSecrets(ctx context.Context, hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) (publishedSecrets, error) {
	p := publishedSecrets{existing: map[string]bool{}, foreign: map[string]bool{}}
	if hcp == nil {
		return p, nil
	}
	var err error
	if ref := hcp.Status.KubeConfig; ref != nil {
		if p.kubeconfig, err = r.secretKey(ctx, hcp.Namespace, ref.Name, ref.Key); err != nil {
			return p, err
		}
	}
	if ref := hcp.Status.CustomKubeconfig; ref != nil {
		if p.custom, err = r.secretKey(ctx, hcp.Namespace, ref.Name, ref.Key); err != nil {
			return p, err
		}
	}
	if ref := hcp.Status.KubeadminPassword; ref != nil {
		if p.password, err = r.secretKey(ctx, hcp.Namespace, ref.Name, passwordKey); err != nil {
			return p, err
		}
	}
	for _, name := range []string{adminKubeconfigName(hc.Name), customKubeconfigName(hc.Name), kubeadminPasswordName(hc.Name)} {
		if err := r.whose(ctx, hc, name, &p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// whose finds out who holds the name of a published Secret. The cache has only ours.
func (r *Reconciler) whose(ctx context.Context, hc *hyperv1.HostedCluster, name string, p *publishedSecrets) error {
	key := client.ObjectKey{Namespace: hc.Namespace, Name: name}
	secret, err := read.Optional(ctx, r.Client, key, &corev1.Secret{})
	if err == nil && secret == nil && p.offers(hc.Name, name) {
		secret, err = read.Optional(ctx, r.Live, key, &corev1.Secret{})
	}
	if err != nil || secret == nil {
		return err
	}
	if secret.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc) {
		p.existing[name] = true
	} else {
		p.foreign[name] = true
	}
	return nil
}

// offers tells whether there is content for the published Secret of that name.
func (p publishedSecrets) offers(hcName, name string) bool {
	return (name == adminKubeconfigName(hcName) && p.kubeconfig != nil) || (name == customKubeconfigName(hcName) && p.custom != nil) ||
		(name == kubeadminPasswordName(hcName) && p.password != nil)
}

func (r *Reconciler) secretKey(ctx context.Context, ns, name, key string) ([]byte, error) {
	secret, err := read.Optional(ctx, r.Live, client.ObjectKey{Namespace: ns, Name: name}, &corev1.Secret{})
	if err != nil || secret == nil {
		return nil, err
	}
	return secret.Data[key], nil
}

// hcpCondition is a condition of the HostedControlPlane, nil when there is none.
func (obs *observed) hcpCondition(conditionType string) *metav1.Condition {
	if obs.hcp == nil {
		return nil
	}
	return conditions.Get(obs.hcp.Status.Conditions, conditionType)
}
