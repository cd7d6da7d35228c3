// Package controlplaneoperator is the component that runs the control-plane-operator, in payload form. The hypershift-operator deploys it.
package controlplaneoperator

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/pki"
)

// Name of the component.
const Name = names.ControlPlaneOperator

// credentials is the Secret by which the operator uses the cloud.
const credentials = "control-plane-operator-creds"

//go:embed assets
var assets embed.FS

// Options are what the hypershift-operator hands on of its installation. The rest is in the context.
type Options struct {
	// CertRotationScale is what counts as a day for the rotation of certificates, as a Go duration; empty: a day.
	CertRotationScale string
	// FeatureSet and DefaultIngressDomain are as the hypershift-operator was installed.
	FeatureSet, DefaultIngressDomain string
	// Management also tells the operator what this project's asks to know of the management cluster, besides what the published one does.
	Management bool
	// Version is as that of cpo.Options.
	Version string
}

// NewComponent makes the component.
func NewComponent(options Options) *component.WorkloadComponent {
	b := component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithAdaptFunction(options.adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: Name, KubeconfigSecret: names.ServiceNetworkKubeconfig,
		})
	return kit.BelongToHostedCluster(b, "role.yaml", "rolebinding.yaml", "serviceaccount.yaml", "podmonitor.yaml").Build()
}

func (o Options) adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	if ctx.OperatorImage == "" {
		return errors.New("no image for the control-plane-operator: Context.OperatorImage is empty")
	}
	kit.RefersToHostedCluster(ctx, d)
	cpo.NoteVersion(d, o.Version)
	hcp, pod := ctx.HCP, &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	main.Image = ctx.OperatorImage
	main.Args = append(main.Args,
		fmt.Sprintf("--enable-ci-debug-output=%t", ctx.EnableCIDebugOutput),
		"--registry-overrides="+kit.MapFlag(ctx.RegistryOverrides),
		"--image-overrides="+kit.MapFlag(hcp.Annotations[hyperv1.ImageOverridesAnnotation]))
	if err := o.setEnv(ctx, main); err != nil {
		return err
	}
	if o.Management {
		tellOfManagement(ctx, main)
	}
	addCloud(ctx, pod, main)
	component.ManagementProxy(ctx, main)
	kit.UserTrust(ctx, pod)
	return nil
}

func (o Options) setEnv(ctx component.WorkloadContext, main *corev1.Container) error {
	scale, err := time.ParseDuration(cmp.Or(o.CertRotationScale, "24h"))
	if err != nil {
		return fmt.Errorf("the scale of the rotation of certificates is %q: it must be a duration, for example 24h", o.CertRotationScale)
	}
	uid := cmp.Or(ctx.Management.DefaultSecurityContextUID, component.DefaultSecurityContextUID)
	for _, e := range [][2]string{
		{"CONTROL_PLANE_OPERATOR_IMAGE", ctx.OperatorImage},
		{"HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE", ctx.OperatorImage},
		{"SOCKS5_PROXY_IMAGE", ctx.OperatorImage},
		{"AVAILABILITY_PROBER_IMAGE", ctx.OperatorImage},
		{"TOKEN_MINTER_IMAGE", ctx.OperatorImage},
		{releaseimage.EnvOperateOn, releaseimage.ControlPlane(&ctx.HCP.Spec)},
		{"OPENSHIFT_IMG_OVERRIDES", kit.MapFlag(ctx.RegistryMirrors)},
		{"CERT_ROTATION_SCALE", scale.String()},
		{"HYPERSHIFT_FEATURESET", o.FeatureSet},
		{securityContextUID, strconv.FormatInt(uid, 10)},
		{"METRICS_SET", cmp.Or(ctx.MetricsSet, "Telemetry")},
	} {
		kit.SetEnv(main, e[0], e[1])
	}
	one := func(on bool) string {
		if on {
			return "1"
		}
		return ""
	}
	for _, e := range [][2]string{
		{"CERTIFICATE_VALIDITY", ctx.HCP.Annotations[pki.ValidityAnnotation]},
		{"CERTIFICATE_RENEWAL_PERCENTAGE", ctx.HCP.Annotations[pki.RenewalAnnotation]},
		{"RHOBS_MONITORING", one(ctx.Environment.RHOBSMonitoring)},
		{"ENABLE_SIZE_TAGGING", one(ctx.Environment.SizeTagging)},
		{"ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS", one(ctx.Environment.CVOMetricsAccess)},
		{"CVO_PROMETHEUS_URL", ctx.Environment.CVOPrometheusURL},
		{"MANAGED_SERVICE", ctx.Environment.ManagedService},
		{"DEFAULT_INGRESS_DOMAIN", o.DefaultIngressDomain},
	} {
		if e[1] != "" {
			kit.SetEnv(main, e[0], e[1])
		}
	}
	return nil
}

// securityContextUID is the user of pods. The published operator finds out itself whether it is needed; ours is told, and so not where the management
// cluster gives pods a user.
const securityContextUID = "DEFAULT_SECURITY_CONTEXT_UID"

func tellOfManagement(ctx component.WorkloadContext, main *corev1.Container) {
	kit.UnsetEnv(main, securityContextUID)
	for _, e := range cpo.ManagementEnv(ctx.Management) {
		kit.SetEnv(main, e[0], e[1])
	}
	if component.PrivateCAPI(ctx.HCP) {
		kit.SetEnv(main, capiproxy.EnvPrivateTypes, "true")
		kit.SetEnv(main, capiproxy.EnvImage, ctx.CAPIProxyImage)
	}
}

// addCloud gives the operator its identity in the cloud.
func addCloud(ctx component.WorkloadContext, pod *corev1.PodSpec, main *corev1.Container) {
	platform := ctx.HCP.Spec.Platform
	switch {
	case platform.Type == hyperv1.AWSPlatform && platform.AWS != nil:
		kit.Mount(pod, Name, component.SecretVolume("provider-creds", credentials), "/etc/provider")
		kit.SetEnv(main, "AWS_SHARED_CREDENTIALS_FILE", "/etc/provider/credentials")
		kit.SetEnv(main, "AWS_REGION", platform.AWS.Region)
		kit.SetEnv(main, "AWS_SDK_LOAD_CONFIG", "true")
		main.Env = append(main.Env, component.AWSEndpoints(ctx)...)
	case platform.Type == hyperv1.GCPPlatform && platform.GCP != nil:
		component.AddVolume(pod, Name, component.SecretVolume("gcp-credentials", credentials), "/etc/gcp")
		kit.SetEnv(main, "GOOGLE_APPLICATION_CREDENTIALS", "/etc/gcp/application_default_credentials.json")
		kit.SetEnv(main, "GOOGLE_CLOUD_PROJECT", platform.GCP.Project)
		kit.SetEnv(main, "GCP_REGION", platform.GCP.Region)
	case platform.Type == hyperv1.AzurePlatform && platform.Azure != nil:
		addAzure(ctx, pod, main)
	}
}

func addAzure(ctx component.WorkloadContext, pod *corev1.PodSpec, main *corev1.Container) {
	if !kit.ARO(ctx) {
		if w := kit.WorkloadIdentities(ctx.HCP); w != nil && w.ControlPlaneOperator != nil {
			kit.SetEnv(main, "AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/openshift/serviceaccount/token")
			kit.SetEnv(main, "AZURE_CLIENT_ID", string(w.ControlPlaneOperator.ClientID))
			kit.SetEnv(main, "AZURE_TENANT_ID", ctx.HCP.Spec.Platform.Azure.TenantID)
		}
		return
	}
	kit.SetEnv(main, "ARO_HCP_KEY_VAULT_USER_CLIENT_ID", ctx.Environment.KeyVaultClientID)
	kit.MountIdentity(pod, Name, "cpo-cert", "managed-azure-cpo")
	if e := ctx.HCP.Spec.SecretEncryption; e != nil && e.KMS != nil && e.KMS.Azure != nil {
		kit.MountIdentity(pod, "", "kms-cert", "managed-azure-kms")
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "kms-cert", MountPath: "/mnt/kms", ReadOnly: true})
	}
}

func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) error {
	add := func(group, resource string, verbs ...string) {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
	}
	if kit.ReadsManagementMetrics(ctx) { // the cluster-version-operator gets it from this one, who gives away only what it has
		add("metrics.k8s.io", "pods", "get")
	}
	if ctx.HCP.Spec.Platform.Type == hyperv1.GCPPlatform {
		add("externaldns.k8s.io", "dnsendpoints", "create", "get", "update", "delete")
	}
	if kit.ARO(ctx) {
		add("secrets-store.csi.x-k8s.io", "secretproviderclasses", "get", "list", "create", "update", "watch")
	}
	return nil
}
