// Package cpo is the component that runs the control-plane-operator itself. The hypershift-operator deploys it, through the
// same framework as all others, but without the HostedControlPlane as the owner.
package cpo

import (
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/contract/scraping"
	"hcp.internal/platform/internal/controlplane/component"
)

// Name of the component.
const Name = names.ControlPlaneOperator

// providerDir is where the operator finds its credentials for a cloud.
const providerDir = "/etc/provider"

//go:embed assets
var assets embed.FS

// Options is what the hypershift-operator hands on to the operators of hosted control planes. Its own Context has more:
// EnableCIDebugOutput, RegistryOverrides, MetricsSet, Management, and OperatorImage, which is the image that is deployed.
type Options struct {
	// ImageOverrides replace images of releases, tag=image,… (annotation image-overrides).
	ImageOverrides string
	// CertRotationScale is what counts as a day for the rotation of certificates; for tests.
	CertRotationScale string
	// FeatureSet, ManagedService and DefaultIngressDomain are as the hypershift-operator was installed.
	FeatureSet, ManagedService, DefaultIngressDomain string
	// EnableSizeTagging counts the nodes of hosted clusters.
	EnableSizeTagging bool
	// Version is that of the image that is deployed, which is noted on the Deployment; empty: unknown.
	Version string
}

// NewComponent makes the component.
func NewComponent(options Options) *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithAdaptFunction(options.adaptDeployment).
		InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: Name, KubeconfigSecret: names.ServiceNetworkKubeconfig,
		}).
		WithManifestAdapter("podmonitor-capi-proxy.yaml", component.When(func(ctx component.WorkloadContext) (bool, error) {
			return component.PrivateCAPI(ctx.HCP), nil
		})).
		Build()
}

func (o Options) adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	if ctx.OperatorImage == "" {
		return errors.New("no image for the control-plane-operator: Context.OperatorImage is empty")
	}
	NoteVersion(d, o.Version)
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Image = ctx.OperatorImage
	main.Args = append(main.Args,
		fmt.Sprintf("--enable-ci-debug-output=%t", ctx.EnableCIDebugOutput),
		"--registry-overrides="+ctx.RegistryOverrides,
		"--image-overrides="+o.ImageOverrides,
	)
	image := func(tag string) string {
		if image, ok := ctx.Release.ImageFor(tag); ok {
			return image
		}
		return ctx.OperatorImage
	}
	env := [][2]string{
		{"CONTROL_PLANE_OPERATOR_IMAGE", ctx.OperatorImage},
		{"HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE", image(component.ImageControlPlaneOperator)},
		{"SOCKS5_PROXY_IMAGE", image("socks5-proxy")},
		{"AVAILABILITY_PROBER_IMAGE", image("availability-prober")},
		{"TOKEN_MINTER_IMAGE", image("token-minter")},
		{releaseimage.EnvOperateOn, releaseimage.ControlPlane(&ctx.HCP.Spec)},
		{"OPENSHIFT_IMG_OVERRIDES", strings.Trim(ctx.RegistryOverrides+","+ctx.RegistryMirrors, ",")},
		{"CERT_ROTATION_SCALE", o.CertRotationScale},
		{"HYPERSHIFT_FEATURESET", o.FeatureSet},
		{"METRICS_SET", ctx.MetricsSet},
		{"MANAGED_SERVICE", o.ManagedService},
		{scraping.EnvLabels, ctx.Environment.MonitorLabels},
		{"DEFAULT_INGRESS_DOMAIN", o.DefaultIngressDomain},
	}
	if o.EnableSizeTagging {
		env = append(env, [2]string{"ENABLE_SIZE_TAGGING", "1"})
	}
	if component.PrivateCAPI(ctx.HCP) {
		env = append(env, [2]string{capiproxy.EnvPrivateTypes, "true"}, [2]string{capiproxy.EnvImage, ctx.CAPIProxyImage})
	}
	env = append(env, ManagementEnv(ctx.Management)...)
	if aws := ctx.HCP.Spec.Platform.AWS; aws != nil && ctx.HCP.Spec.Platform.Type == hyperv1.AWSPlatform {
		component.AddVolume(&d.Spec.Template.Spec, Name, component.SecretVolume("provider-creds", "control-plane-operator-creds"), providerDir)
		env = append(env, [2]string{"AWS_SHARED_CREDENTIALS_FILE", providerDir + "/credentials"}, [2]string{"AWS_REGION", aws.Region}, [2]string{"AWS_SDK_LOAD_CONFIG", "true"})
		for _, e := range component.AWSEndpoints(ctx) {
			env = append(env, [2]string{e.Name, e.Value})
		}
	}
	for _, e := range env {
		if e[1] != "" {
			main.Env = append(main.Env, corev1.EnvVar{Name: e[0], Value: e[1]})
		}
	}
	return nil
}

// NoteVersion notes the version of an operator's image on its Deployment, and not on its Pods, which would start anew for it; empty: unknown.
func NoteVersion(d *appsv1.Deployment, version string) {
	if version == "" {
		return
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[names.ControlPlaneOperatorVersion] = version
}

// Environment by which the operators of hosted control planes learn of the management cluster, of which they see one
// namespace only.
const (
	envSecurityContextUID = "DEFAULT_SECURITY_CONTEXT_UID"
	envNodes              = "MANAGEMENT_CLUSTER_NODES"
	envZones              = "MANAGEMENT_CLUSTER_ZONES"
	envNativeSidecars     = "MANAGEMENT_CLUSTER_NATIVE_SIDECARS"

	// enough nodes or zones for any component. Larger counts are cut to it, so that adding a node does not restart every
	// operator.
	enough = 3
)

// ManagementEnv are the variables, by name and value, that tell a control-plane-operator of the management cluster.
func ManagementEnv(m component.Management) [][2]string {
	var env [][2]string
	if m.SetDefaultSecurityContext {
		env = append(env, [2]string{envSecurityContextUID, strconv.FormatInt(m.User(), 10)})
	}
	for _, count := range []struct {
		name string
		n    int
	}{{envNodes, m.Nodes}, {envZones, m.Zones}} {
		if count.n > 0 {
			env = append(env, [2]string{count.name, strconv.Itoa(min(count.n, enough))})
		}
	}
	if m.NativeSidecars {
		env = append(env, [2]string{envNativeSidecars, "true"})
	}
	return env
}

// ManagementFromEnv is the reverse, for the control-plane-operator: getenv is os.Getenv.
func ManagementFromEnv(getenv func(string) string) (component.Management, error) {
	var m component.Management
	var errs []error
	number := func(name string, bits int) int64 {
		value := getenv(name)
		if value == "" {
			return 0
		}
		n, err := strconv.ParseInt(value, 10, bits)
		if err != nil || n < 0 {
			errs = append(errs, fmt.Errorf("environment variable %s is %q: it must be a number that is not negative", name, value))
		}
		return n
	}
	m.DefaultSecurityContextUID = number(envSecurityContextUID, 64)
	m.SetDefaultSecurityContext = m.DefaultSecurityContextUID > 0
	m.Nodes, m.Zones = int(number(envNodes, 32)), int(number(envZones, 32))
	m.NativeSidecars = getenv(envNativeSidecars) == "true"
	return m, errors.Join(errs...)
}
