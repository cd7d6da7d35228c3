package state

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/recovery"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/support"
)

// Observed is everything that the plan and the conditions may look at.
type Observed struct {
	HC        *hyperv1.HostedCluster
	HCP       *hyperv1.HostedControlPlane // nil: there is none
	Namespace *corev1.Namespace           // nil: there is none
	Pools     []hyperv1.NodePool
	// CAPICluster is Cluster API's view of the cluster; nil: there is none.
	CAPICluster *clusterv1.Cluster
	Sources     sources.Set // every object that references(hc.Spec) mentions

	Platform    platform.Platform // nil with platformErr
	PlatformErr error
	// DomainErr says why the platform finds no base domain for the cluster, which has none.
	DomainErr error
	// TakenNames are host names that the cluster asks for and others have.
	TakenNames []hostnames.Conflict
	// Elsewhere says whether machines in another cluster are bounded there; nil: there are none.
	Elsewhere *metav1.Condition
	// Credentials and credentialsErr are what the platform asks to have in the namespace.
	Credentials    []client.Object
	CredentialsErr error
	// PlatformObjects are those that the platform's conditions depend on.
	PlatformObjects []client.Object
	Getenv          func(string) string // the operator's environment

	// Target is the release of the control plane, userRelease that of spec.release; the same unless controlPlaneRelease is set.
	Target, UserRelease *release.Release
	ReleaseErr          error
	// Returned is what stands in for spec.release of hc, whose upgrade failed; nil: nothing does. last is the release that was rolled out completely before
	// target, and before what is in it; nil: there is none, it can't be read, or nobody asks.
	Returned *upgrades.Note
	Last     *configv1.UpdateHistory
	Before   *release.Release

	// OperatorImage is what the control-plane-operator runs from, operatorLabels the labels of that image; nil means unknown.
	OperatorImage  string
	OperatorLabels map[string]string

	// Copies are the copies of sources in the control-plane namespace that exist, whether still wanted or not.
	Copies []client.Object

	Ignition *appsv1.Deployment
	// IgnitionEndpoint is where machines reach the ignition server; empty until it is known.
	IgnitionEndpoint string
	Published        PublishedSecrets
	UID              int64 // for the pods of the namespace; 0: the management cluster assigns one itself
	Capabilities     operator.Capabilities
	Documents        bool                                        // OIDC documents are published by the program beside this one
	PrivateCAPI      bool                                        // the operator is one for private types
	Off              []support.Switch                            // parts that the installation lacks
	AuditLogs        *auditlogv1alpha1.AuditLogPersistenceConfig // nil: there is none, or it is not heeded
	// Management is what network policies depend on.
	Management netpolicy.Management
	// Nodes and mirrors are what operators are told of the management cluster; operatorsErr says why that is not known.
	Nodes        component.Management
	Mirrors      string
	OperatorsErr error

	// Etcds are those whose members are replaced when they fail; none when that is switched off. recoveryImage is what does it.
	Etcds         []recovery.Etcd
	RecoveryImage string

	// Troubles are why pods that this operator deploys do not run, the likeliest root cause first.
	Troubles []trouble.Trouble
	// OperatorSince is when the Deployment of a control-plane-operator that does not run was changed, or got on, last; zero: it runs, or nothing is known.
	OperatorSince time.Time
	// Lacking: something that this operator deploys has fewer replicas than wanted. Why may show only later, in a pod, and no event tells of that.
	Lacking bool

	// Hibernation is what the annotation of that name asks for.
	Hibernation pause.Sleep

	// Admission is what became of the question whether there is room; nil: nobody asked.
	Admission *admission.Decision
}

// PublishedSecrets is what the control plane offers for publication, and what is published already.
type PublishedSecrets struct {
	// Kubeconfig, custom and password are the data in the control-plane namespace; nil when it is not there yet.
	Kubeconfig, Custom, Password []byte
	// Existing holds the names of published Secrets that are ours, foreign those that belong to somebody else.
	Existing, Foreign map[string]bool
}

// Offers tells whether there is content for the published Secret of that name.
func (p PublishedSecrets) Offers(hcName, name string) bool {
	return (name == AdminKubeconfigName(hcName) && p.Kubeconfig != nil) || (name == CustomKubeconfigName(hcName) && p.Custom != nil) ||
		(name == KubeadminPasswordName(hcName) && p.Password != nil)
}

// HCPCondition is a condition of the HostedControlPlane, nil when there is none.
func (obs *Observed) HCPCondition(conditionType string) *metav1.Condition {
	if obs.HCP == nil {
		return nil
	}
	return conditions.Get(obs.HCP.Status.Conditions, conditionType)
}

// Exists tells that something of the control plane has been made. Its namespace is made after it was admitted, and nothing before.
func (obs *Observed) Exists() bool {
	if obs.HCP != nil {
		return true
	}
	ns := obs.Namespace
	return ns != nil && ns.DeletionTimestamp.IsZero() && ns.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(obs.HC)
}

// Payload says whether the hosted cluster is known to be one of OpenShift.
func (obs *Observed) Payload() bool { return obs.UserRelease != nil && !obs.UserRelease.Kubernetes }

// PublishedRef refers to a published Secret of ours; nil: there is none of that name.
func (obs *Observed) PublishedRef(name string) *corev1.LocalObjectReference {
	if !obs.Published.Existing[name] {
		return nil
	}
	return &corev1.LocalObjectReference{Name: name}
}

// HasBeenAvailable tells that Available was True once; an annotation remembers it, because conditions forget.
func HasBeenAvailable(hc *hyperv1.HostedCluster) bool {
	return hc.Annotations[hyperv1.HasBeenAvailableAnnotation] == "true"
}

// IsAvailable tells that Available is True now.
func IsAvailable(hc *hyperv1.HostedCluster) bool {
	return conditions.IsTrue(hc.Status.Conditions, hyperv1.HostedClusterAvailable)
}

// Newest is the release that was asked for last; the zero value: none was.
func Newest(v *hyperv1.ClusterVersionStatus) configv1.UpdateHistory {
	if v == nil || len(v.History) == 0 {
		return configv1.UpdateHistory{}
	}
	return v.History[0]
}
