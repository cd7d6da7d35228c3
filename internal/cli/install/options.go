package install

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/support"
)

// Scopes of an installation.
const (
	ScopeAll       = "all"
	ScopeCRDs      = "crds"
	ScopeResources = "resources"
)

// What becomes of hosted control planes that find no room, as the operator's flag of the same name takes it.
const (
	CapacityAuto   = "Auto"
	CapacityWait   = "Wait"
	CapacityIgnore = "Ignore"
)

// DefaultNamespace is where the operator runs unless told otherwise.
const DefaultNamespace = "hypershift"

// defaultExternalDNSImage is the release of external-dns whose flags this package knows.
const defaultExternalDNSImage = "registry.k8s.io/external-dns/external-dns:v0.15.1"

// Options says what to install. NewOptions has the defaults.
type Options struct {
	Connect connect.Flags

	Namespace        string
	Image            string // of the operator; required unless only CRDs are installed
	ImagePullPolicy  corev1.PullPolicy
	PullSecret       []byte // content of a .dockerconfigjson for the operator's own image; nil: none
	Development      bool   // no operator Pod: a developer runs it outside
	Scope            string // ScopeAll, ScopeCRDs or ScopeResources
	TechPreview      bool
	FeatureGates     map[string]string // single gates of the operator, as true or false
	AdminRBAC        bool              // also the ClusterRoles hypershift-client and hypershift-readers
	CIDebugOutput    bool
	MetricsSet       string
	CertRotation     time.Duration
	RegistryOverride map[string]string // image prefix → the prefix to pull from instead
	EtcdRecovery     bool              // a member of etcd that fails is replaced
	SharedIngress    bool              // one endpoint for the API servers of all hosted clusters
	SharedGateway    string            // NAMESPACE/NAME of a Gateway that leads to all hosted clusters by name; empty: none
	SizeTagging      bool              // hosted clusters get sizes
	AuditLogs        bool              // audit logs of hosted API servers outlive their Pods, as AuditLogPersistenceConfig cluster says
	DedicatedNodes   bool              // with SizeTagging: and nodes of their own if they ask for them
	Capacity         string            // CapacityAuto, CapacityWait or CapacityIgnore
	// Replicas is how many Pods each operator has; one of them works at a time. With more than one, another takes over within seconds.
	Replicas int32
	// ReadinessSeconds is how often it is asked whether the operator is ready. A kubelet that has just started waits a random part of it before
	// it asks for the first time, so that local mode asks more often than others need to.
	ReadinessSeconds int32
	OperatorEnv      map[string]string // more environment variables of the operator
	ImageEnv         map[string]string // the operator's variables that name images
	SignaturePolicy  []byte            // which images of releases and packages need which signatures; see internal/oci/signature
	TrustBundle      []byte            // PEM certificates that the operators trust besides those of their image
	WithoutProviders bool              // leave out the definitions of infrastructure providers that are not ours: who makes machines on a cloud installs them
	Platforms        []string          // platforms whose APIs are installed and whose clusters are taken; empty: all but Local
	EgressBlock      []string          // CIDRs that Pods of control planes may not call
	// RestrictOverrides: annotations of HostedClusters that name images, Pod Security level or priorities need verb override; otherwise they cause a warning.
	RestrictOverrides bool
	Monitoring        Monitoring
	Metrics           Metrics
	ExternalDNS       ExternalDNS
	AWS               AWS
	Azure             Azure
	Managed           Managed
	// PrivateCAPI is CAPIAuto, CAPIPrivate or CAPIStandard: where hosted clusters store their objects of Cluster API.
	PrivateCAPI string
	// StoredCAPIOnly serves the kinds of Cluster API in the version alone that they are stored in.
	StoredCAPIOnly  bool
	PackageOperator bool // also the operator of packages, from the same image, and its APIs
	Console         bool // also the web console, from the same image
	// NoNativeSidecars is for management clusters whose init containers can't go on running, before Kubernetes 1.29. Run detects it.
	NoNativeSidecars bool
	// OpenShift leaves the choice of the user id to the management cluster's security context constraints. Run detects it.
	OpenShift bool

	WaitCRDs      bool
	WaitAvailable bool
	Timeout       time.Duration // of the whole installation

	Clock clock.WithTicker // nil: the real one

	// capi is what PrivateCAPI comes to on the management cluster; nil: nobody has looked.
	capi *capiChoice
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		Namespace:         DefaultNamespace,
		ImagePullPolicy:   corev1.PullIfNotPresent,
		Scope:             ScopeAll,
		MetricsSet:        "Telemetry",
		PrivateCAPI:       CAPIAuto,
		CertRotation:      24 * time.Hour,
		Monitoring:        Monitoring{Platform: MonitorNone},
		AWS:               AWS{RoleSource: fromWebIdentity},
		ExternalDNS:       ExternalDNS{Image: defaultExternalDNSImage, Interval: time.Minute, ZonesCache: time.Hour},
		EtcdRecovery:      true,
		DedicatedNodes:    true,
		ReadinessSeconds:  60,
		Capacity:          CapacityAuto,
		Replicas:          1,
		RestrictOverrides: true,
		WaitCRDs:          true,
		Timeout:           10 * time.Minute,
	}
}

// off are the parts that the installation lacks.
func (o Options) off() (list []support.Switch) {
	if !o.SizeTagging {
		list = append(list, support.SizeTagging)
	}
	if !o.AuditLogs {
		list = append(list, support.AuditLogPersistence)
	}
	return list
}

// Validate names each wrong flag and what it takes.
func (o Options) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--namespace %q: %s", o.Namespace, strings.Join(problems, "; ")))
	}
	if o.Image == "" && o.Scope != ScopeCRDs {
		errs = append(errs, errors.New("--hypershift-image is required: name the image that holds the operator, or use --install-scope crds"))
	}
	if namespace, name, ok := strings.Cut(o.SharedGateway, "/"); o.SharedGateway != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		errs = append(errs, fmt.Errorf("--shared-gateway %q: write NAMESPACE/NAME of a Gateway", o.SharedGateway))
	}
	if strings.ContainsAny(o.Image, " \t\n") {
		errs = append(errs, fmt.Errorf("--hypershift-image %q: must be an image reference without blanks", o.Image))
	}
	errs = append(errs,
		validatePrivateCAPI(o.PrivateCAPI),
		oneOf("--control-plane-capacity", o.Capacity, CapacityAuto, CapacityWait, CapacityIgnore),
		oneOf("--install-scope", o.Scope, ScopeAll, ScopeCRDs, ScopeResources),
		oneOf("--metrics-set", o.MetricsSet, "Telemetry", "SRE", "All"),
		oneOf("--image-pull-policy", string(o.ImagePullPolicy), string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever)))
	errs = append(errs, oneOf("--platform-monitoring", o.Monitoring.Platform, MonitorNone, MonitorOperator, MonitorAll), validatePlatforms(o.Platforms), o.Metrics.validate(), o.Monitoring.validate())
	errs = append(errs, o.ExternalDNS.validate()...)
	errs = append(errs, o.AWS.validate()...)
	errs = append(errs, o.Azure.validate()...)
	errs = append(errs, o.Managed.validate()...)
	if o.Replicas < 1 || o.Replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("--replicas %d: must be 1 to %d; --development installs no operator Pod", o.Replicas, maxReplicas))
	}
	if o.CertRotation <= 0 || o.CertRotation > 24*time.Hour {
		errs = append(errs, fmt.Errorf("--cert-rotation-scale %s: must be more than 0 and at most 24h", o.CertRotation))
	}
	for _, cidr := range o.EgressBlock {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			errs = append(errs, fmt.Errorf("--hcp-egress-block-cidrs %q: must be a network like 192.0.2.0/24", cidr))
		}
	}
	if _, err := operator.NewFeatures("", o.FeatureGates); err != nil {
		errs = append(errs, err)
	}
	for name := range o.OperatorEnv {
		if problems := validation.IsEnvVarName(name); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--additional-operator-env-vars %q: %s", name, strings.Join(problems, "; ")))
		}
	}
	for from, to := range o.RegistryOverride {
		if from == "" || to == "" || strings.ContainsAny(from+to, ", ") {
			errs = append(errs, fmt.Errorf("--registry-overrides %q: must be source=mirror pairs, separated by commas", from+"="+to))
		}
	}
	return errors.Join(errs...)
}

// count is how many are given.
func count(given ...bool) (n int) {
	for _, g := range given {
		if g {
			n++
		}
	}
	return n
}

func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q: must be one of %s", flag, value, strings.Join(allowed, ", "))
}
