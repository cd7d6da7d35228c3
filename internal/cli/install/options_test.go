package install

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/cli/progress"
)

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string // empty: valid
	}{
		"When all is well it should accept":                             {func(*Options) {}, ""},
		"When only CRDs are installed it should need no image":          {func(o *Options) { o.Image = ""; o.Scope = ScopeCRDs }, ""},
		"When there is no image it should name the flag":                {func(o *Options) { o.Image = "" }, "--hypershift-image is required"},
		"When the namespace is no name it should name the flag":         {func(o *Options) { o.Namespace = "Hyper_Shift" }, `--namespace "Hyper_Shift"`},
		"When the scope is unknown it should list the scopes":           {func(o *Options) { o.Scope = "some" }, "all, crds, resources"},
		"When the pull policy is unknown it should list them":           {func(o *Options) { o.ImagePullPolicy = "Sometimes" }, "Always, IfNotPresent, Never"},
		"When a day is longer than a day it should refuse":              {func(o *Options) { o.CertRotation = 25 * time.Hour }, "--cert-rotation-scale"},
		"When a variable has no name it should name the flag":           {func(o *Options) { o.OperatorEnv = map[string]string{"1=": "x"} }, "--additional-operator-env-vars"},
		"When monitoring is unknown it should list what there is":       {func(o *Options) { o.Monitoring.Platform = "Some" }, "None, OperatorOnly, All"},
		"When plain metrics are given a certificate it should say so":   {func(o *Options) { o.Metrics.CertSecret = "x" }, "--metrics-cert-secret: metrics have no certificate"},
		"When the metrics' Secret is no name it should name the flag":   {func(o *Options) { o.Metrics = Metrics{Secure: true, CertSecret: "A/b"} }, `--metrics-cert-secret "A/b"`},
		"When a platform is unknown it should list them":                {func(o *Options) { o.Platforms = []string{"Moon"} }, "AWS, Azure"},
		"When external-dns has no domain it should name the flag":       {func(o *Options) { o.ExternalDNS.Provider = dnsGoogle }, "--external-dns-domain-filter is required"},
		"When external-dns has no credentials it should name the flags": {func(o *Options) { o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter = dnsAWS, "a.b" }, "--external-dns-credentials or --external-dns-secret"},
		"When external-dns has a role and a Secret it should refuse":    {func(o *Options) { o.ExternalDNS = ExternalDNS{Provider: dnsAWS, Secret: "s", RoleARN: "r"} }, "exclude each other"},
		"When external-dns has no provider it should name the flag":     {func(o *Options) { o.ExternalDNS.DomainFilter = "a.b" }, "need --external-dns-provider"},
		"When external-dns on Azure takes a role it should refuse":      {func(o *Options) { o.ExternalDNS = ExternalDNS{Provider: dnsAzure, RoleARN: "r"} }, "needs --external-dns-provider aws"},
		"When a registry has no mirror it should say what is meant":     {func(o *Options) { o.RegistryOverride = map[string]string{"quay.io": ""} }, "source=mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := resources(tc.change)
			if tc.want == "" {
				g.Expect(o.Validate()).To(Succeed())
				return
			}
			g.Expect(o.Validate()).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestFlags(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(secret, []byte(`{"auths":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	konnectivity := filepath.Join(t.TempDir(), "image-refs.yaml")
	if err := os.WriteFile(konnectivity, []byte("kind: ImageStream\nspec: {tags: [{name: apiserver-network-proxy, from: {name: registry.example.com/konnectivity:1}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`hunter2`), 0o600); err != nil {
		t.Fatal(err)
	}
	roles := filepath.Join(t.TempDir(), "roles.json")
	if err := os.WriteFile(roles, []byte(`{"operatorOIDCS3RoleARN":"arn:aws:iam::123456789012:role/s3"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string // of the output or the error
		fail bool
	}{
		"When flags stand behind render it should take them": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--namespace", "other", "--outputs", "resources"}, want: "namespace: other"},
		"When a pull secret is given it should render its keys only": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--pull-secret", secret, "--outputs", "resources"}, want: ".dockerconfigjson: REDACTED"},
		"When the pull secret is malformed it should say so without its content": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--pull-secret", broken}, want: `{"auths"`, fail: true},
		"When the pull secret is missing it should name the file": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--pull-secret", "missing.json"}, want: "missing.json", fail: true},
		"When template and outputs are given it should refuse": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--template", "--outputs", "crds"}, want: "--outputs", fail: true},
		"When a template has more replicas than an installation can it should name the flag": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--template", "--replicas", "77"}, want: "--replicas 77: must be 1 to", fail: true},
		"When a template is limited to a platform that there is none of it should list them": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--template", "--limit-crd-install", "Bogus"}, want: `--limit-crd-install "Bogus": must be some of AWS`, fail: true},
		"When a template has no image it should leave its parameter open": {
			args: []string{"render", "--template"}, want: "name: OPERATOR_IMG\n  required: true\n- description", fail: false},
		"When the format is unknown it should list the formats": {
			args: []string{"render", "--format", "xml"}, want: "json or yaml", fail: true},
		"When a private platform is asked for it should say that there is none": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--private-platform", "GCP"}, want: "AWS, Azure and None", fail: true},
		"When private clusters are asked for without credentials it should name the flags": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--private-platform", "AWS", "--aws-private-region", "eu-west-1"}, want: "--aws-private-creds, --aws-private-secret and --aws-private-role-arn: give exactly one", fail: true},
		"When private clusters are asked for without a region it should name the flag": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--private-platform", "AWS", "--aws-private-secret", "s"}, want: "--aws-private-region: name the region", fail: true},
		"When private clusters are asked for it should tell the operator": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--private-platform", "AWS", "--aws-private-secret", "s", "--aws-private-region", "eu-west-1", "--outputs", "resources"}, want: "--private-platform=AWS"},
		"When images are named by tags it should use them": {
			args: []string{"render", "--image-refs", "testdata/image-refs.yaml", "--outputs", "resources"}, want: "image: registry.example.com/hypershift/operator:2.0"},
		"When an image of Cluster API is named it should tell the operator": {
			args: []string{"render", "--image-refs", "testdata/image-refs.yaml", "--outputs", "resources"}, want: "- name: IMAGE_CLUSTER_API\n          value: registry.example.com/capi:1"},
		"When a published tag has no effect it should be taken": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--image-refs", konnectivity, "--outputs", "resources"}, want: "- name: IMAGE_KONNECTIVITY"},
		"When a published tag has no effect it should say what to do instead": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--image-refs", konnectivity, "--outputs", "resources"}, want: "tag apiserver-network-proxy has no effect: the tunnel to nodes belongs to the release"},
		"When a tag is unknown it should list the tags": {
			args: []string{"render", "--image-refs", secret, "--outputs", "resources"}, want: "must be ImageStream", fail: true},
		"When flags stand behind helm it should take them": {
			args: []string{"helm", "--hypershift-image", "r/i:1", "--output-dir", filepath.Join(t.TempDir(), "chart")}, want: "wrote "},
		"When a chart is written without an image it should take the default and say so": {
			args: []string{"helm", "--output-dir", filepath.Join(t.TempDir(), "chart")}, want: "quay.io/hypershift/hypershift-operator:latest"},
		"When the bundle holds no certificate it should say so": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--additional-trust-bundle", secret}, want: "holds no PEM certificate", fail: true},
		"When webhooks are asked for it should say that there are none": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--enable-defaulting-webhook"}, want: "serves no webhooks", fail: true},
		"When webhooks are switched off it should do so": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--enable-conversion-webhook=false", "--disable-capi-migration", "--exclude-etcd", "--outputs", "resources"}, want: "kind: Deployment"},
		"When OIDC documents are asked for without a region it should name what is missing": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--oidc-storage-provider-s3-bucket-name", "b.c"}, want: "give both, with credentials", fail: true},
		"When OIDC documents have two ways to their bucket it should refuse": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--oidc-storage-provider-s3-bucket-name", "b", "--oidc-storage-provider-s3-region", "r", "--oidc-storage-provider-s3-secret", "s",
				"--oidc-storage-provider-s3-role-arn", "arn:aws:iam::1:role/r"}, want: "give exactly one of them", fail: true},
		"When a bucket and its Secret are given it should tell the operator": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--oidc-storage-provider-s3-bucket-name", "b", "--oidc-storage-provider-s3-region", "r", "--oidc-storage-provider-s3-secret", "s",
				"--oidc-storage-provider-s3-secret-key", "k", "--outputs", "resources"}, want: "--oidc-storage-provider-s3-credentials=/etc/oidc-storage-provider-s3-creds/k"},
		"When private access is asked for it should refuse": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--aws-private-region", "r"}, want: "give --private-platform AWS", fail: true},
		"When roles come from a file it should use those that are asked for": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--oidc-storage-provider-s3-bucket-name", "b", "--oidc-storage-provider-s3-region", "r", "--aws-operator-roles-file", roles, "--outputs", "resources"}, want: "aws-token"},
		"When a role of the file is missing it should name it": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--external-dns-provider", "aws", "--external-dns-domain-filter", "x.example.com", "--aws-operator-roles-file", roles},
			want: "has no externalDNSRoleARN", fail: true},
		"When two things are refused it should name both": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--enable-cpo-overrides", "--rhobs-monitoring"}, want: "--rhobs-monitoring: this version", fail: true},
		"When the installation is a part of ARO it should tell the operator": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--managed-service", "ARO-HCP", "--aro-hcp-key-vault-users-client-id", "11111111-2222-3333-4444-555555555555", "--outputs", "resources"},
			want: "name: ARO_HCP_KEY_VAULT_USER_CLIENT_ID\n          value: 11111111-2222-3333-4444-555555555555"},
		"When the managed service is unknown it should say which there is": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--managed-service", "ROSA"}, want: `--managed-service "ROSA": must be ARO-HCP`, fail: true},
		"When the identity of key vaults is given alone it should ask for the service": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--aro-hcp-key-vault-users-client-id", "x"}, want: "give --managed-service ARO-HCP, too", fail: true},
		"When the identity of key vaults is no UUID it should say so": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--managed-service", "ARO-HCP", "--aro-hcp-key-vault-users-client-id", "x"}, want: "must be a UUID", fail: true},
		"When cluster-version-operators may read metrics it should tell the operator from where": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--enable-cvo-management-cluster-metrics-access", "--cvo-prometheus-url", "https://prometheus.example.com", "--outputs", "resources"},
			want: "name: ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS\n          value: \"1\"\n        - name: CVO_PROMETHEUS_URL\n          value: https://prometheus.example.com"},
		"When a Prometheus is named that nobody is to ask it should say what is missing": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--cvo-prometheus-url", "https://prometheus.example.com"}, want: "give --enable-cvo-management-cluster-metrics-access, too", fail: true},
		"When the Prometheus is no URL it should say so": {
			args: []string{"render", "--hypershift-image", "r/i:1", "--enable-cvo-management-cluster-metrics-access", "--cvo-prometheus-url", "prometheus"}, want: "--cvo-prometheus-url: must be a URL", fail: true},
		"When there is an argument it should refuse": {args: []string{"everything"}, want: "unknown command", fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cmd := Command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(tc.args)
			err := cmd.ExecuteContext(t.Context())
			if tc.fail {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.String()).To(ContainSubstring(tc.want))
		})
	}
}

func TestAvailable(t *testing.T) {
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: replicas(Options{})}, Status: status}
	}
	stuck := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "operator-0"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
	}}}}
	for name, tc := range map[string]struct {
		status appsv1.DeploymentStatus
		pods   []corev1.Pod
		want   progress.State
	}{
		"When the new replica runs it should be done": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, nil, progress.Done()},
		"When the change wasn't seen yet it should wait": {
			appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, nil, progress.Waiting("1 of 1 replicas available")},
		"When the old replica is still there it should wait": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}, nil, progress.Waiting("1 of 1 replicas available")},
		"When the image can't be pulled it should say so": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1}, []corev1.Pod{stuck},
			progress.Waiting("0 of 1 replicas available; Pod operator-0: ImagePullBackOff no such image")},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(available(deployment(tc.status), tc.pods)).To(Equal(tc.want))
		})
	}
}

func TestEstablished(t *testing.T) {
	crd := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{Status: apiextensionsv1.CustomResourceDefinitionStatus{
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{{Type: kind, Status: status, Message: "taken"}},
		}}
	}
	g := NewWithT(t)
	g.Expect(established(crd(apiextensionsv1.Established, apiextensionsv1.ConditionTrue))).To(Equal(progress.Done()))
	g.Expect(established(crd(apiextensionsv1.Established, apiextensionsv1.ConditionFalse))).NotTo(Equal(progress.Done()))
	_, err := established(crd(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse))
	g.Expect(err).To(MatchError(ContainSubstring("taken")))
}
