package install

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/refuse"
	"hcp.internal/platform/internal/oci/signature"
)

// fileFlags are flags that name files and whose content goes into Options, and flags that are only looked at once all are known.
type fileFlags struct {
	pullSecret             string
	trustBundle            string
	signaturePolicy        string
	imageRefs              string
	externalDNSCredentials string
	platforms              string
	aws                    awsFiles
	private                string
	azureCredentials       string

	refused refuse.Flags
	flags   *pflag.FlagSet
}

func addFlags(fs *pflag.FlagSet, o *Options, files *fileFlags) {
	files.flags = fs
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the operator")
	fs.StringVar(&o.Image, "hypershift-image", o.Image, "Image that contains the operator")
	fs.StringVar((*string)(&o.ImagePullPolicy), "image-pull-policy", string(o.ImagePullPolicy), "When the operator's image is pulled: Always, IfNotPresent or Never")
	fs.StringVar(&files.imageRefs, "image-refs", "", "File with an ImageStream whose tags name images of the operator, of external-dns, and of Cluster API in hosted clusters, to use instead of the default ones")
	fs.StringVar(&files.pullSecret, "pull-secret", "", "File with registry credentials for the operator's image (.dockerconfigjson)")
	fs.StringVar(&files.trustBundle, "additional-trust-bundle", "", "File with PEM certificates that the operators trust besides those of their image")
	fs.StringVar(&files.signaturePolicy, "image-signature-policy", "", "File with the keys of which one must have signed images of releases and packages, by registry")
	fs.BoolVar(&o.Development, "development", o.Development, "Install without an operator Pod, to run the operator outside the cluster")
	fs.BoolVar(&o.TechPreview, "tech-preview-no-upgrade", o.TechPreview, "Install the tech-preview APIs and features; such an installation can't be upgraded")
	fs.StringToStringVar(&o.FeatureGates, "feature-gates", o.FeatureGates, "Individual feature gates of the operator, as NAME=true|false,…; features with tech-preview APIs also need --tech-preview-no-upgrade")
	fs.StringVar(&files.platforms, "limit-crd-install", "", "Platforms whose APIs are installed and whose clusters the operator takes, separated by commas; Local, whose machines are privileged Pods of the management cluster, only when it is named (default: all but Local)")
	fs.BoolVar(&o.AdminRBAC, "enable-admin-rbac-generation", o.AdminRBAC, "Install the ClusterRoles hypershift-client and hypershift-readers for people")
	fs.BoolVar(&o.PackageOperator, "package-operator", o.PackageOperator, "Also install the package operator, in namespace "+PackageOperatorNamespace+", and its APIs")
	fs.BoolVar(&o.Console, "console", o.Console, "Also install the web console, for users with tokens of the management cluster, as Service "+consoleName+"; it writes nothing and reads no Secrets")
	addPrivateCAPIFlag(fs, o)
	fs.BoolVar(&o.StoredCAPIOnly, "disable-capi-conversion-webhook", o.StoredCAPIOnly, "Serve Cluster API kinds only in their storage version, v1beta2, which needs no conversion webhook")
	fs.BoolVar(&o.CIDebugOutput, "enable-ci-debug-output", o.CIDebugOutput, "More output of the operators for test runs")
	fs.StringVar(&o.MetricsSet, "metrics-set", o.MetricsSet, "Metrics that control planes expose: Telemetry, SRE or All")
	fs.BoolVar(&o.Metrics.Secure, "metrics-secure", o.Metrics.Secure, "Serve the operators' metrics over HTTPS, and only to authorised clients: bind ClusterRole "+metricsReaderName+" to your Prometheus")
	fs.StringVar(&o.Metrics.CertSecret, "metrics-cert-secret", o.Metrics.CertSecret, "Secret with tls.crt, tls.key and ca.crt for --metrics-secure, in the namespace of each operator (default: self-made certificates of the operators, which Prometheus can't verify)")
	fs.StringVar(&o.Monitoring.Platform, "platform-monitoring", o.Monitoring.Platform, "What the monitoring of an OpenShift management cluster scrapes: None, OperatorOnly or All")
	fs.BoolVar(&o.Monitoring.SLOAlerts, "slos-alerts", o.Monitoring.SLOAlerts, "Install alerts on service level objectives")
	o.Monitoring.addFlags(fs)
	fs.DurationVar(&o.CertRotation, "cert-rotation-scale", o.CertRotation, "Length of a day in certificate lifetimes; less than 24h only to test rotation")
	fs.StringToStringVar(&o.RegistryOverride, "registry-overrides", o.RegistryOverride, "Registry prefixes to replace when images are pulled, as source=mirror,…")
	fs.BoolVar(&o.EtcdRecovery, "enable-etcd-recovery", o.EtcdRecovery, "Replace an etcd member of a hosted cluster that can't start any more")
	fs.BoolVar(&o.SharedIngress, "shared-ingress", o.SharedIngress, "Also install one endpoint for the API servers of all hosted clusters, which are distinguished by server name, in namespace "+SharedIngressNamespace)
	fs.StringVar(&o.SharedGateway, "shared-gateway", o.SharedGateway, "Route the host names of hosted clusters through a Gateway (Gateway API), NAMESPACE/NAME, whose listener passes TLS through: the operator creates a TLSRoute for each")
	fs.BoolVar(&o.SizeTagging, "enable-size-tagging", o.SizeTagging, "Assign sizes to hosted clusters by their number of nodes, with the effects that ClusterSizingConfiguration cluster defines")
	fs.BoolVar(&o.AuditLogs, "enable-audit-log-persistence", o.AuditLogs, "Keep audit logs of hosted API servers on volumes, as configured in AuditLogPersistenceConfig cluster")
	fs.BoolVar(&o.DedicatedNodes, "enable-dedicated-request-serving-isolation", o.DedicatedNodes, "With --enable-size-tagging: give hosted clusters with annotation hypershift.openshift.io/topology dedicated nodes")
	fs.StringVar(&o.Capacity, "control-plane-capacity", o.Capacity, "What to do with a hosted control plane that doesn't fit on the nodes: Wait creates none of it until it fits, Ignore leaves its Pods to the scheduler, Auto waits unless a node autoscaler is found")
	fs.Int32Var(&o.Replicas, "replicas", o.Replicas, "Number of Pods of each operator, spread over nodes and zones; one is active, and another takes over within seconds if it fails")
	fs.StringSliceVar(&o.EgressBlock, "hcp-egress-block-cidrs", o.EgressBlock, "Networks that control-plane Pods may not connect to, as CIDRs separated by commas, in addition to the management cluster's API servers and Pods")
	fs.BoolVar(&o.RestrictOverrides, "restrict-overrides", o.RestrictOverrides, "Let only users with verb override on hostedclusters set annotations that name images of a control plane, its Pod Security level or its priority; false warns all others instead")
	fs.StringToStringVar(&o.OperatorEnv, "additional-operator-env-vars", o.OperatorEnv, "Additional environment variables of the operator, as NAME=value,…")
	addExternalDNSFlags(fs, &o.ExternalDNS, files)
	addAWSFlags(fs, &o.AWS, &files.aws)
	addAzureFlags(fs, &o.Azure, &files.azureCredentials)
	o.Managed.addFlags(fs)
	fs.StringVar(&files.private, "private-platform", "None", "Platform whose private clusters are supported: AWS, Azure or None")
	addSettledFlags(fs)
	addRefusedFlags(fs, &files.refused)
}

func addExternalDNSFlags(fs *pflag.FlagSet, d *ExternalDNS, files *fileFlags) {
	fs.StringVar(&d.Provider, "external-dns-provider", d.Provider, "Install external-dns for this DNS provider: aws, azure or google")
	fs.StringVar(&files.externalDNSCredentials, "external-dns-credentials", "", "File with credentials for the provider of DNS")
	fs.StringVar(&d.Secret, "external-dns-secret", d.Secret, "Existing Secret with credentials for the DNS provider, in key credentials")
	fs.StringVar(&d.RoleARN, "external-dns-role-arn", d.RoleARN, "AWS role that external-dns assumes")
	fs.StringVar(&d.DomainFilter, "external-dns-domain-filter", d.DomainFilter, "DNS suffix of the records that external-dns may touch")
	fs.StringVar(&d.TXTOwnerID, "external-dns-txt-owner-id", d.TXTOwnerID, "Owner ID that marks external-dns's own records (default: the domain)")
	fs.StringVar(&d.Image, "external-dns-image", d.Image, "Image of external-dns")
	fs.StringVar(&d.GoogleProject, "external-dns-google-project", d.GoogleProject, "Google Cloud project with the zone")
	fs.DurationVar(&d.Interval, "external-dns-interval", d.Interval, "How often external-dns checks the services")
	fs.DurationVar(&d.ZonesCache, "external-dns-aws-zones-cache-duration", d.ZonesCache, "How long external-dns keeps the list of AWS zones")
}

// addSettledFlags declares flags of the published tool that ask for what is the case here anyway.
func addSettledFlags(fs *pflag.FlagSet) {
	fs.Bool("exclude-etcd", false, "No effect: no CRDs of etcd operators are installed")
	fs.Bool("disable-capi-migration", true, "No effect: Cluster API's kinds are stored in one version")
	for _, name := range []string{"exclude-etcd", "disable-capi-migration"} {
		// Only fails for a flag that isn't there.
		_ = fs.MarkHidden(name)
	}
}

// addRefusedFlags declares what needs a controller that this version's operator doesn't have.
func addRefusedFlags(fs *pflag.FlagSet, r *refuse.Flags) {
	r.Switches(fs, "this version's operator serves no webhooks; rules of the APIs are in their definitions", "enable-defaulting-webhook",
		"enable-validating-webhook", "enable-conversion-webhook")
	r.Values(fs, "this version makes no endpoints of Private Service Connect: leave it out", "gcp-project", "gcp-region")
	r.Switches(fs, "this version forwards no metrics: leave it out", "enable-uwm-telemetry-remote-write", "rhobs-monitoring")
	r.Switches(fs, "this version has no table of overrides: annotate HostedClusters with hypershift.openshift.io/control-plane-operator-image", "enable-cpo-overrides")
	r.Switches(fs, "this version has no Karpenter: use NodePools", "enable-standalone-karpenter-operator")
	r.Values(fs, "this version doesn't scale NodePools of clouds from zero: leave it out", "scale-from-zero-provider", "scale-from-zero-creds",
		"scale-from-zero-secret", "scale-from-zero-secret-key")
}

// load reads the files that the flags name, and refuses what this version doesn't have. All problems are reported at once; what has no effect is told on warn.
func (f *fileFlags) load(warn io.Writer, o *Options) error {
	errs := []error{f.refused.Check(f.flags)}
	if o.AWS.Private, o.Azure.Private = f.private == "AWS", f.private == "Azure"; !o.AWS.Private && !o.Azure.Private && f.private != "None" {
		errs = append(errs, fmt.Errorf("--private-platform %q: this version supports AWS, Azure and None", f.private))
	}
	errs = append(errs, f.aws.load(o), loadAzure(f.azureCredentials, &o.Azure))
	if f.pullSecret != "" {
		raw, err := connect.ReadPullSecret(f.pullSecret)
		o.PullSecret = raw
		errs = append(errs, err)
	}
	if f.trustBundle != "" {
		raw, err := connect.ReadFile(f.trustBundle)
		if err == nil {
			err = connect.CheckCertificates(raw)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--additional-trust-bundle: %w", err))
		}
		o.TrustBundle = raw
	}
	if f.signaturePolicy != "" {
		raw, err := connect.ReadFile(f.signaturePolicy)
		if err == nil {
			_, err = signature.ParsePolicy(raw)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--image-signature-policy: %w", err))
		}
		o.SignaturePolicy = raw
	}
	if f.externalDNSCredentials != "" {
		raw, err := connect.ReadFile(f.externalDNSCredentials)
		if err == nil && len(raw) == 0 {
			err = errors.New("the file is empty")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--external-dns-credentials: %w", err))
		}
		o.ExternalDNS.Credentials = raw
	}
	if f.imageRefs != "" {
		images, err := readImageRefs(f.imageRefs)
		errs = append(errs, err)
		o.useImageRefs(images)
		for _, tag := range slices.Sorted(maps.Keys(images)) {
			if why := withoutEffect[tag].why; why != "" {
				fmt.Fprintf(warn, "--image-refs %s: tag %s has no effect: %s\n", f.imageRefs, tag, why)
			}
		}
	}
	o.Platforms = splitList(f.platforms)
	return errors.Join(errs...)
}
