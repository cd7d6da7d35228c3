package hostedcontrolplane

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/defrag"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/release"
)

// Observed is everything that the report may look at.
type Observed struct {
	HCP *hyperv1.HostedControlPlane

	// Flavour is whose components the control plane has.
	Flavour flavour
	// New is true as long as nothing keeps data: there is no StatefulSet of etcd.
	New bool
	// Routes says whether the management cluster serves Routes.
	Routes bool
	// Routing says who serves Routes.
	Routing endpoints.Routing
	// Invalid says why the management cluster cannot do what the spec asks for. nil when it can.
	Invalid error
	// Pause is spec.pausedUntil, parsed.
	Pause pause.Pause

	// Release is that of the control plane and UserRelease that of the hosted cluster. nil when ReleaseErr or UserReleaseErr says why, or when the
	// pass did not get that far.
	Release, UserRelease       *release.Release
	ReleaseErr, UserReleaseErr error
	// MissingImages are tags that components need and the release lacks.
	MissingImages []string
	// OAuth is true when the release brings an OAuth server that users log in by, and IDPProblem says which of its identity providers are left out,
	// and why; nil: none is.
	OAuth      bool
	IDPProblem error
	// OpenID are what issuers of identity providers answered, by the provider's name; AskAgain is when to look for more, 0: no need.
	OpenID   map[string]component.OpenIDAnswer
	AskAgain time.Duration
	// Catalogs are the images of operator catalogs by name; nil: none are beside the control plane, or nobody has looked.
	Catalogs map[string]component.CatalogImage
	// Kubeadmin says whether the first administrator has a password. nil when the pass did not look.
	Kubeadmin *bool

	// Infra is where the API is published; InfraErr says why that could not be read.
	Infra    endpoints.Status
	InfraErr error
	// RoutesFound are the Routes of the control plane by name, as far as the management cluster serves them and the pass has looked.
	RoutesFound map[string]endpoints.LiveRoute
	// PKIProblems need a person.
	PKIProblems []error
	// Renew is when a certificate is due; 0: none is.
	Renew time.Duration
	// trust identifies the authorities that the pass has left, and awaitsRollout says that one of them waits until all components run with them. Empty when
	// the pass did not get that far.
	trust         string
	awaitsRollout bool
	// Management is what components may know of the management cluster.
	Management component.Management

	// Etcd and APIServer are the workloads, nil when they do not exist.
	Etcd      *appsv1.StatefulSet
	APIServer *appsv1.Deployment
	// EtcdClaims says what keeps the volumes of etcd from being bound, and its pods from a node.
	EtcdClaims []string
	// Troubles are why pods do not run, the likeliest root cause first.
	Troubles []trouble.Trouble
	// EtcdShards are the shards of etcd that the spec asks for.
	EtcdShards []etcdShard
	// EtcdSpaces say how much room the databases have, as far as they were looked at.
	EtcdSpaces []defrag.Space
	// Deployments are those of the control plane's components.
	Deployments []appsv1.Deployment
	// Components are the reports of the components.
	Components []hyperv1.ControlPlaneComponent
	// ComponentsCurrent is true when every component was reconciled in this pass without an error.
	ComponentsCurrent bool

	// AdminKubeconfig and CustomKubeconfig name the Secrets that exist. nil when they do not.
	AdminKubeconfig, CustomKubeconfig *hyperv1.KubeconfigSecretRef
	// kubeconfig is the content of AdminKubeconfig.
	kubeconfig []byte

	// Health is what the published endpoint answered, nil before the first answer.
	Health *health
}

// etcdShard is an etcd for some resources.
type etcdShard struct {
	name      string
	workload  *appsv1.StatefulSet // nil when it does not exist
	obstacles []string            // as Observed.EtcdClaims
}

// desired is a release as the version histories hold it.
func desired(r *release.Release) configv1.Release {
	return configv1.Release{Version: r.Version, Image: r.Pinned()}
}
