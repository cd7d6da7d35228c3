package create

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
)

// rawFlags are flags whose values are parsed into Options once all flags are known.
type rawFlags struct {
	pullSecret, sshKey, trustBundle, contentSources string
	annotations, labels, tolerations                []string
	nodeSelector, podLabels                         map[string]string
	operatorImage                                   string
	defaultDual                                     bool
}

func addClusterFlags(fs *pflag.FlagSet, o *Options, raw *rawFlags) {
	fs.StringVar(&o.Name, "name", o.Name, "Name of the hosted cluster (required)")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster; it is created when it doesn't exist")
	fs.StringVar(&o.BaseDomain, "base-domain", o.BaseDomain, "DNS suffix of the cluster's host names")
	fs.StringVar(&o.BaseDomainPrefix, "base-domain-prefix", o.BaseDomainPrefix, "DNS label before the base domain (default: the cluster's name; \"none\": no label)")
	fs.StringVar(&o.ReleaseImage, "release-image", o.ReleaseImage, "Release image of the cluster (default: the one that it has, and for a new one the one that the installation offers)")
	fs.StringVar(&o.ReleaseStream, "release-stream", o.ReleaseStream, "Stream of OpenShift releases whose newest release is used, from the public server, if --release-image is not given")
	fs.StringVar(&raw.pullSecret, "pull-secret", "", "File with registry credentials for the release's images (.dockerconfigjson)")
	fs.StringVar(&raw.sshKey, "ssh-key", "", "File with the public SSH key that may log in to nodes")
	fs.BoolVar(&o.GenerateSSH, "generate-ssh", o.GenerateSSH, "Generate an SSH key for logging in to nodes, if --ssh-key is not given")
	fs.StringVar(&raw.trustBundle, "additional-trust-bundle", "", "File with PEM certificates that the cluster trusts")
	fs.StringVar(&raw.contentSources, "image-content-sources", "", "YAML file with a list of {source, mirrors}: where images may also be pulled from")
	fs.StringVar(&o.InfraID, "infra-id", o.InfraID, "Identifier in names of the cluster's resources (default: generated from the name)")
	fs.StringArrayVar(&raw.annotations, "annotations", nil, "Annotation of the HostedCluster, as key=value (repeatable)")
	fs.StringArrayVar(&raw.labels, "labels", nil, "Label of the HostedCluster, as key=value (repeatable)")

	fs.StringVar(&o.ExternalDNSDomain, "external-dns-domain", o.ExternalDNSDomain, "DNS suffix of the published services, whose records external-dns creates; names are api-{name}.{domain} and so on")
	fs.StringVar(&o.infraJSON, "infra-json", "", "For developers: file that describes infrastructure, as `create infra` of the cloud's tool wrote it")
	_ = fs.MarkHidden("infra-json")

	fs.StringVar((*string)(&o.Availability), "control-plane-availability-policy", string(o.Availability), "Replicas of the control plane: SingleReplica (1) or HighlyAvailable (3)")
	fs.StringVar((*string)(&o.InfraAvailability), "infra-availability-policy", string(o.InfraAvailability), "Replicas of what runs on the workers: SingleReplica or HighlyAvailable")
	fs.StringVar(&o.EtcdStorageClass, "etcd-storage-class", o.EtcdStorageClass, "StorageClass of etcd's volumes (default: the management cluster's default)")
	fs.StringVar(&o.EtcdStorageSize, "etcd-storage-size", o.EtcdStorageSize, "Size of each of etcd's volumes")
	fs.BoolVar(&o.FIPS, "fips", o.FIPS, "Nodes use FIPS-validated cryptography")
	fs.StringVar(&o.PausedUntil, "pausedUntil", o.PausedUntil, "Don't touch the cluster until then: true, or a time such as 2027-01-31T12:00:00Z")
	fs.StringVar(&o.KASDNSName, "kas-dns-name", o.KASDNSName, "Additional DNS name of the API server")
	fs.StringToStringVar(&raw.nodeSelector, "node-selector", nil, "Labels of management nodes that run the control plane, as key=value,…")
	fs.StringToStringVar(&raw.podLabels, "pods-labels", nil, "Labels of the control plane's Pods, as key=value,…")
	fs.StringArrayVar(&raw.tolerations, "toleration", nil, "Toleration of the control plane's Pods, as key=…,operator=…,value=…,effect=… (repeatable)")
	fs.StringVar(&raw.operatorImage, "control-plane-operator-image", "", "For developers: image of this cluster's control plane operator")

	addOpenShiftFlags(fs, o)

	fs.StringVar((*string)(&o.NetworkType), "network-type", string(o.NetworkType), "Pod network: Other, with --allocate-node-cidrs for the one that Kubernetes releases include; OVNKubernetes is for OpenShift releases, and the default if the tag of the release image is one of these, such as 4.18.3-x86_64")
	fs.StringSliceVar(&o.ServiceCIDRs, "service-cidr", o.ServiceCIDRs, "Network of Services; one per address family")
	fs.StringSliceVar(&o.ClusterCIDRs, "cluster-cidr", o.ClusterCIDRs, "Network of Pods; one per address family")
	fs.StringSliceVar(&o.MachineCIDRs, "machine-cidr", o.MachineCIDRs, "Network of machines; one per address family")
	fs.BoolVar(&o.AllocateNodeCIDRs, "allocate-node-cidrs", o.AllocateNodeCIDRs, "Give every node a Pod network; needs --network-type Other")
	fs.BoolVar(&raw.defaultDual, "default-dual", false, "Networks of both address families, with the default ranges; excludes --service-cidr and --cluster-cidr")
	addPublishingFlags(fs, o)

	fs.Int32Var(&o.NodePool.Replicas, "node-pool-replicas", o.NodePool.Replicas, "Number of workers of each initial NodePool; a negative number creates no NodePool")
	addNodePoolFlags(fs, &o.NodePool)
}

// addPublishingFlags declares how services are published on platforms that leave the choice; elsewhere the platform has flags
// of its own.
func addPublishingFlags(fs *pflag.FlagSet, o *Options) {
	if o.cloud != nil {
		return
	}
	fs.StringVar(&o.APIServerAddress, "external-api-server-address", o.APIServerAddress, "Publish services by NodePort at this host name or address")
	fs.BoolVar(&o.LoadBalancer, "expose-through-load-balancer", o.LoadBalancer, "Publish the API with a Service of type LoadBalancer")
}

// addOpenShiftFlags declares what only OpenShift releases know.
func addOpenShiftFlags(fs *pflag.FlagSet, o *Options) {
	fs.StringVar((*string)(&o.FeatureSet), "feature-set", string(o.FeatureSet), "Set of features of an OpenShift release: TechPreviewNoUpgrade or DevPreviewNoUpgrade; such a cluster can't be upgraded")
	fs.StringSliceVar(&o.EnabledCapabilities, "enable-cluster-capabilities", nil, "Optional OpenShift capabilities to enable in addition to the default ones, separated by commas")
	fs.StringSliceVar(&o.DisabledCapabilities, "disable-cluster-capabilities", nil, "Optional OpenShift capabilities to disable, separated by commas")
	fs.StringVar((*string)(&o.OLMCatalogPlacement), "olm-catalog-placement", string(o.OLMCatalogPlacement), "Where operator catalogs run: management or guest (default: management)")
	fs.BoolVar(&o.OLMDisableDefaultSources, "olm-disable-default-sources", false, "Offer only operators from catalogs that you add")
	fs.BoolVar(&o.DisableMultiNetwork, "disable-multi-network", false, "Disable Multus: Pods have one network; needs --network-type Other")
	fs.Int32Var(&o.OVNKubernetesMTU, "ovn-kubernetes-mtu", 0, "MTU of the OVN-Kubernetes network in bytes (default: the network operator's choice)")
	fs.BoolVar(&o.VersionCheck, "version-check", false, "Refuse to work with an operator of another version than this tool")
}

// addNodePoolFlags declares what a cluster's first pool and a pool of its own have in common.
func addNodePoolFlags(fs *pflag.FlagSet, o *NodePoolOptions) {
	fs.StringVar(&o.Arch, "arch", o.Arch, "CPU architecture of workers: "+strings.Join(architectures(o.Platform), ", "))
	fs.BoolVar(&o.AutoRepair, "auto-repair", o.AutoRepair, "Replace workers whose node is unhealthy")
	fs.StringVar((*string)(&o.UpgradeType), "node-upgrade-type", string(o.UpgradeType), "How workers get a new release: Replace or InPlace")
	fs.DurationVar(&o.DrainTimeout, "node-drain-timeout", o.DrainTimeout, "How long a node may take to drain; 0 means no limit")
	fs.DurationVar(&o.DetachVolume, "node-volume-detach-timeout", o.DetachVolume, "How long volumes may take to detach; 0 means no limit")
}

// load reads files and parses values into o. All problems are reported at once.
func (raw *rawFlags) load(fs *pflag.FlagSet, o *Options) error {
	var errs []error
	fail := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
	}
	var err error
	if raw.pullSecret != "" {
		if o.PullSecret, err = connect.ReadPullSecret(raw.pullSecret); err != nil {
			errs = append(errs, err)
		}
	}
	if raw.sshKey != "" {
		if o.SSHPublicKey, err = connect.ReadFile(raw.sshKey); err == nil {
			err = checkSSHPublicKey(o.SSHPublicKey)
		}
		fail("--ssh-key", err)
	}
	if raw.trustBundle != "" {
		if o.TrustBundle, err = connect.ReadFile(raw.trustBundle); err == nil {
			err = connect.CheckCertificates(o.TrustBundle)
		}
		fail("--additional-trust-bundle", err)
	}
	if raw.contentSources != "" {
		o.ContentSources, err = readContentSources(raw.contentSources)
		fail("--image-content-sources", err)
	}
	o.Annotations, err = pairs(raw.annotations)
	fail("--annotations", err)
	o.Labels, err = pairs(raw.labels)
	fail("--labels", err)
	for _, text := range raw.tolerations {
		toleration, err := parseToleration(text)
		fail("--toleration", err)
		o.Tolerations = append(o.Tolerations, toleration)
	}
	if raw.defaultDual {
		if fs.Changed("service-cidr") || fs.Changed("cluster-cidr") {
			errs = append(errs, errors.New("--default-dual sets --service-cidr and --cluster-cidr: leave them out, or it"))
		}
		o.ClusterCIDRs, o.ServiceCIDRs = dualClusterCIDRs(), dualServiceCIDRs()
	}
	o.NodeSelector, o.PodLabels = raw.nodeSelector, raw.podLabels
	if raw.operatorImage != "" {
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation] = raw.operatorImage
	}
	if o.cloud != nil {
		errs = append(errs, o.cloud.load(fs, o))
	} else if o.infraJSON != "" {
		errs = append(errs, fmt.Errorf("--infra-json: platform %s has no infrastructure to describe; leave it out", o.Platform))
	}
	return errors.Join(errs...)
}

// pairs parses key=value; a value may hold anything, commas included.
func pairs(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	result := map[string]string{}
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q: must be key=value", text)
		}
		result[key] = value
	}
	return result, nil
}

func readContentSources(path string) ([]hyperv1.ImageContentSource, error) {
	raw, err := connect.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var sources []hyperv1.ImageContentSource
	if err := yaml.UnmarshalStrict(raw, &sources); err != nil {
		return nil, fmt.Errorf("%s: must be a list of {source, mirrors}: %w", path, err)
	}
	return sources, nil
}

func parseToleration(text string) (corev1.Toleration, error) {
	var t corev1.Toleration
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "key":
			t.Key = value
		case "operator":
			operator, ok := anyCase(value, corev1.TolerationOpExists, corev1.TolerationOpEqual)
			if !ok {
				return t, fmt.Errorf("%q: operator %q must be Exists or Equal", text, value)
			}
			t.Operator = operator
		case "value":
			t.Value = value
		case "effect":
			effect, ok := anyCase(value, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
			if !ok {
				return t, fmt.Errorf("%q: effect %q must be NoSchedule, PreferNoSchedule or NoExecute", text, value)
			}
			t.Effect = effect
		case "tolerationseconds":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return t, fmt.Errorf("%q: tolerationSeconds must be a number", text)
			}
			t.TolerationSeconds = ptr.To(seconds)
		default:
			return t, fmt.Errorf("%q: unknown part %q; use key, operator, value, effect and tolerationSeconds", text, key)
		}
	}
	return t, nil
}

// anyCase finds a value among those that are known, whatever its letters' case.
func anyCase[T ~string](value string, known ...T) (T, bool) {
	for _, k := range known {
		if strings.EqualFold(string(k), strings.TrimSpace(value)) {
			return k, true
		}
	}
	return "", false
}
