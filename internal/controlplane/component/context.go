package component

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/release"
)

// Management is what components may know of the management cluster.
type Management struct {
	// Nodes and Zones count what pods can be spread over, without nodes that are kept for pods that serve requests of users.
	// Zero means unknown, and the spread is then required as if there were enough.
	Nodes, Zones int
	// SetDefaultSecurityContext is true where nobody else gives pods a user, that is, on clusters without the
	// SecurityContextConstraints of OpenShift.
	SetDefaultSecurityContext bool
	// DefaultSecurityContextUID is that user. Zero means DefaultSecurityContextUID.
	DefaultSecurityContextUID int64
	// NativeSidecars is true when init containers may have restartPolicy Always (Kubernetes 1.29 and newer).
	NativeSidecars bool
}

// User is the default user of pods.
func (m Management) User() int64 {
	return cmp.Or(m.DefaultSecurityContextUID, DefaultSecurityContextUID)
}

// DefaultSecurityContextUID is the user of control plane pods when the namespace does not have one of its own.
const DefaultSecurityContextUID int64 = 1001

// Signer issues client certificates that the hosted API server accepts.
type Signer interface {
	// ClientCertificate returns a PEM certificate and key for the subject, signed by the cluster signer. existing is the data
	// of the Secret as it is; while its certificate (tls.crt, tls.key) is still good, it comes back unchanged.
	ClientCertificate(ctx context.Context, hcp *hyperv1.HostedControlPlane, subject Subject, existing map[string][]byte) (cert, key []byte, err error)
}

// Subject is who a certificate is for.
type Subject struct {
	CommonName    string
	Organizations []string
}

// Capabilities tells which kinds are served by the management cluster and may be used.
type Capabilities interface {
	Accessible(ctx context.Context, gvk schema.GroupVersionKind) (bool, error)
}

// WorkloadContext is what components are planned from, and what adapt functions and predicates get: everything that can be read, nothing
// that writes. One is made per pass over a HostedControlPlane.
type WorkloadContext struct {
	Context context.Context
	// Reader is the only window to the cluster. Executor.Reconcile sets it.
	Reader client.Reader

	// HCP is the control plane; its namespace is where everything goes. It is not changed.
	HCP *hyperv1.HostedControlPlane
	// Release is the release of the control plane: images and the version that is being rolled out.
	Release *release.Release
	// UserRelease is spec.releaseImage, the release of what runs in the hosted cluster. nil means the same as Release.
	UserRelease *release.Release
	// Infra is where the hosted API is published.
	Infra endpoints.Status

	// Signer issues certificates for ServiceAccount kubeconfigs. It may be nil while no component asks for one.
	Signer Signer
	// Capabilities tells which optional kinds the management cluster serves. nil means none of them.
	Capabilities Capabilities
	// Management is what is known of the management cluster.
	Management Management
	// OperatorImage is the image of the operator that runs this code; only the component that deploys it uses it.
	OperatorImage string

	// OmitOwnerReference is true where the HostedControlPlane is not the owner: for what the hypershift-operator deploys.
	OmitOwnerReference bool
	// Trouble says why pods of a component do not run, as the reason and message of a condition; no reason: nothing is known. nil: nobody
	// has looked.
	Trouble func(component string) (reason, message string)

	// OpenID are what issuers answered, by the name of the identity provider. nil: nobody asks them, as in previews.
	OpenID map[string]OpenIDAnswer

	// Catalogs are the images of operator catalogs by the catalog's name, as registries have them. nil: nobody has looked, as in previews.
	Catalogs map[string]CatalogImage

	// Unconditional plans the component even though its predicate, or something that it waits for, says no; for previews.
	Unconditional bool
	// Unsigned leaves out what needs a certificate; for previews.
	Unsigned bool
	// RestrictedPods says whether namespaces admit only pods that pass the restricted Pod Security Standard. nil: where pods get a default user. For
	// previews, which show a payload's pods as they are published unless told.
	RestrictedPods *bool
	// PublishedRights leaves "*" in the Roles of a payload as published; for previews.
	PublishedRights bool
	// EarlyMonitors renders monitors before the hosted cluster has come up once; for previews.
	EarlyMonitors bool
	// EnableCIDebugOutput makes our own programs log more.
	EnableCIDebugOutput bool
	// MetricsSet selects the metrics that are scraped: Telemetry, SRE or All. Empty means Telemetry.
	MetricsSet string
	// RegistryOverrides is handed on to operators as their flag --registry-overrides: source=mirror,…
	RegistryOverrides string

	// Environment is what the process of the operator was told.
	Environment Environment
	// RegistryMirrors are the mirrors of the management cluster: source=mirror,…
	RegistryMirrors string
	// CAPIProxyImage is the image of the proxy beside programs that speak Cluster API, that of the installation rather than of a release, for it
	// goes with the installation's definitions. Empty means ImageControlPlaneOperator of the release.
	CAPIProxyImage string
	// StoredCAPIGroups is true for a writer that sees the API server as it is, so that Roles have to name the groups of Cluster API as they are
	// stored. Behind the proxy they are translated.
	StoredCAPIGroups bool
	// CertRotationScale is what counts as a day for the rotation of certificates, as a Go duration; empty: a day.
	CertRotationScale string

	// BootstrapHosted makes the first objects of a hosted cluster, given its administrator's kubeconfig. nil means the real
	// thing; tests without a hosted API server replace it.
	BootstrapHosted func(ctx context.Context, kubeconfig []byte) error
}

// CatalogImage is what is known of the image of an operator catalog.
type CatalogImage struct {
	// Image is one by tag that is there, and Digest what it is: sha256:…; empty: not known yet.
	Image, Digest string
	// Problem says why it is not known; nil: the registry has not answered yet.
	Problem error
}

// OpenIDAnswer is what is known of an identity provider of type OpenID.
type OpenIDAnswer struct {
	// Issuer was asked for the URLs; empty: it was not, because an annotation gives them.
	Issuer string
	// Authorize, Token and UserInfo are URLs; empty: not known. UserInfo is optional.
	Authorize, Token, UserInfo string
	// Challenge says whether the provider takes a user's name and password, as clients without a browser send them.
	Challenge bool
	// Secret is the version of the client's password that Challenge was found with; empty: Challenge isn't known.
	Secret string
	// Problem says what could not be found out; what is known from before holds all the same.
	Problem error
}

// complete is ctx with what may be left out.
func (ctx WorkloadContext) complete() WorkloadContext {
	if ctx.UserRelease == nil {
		ctx.UserRelease = ctx.Release
	}
	return ctx
}

// Preview says that nothing is waited for: what others would have made may be absent, and is left out.
func (ctx WorkloadContext) Preview() bool { return ctx.Unconditional || ctx.Unsigned }

// HighlyAvailable says whether the control plane has to survive the loss of one replica.
func (ctx WorkloadContext) HighlyAvailable() bool {
	return ctx.HCP.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable
}

// dedicatedRequestServing says whether request-serving pods have nodes of their own.
func (ctx WorkloadContext) dedicatedRequestServing() bool {
	return ctx.HCP.Annotations[topologyAnnotation] == dedicatedRequestServing
}
