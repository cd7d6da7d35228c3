package create

import (
	"bytes"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const azureID = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/demo/providers/Microsoft.Network/"

var (
	commonArgs = []string{"--name", "demo", "--infra-id", "demo-abc23", "--pull-secret", "testdata/in/pull-secret.json", "--release-image", "registry.example.com/ocp/release:4.22", "--render"}
	domainArgs = []string{"--base-domain", "example.com"}
	awsArgs    = []string{"cluster", "aws", "--infra-json", "testdata/in/infra-aws.json", "--iam-json", "testdata/in/iam-aws.json"}
	azureArgs  = append([]string{"cluster", "azure", "--azure-creds", "testdata/in/azure-creds.json", "--location", "eastus", "--resource-group-name", "demo",
		"--vnet-id", azureID + "virtualNetworks/demo", "--subnet-id", azureID + "virtualNetworks/demo/subnets/demo",
		"--network-security-group-id", azureID + "networkSecurityGroups/demo"}, domainArgs...)
	workloadArgs = []string{"--workload-identities-file", "testdata/in/workload-identities.json", "--oidc-issuer-url", "https://issuer.example.com"}
	gcpArgs      = append([]string{"cluster", "gcp", "--project", "my-project", "--region", "us-central1", "--network", "demo", "--private-service-connect-subnet", "demo-psc",
		"--workload-identity-project-number", "123456789012", "--workload-identity-pool-id", "demo-pool", "--workload-identity-provider-id", "demo-provider",
		"--node-pool-service-account", "np-account@my-project.iam.gserviceaccount.com", "--control-plane-service-account", "cp-account@my-project.iam.gserviceaccount.com",
		"--cloud-controller-service-account", "cc-account@my-project.iam.gserviceaccount.com", "--storage-service-account", "st-account@my-project.iam.gserviceaccount.com",
		"--image-registry-service-account", "ir-account@my-project.iam.gserviceaccount.com", "--network-service-account", "nw-account@my-project.iam.gserviceaccount.com",
	}, domainArgs...)
	openStackArgs = append([]string{"cluster", "openstack", "--openstack-credentials-file", "testdata/in/clouds.yaml"}, domainArgs...)
	powerVSArgs   = append([]string{"cluster", "powervs", "--infra-json", "testdata/in/infra-powervs.json"}, domainArgs...)
	agentArgs     = []string{"cluster", "agent", "--agent-namespace", "machines", "--api-server-address", "api.demo.example.com"}
	// nowhere is no management cluster.
	nowhere = []string{"--kubeconfig", "testdata/in/none.kubeconfig"}
)

// clouds are command lines whose output has a golden file and is accepted by an API server with our definitions.
var clouds = map[string]struct {
	args    []string
	preview bool // needs the previews of the APIs
}{
	"aws": {args: awsArgs},
	"aws-proxy": {args: []string{"cluster", "aws", "--infra-json", "testdata/in/infra-aws-proxy.json", "--iam-json", "testdata/in/iam-aws-shared.json", "--arch", "arm64",
		"--external-dns-domain", "ext.example.com", "--generate-ssh"}},
	"aws-kms": {args: []string{"cluster", "aws", "--infra-json", "testdata/in/infra-aws.json", "--iam-json", "testdata/in/iam-aws-kms.json", "--node-pool-replicas", "-1",
		"--base-domain-prefix", "none", "--endpoint-access", "PublicAndPrivate", "--etcd-storage-class", "fast", "--ssh-key", "testdata/in/id.pub"}},
	"aws-full": {args: slices.Concat(awsArgs[:4], []string{"--iam-json", "testdata/in/iam-aws-kms.json", "--node-pool-replicas", "3", "--endpoint-access", "Private", "--additional-tags", "b=2,a=1",
		"--kms-key-arn", "arn:aws:kms:eu-central-1:123456789012:key/0123", "--multi-arch", "--auto-node", "--public-only", "--root-volume-iops", "3000",
		"--root-volume-kms-key", "key", "--external-dns-domain", "ext.example.com", "--feature-set", "TechPreviewNoUpgrade",
		"--disable-cluster-capabilities", "ImageRegistry,Insights", "--enable-cluster-capabilities", "baremetal", "--olm-catalog-placement", "guest",
		"--olm-disable-default-sources", "--ovn-kubernetes-mtu", "1400", "--kas-dns-name", "kubernetes.example.com", "--etcd-storage-class", "fast"})},
	"aws-one-zone": {args: slices.Concat(awsArgs, []string{"--node-pool-replicas", "2", "--zones", "eu-central-1b"})},
	"azure":        {args: slices.Concat(azureArgs, workloadArgs)},
	"azure-infra": {args: []string{"cluster", "azure", "--azure-creds", "testdata/in/azure-creds.json", "--infra-json", "testdata/in/infra-azure-workload.json",
		"--oidc-issuer-url", "https://issuer.example.com", "--encryption-key-id", "https://vault.vault.azure.net/keys/etcd/0123", "--arch", "arm64",
		"--endpoint-access", "PublicAndPrivate"}},
	"azure-managed": {args: []string{"cluster", "azure", "--auto-assign-roles", "--dns-zone-rg-name", "dns", "--azure-creds", "testdata/in/azure-creds.json", "--infra-json", "testdata/in/infra-azure-managed.json"}},
	"azure-oauth":   {args: slices.Concat(azureArgs, workloadArgs, []string{"--oauth-publishing-strategy", "LoadBalancer", "--external-dns-domain", "ext.example.com"})},
	"azure-full": {args: slices.Concat(azureArgs, []string{"--managed-identities-file", "testdata/in/managed-identities.json",
		"--data-plane-identities-file", "testdata/in/data-plane-identities.json", "--encryption-key-id", "https://vault.vault.azure.net/keys/etcd/0123",
		"--kms-credentials-secret-name", "demo-kms", "--node-pool-replicas", "3", "--availability-zones", "1,2",
		"--external-dns-domain", "ext.example.com", "--enable-ephemeral-disk", "--image-generation", "Gen2", "--diagnostics-storage-account-type", "Managed"})},
	"azure-private": {args: slices.Concat(azureArgs, workloadArgs, []string{"--endpoint-access", "Private", "--endpoint-access-private-nat-subnet-id",
		azureID + "virtualNetworks/demo/subnets/nat", "--marketplace-publisher", "azureopenshift", "--marketplace-offer", "aro4", "--marketplace-sku", "aro_422",
		"--marketplace-version", "422.0.0", "--node-pool-replicas", "1"})},
	"gcp":      {args: gcpArgs, preview: true},
	"gcp-full": {args: slices.Concat(gcpArgs, []string{"--node-pool-replicas", "2", "--zone", "us-central1-a", "--subnet", "demo", "--endpoint-access", "PublicAndPrivate", "--oidc-issuer-url", "https://issuer.example.com"}), preview: true},
	"gcp-dns":  {args: slices.Concat(gcpArgs, []string{"--external-dns-domain", "ext.example.com"}), preview: true},
	"kubevirt": {args: []string{"cluster", "kubevirt", "--node-pool-replicas", "2"}},
	"kubevirt-full": {args: slices.Concat([]string{"cluster", "kubevirt", "--infra-kubeconfig-file", "testdata/in/infra.kubeconfig", "--infra-namespace", "demo",
		"--infra-storage-class-mapping", "fast/default", "--infra-storage-class-mapping", "slow/slow,group=s", "--infra-volumesnapshot-class-mapping", "snap/snap,group=s",
		"--service-publishing-strategy", "NodePort", "--api-server-address", "192.0.2.1", "--node-pool-replicas", "2", "--memory", "16Gi", "--cores", "4",
		"--root-volume-storage-class", "fast", "--root-volume-size", "64", "--root-volume-access-modes", "ReadWriteMany", "--root-volume-volume-mode", "Block",
		"--root-volume-cache-strategy", "PVC", "--network-multiqueue", "Disable", "--qos-class", "Guaranteed", "--additional-network", "name:demo/lan",
		"--attach-default-network=false", "--vm-node-selector", "size=large", "--host-device-name", "example.com/gpu,count:2", "--containerdisk", "registry.example.com/disk:1"}, domainArgs)},
	"agent":         {args: agentArgs},
	"agent-full":    {args: slices.Concat(agentArgs, domainArgs, []string{"--agentLabelSelector", "size in (large),zone=a", "--node-pool-replicas", "2"})},
	"openstack":     {args: slices.Concat(openStackArgs, []string{"--openstack-node-flavor", "m1.large"}), preview: true},
	"openstack-2":   {args: slices.Concat(openStackArgs, []string{"--node-pool-replicas", "2", "--openstack-node-flavor", "m1.xlarge", "--openstack-external-network-id", "11111111-1111-1111-1111-111111111111", "--openstack-ingress-floating-ip", "192.0.2.7", "--openstack-dns-nameservers", "192.0.2.53", "--openstack-node-image-name", "rhcos", "--openstack-node-availability-zone", "nova", "--openstack-node-additional-port", "network-id:22222222-2222-2222-2222-222222222222,vnic-type:direct,disable-port-security:true,address-pairs:192.0.2.0/24-192.0.3.0/24"}), preview: true},
	"powervs":       {args: powerVSArgs},
	"powervs-2":     {args: slices.Concat(powerVSArgs, []string{"--node-pool-replicas", "2", "--vpc", "other", "--processors", "1", "--proc-type", "dedicated", "--memory", "64"})},
	"powervs-infra": {args: []string{"cluster", "powervs", "--infra-json", "testdata/in/infra-powervs-made.json"}},
	"none-lb":       {args: []string{"cluster", "none", "--expose-through-load-balancer"}},
	"none-dual":     {args: []string{"cluster", "none", "--external-api-server-address", "api.example.com", "--default-dual", "--network-type", "Other", "--disable-multi-network", "--allocate-node-cidrs"}},
}

// withSecrets are rendered a second time with Secrets, but for those that are random.
var withSecrets = []string{"azure-infra", "powervs-infra", "aws-proxy", "openstack-2", "kubevirt-full"}

// pools are command lines of pools of their own.
var pools = map[string][]string{
	"pool-aws":       {"aws", "--subnet-id", "subnet-0123456789abcdef0", "--instance-profile", "demo-worker", "--securitygroup-id", "sg-1,sg-2"},
	"pool-azure":     {"azure", "--nodepool-subnet-id", azureID + "virtualNetworks/demo/subnets/demo", "--availability-zone", "2", "--arch", "arm64", "--instance-type", "Standard_D4ps_v5"},
	"pool-aws-full":  {"aws", "--subnet-id", "subnet-0123456789abcdef0", "--instance-profile", "demo-worker", "--arch", "arm64", "--root-volume-type", "io1", "--root-volume-iops", "3000", "--root-volume-size", "200", "--root-volume-kms-key", "key", "--auto-repair", "--node-upgrade-type", "InPlace"},
	"pool-gcp":       {"gcp", "--zone", "us-central1-a", "--subnet", "demo", "--boot-image", "projects/p/global/images/i"},
	"pool-kubevirt":  {"kubevirt", "--cores", "8"},
	"pool-agent":     {"agent", "--agentLabelSelector", "size=large"},
	"pool-openstack": {"openstack", "--openstack-node-flavor", "m1.xlarge"},
	"pool-powervs":   {"powervs", "--sys-type", "e980"},
	"pool-none":      {"none", "--node-drain-timeout", "1m", "--auto-repair"},
	"pool-local":     {"local"},
}

// rendering runs every command line and returns its output by name.
func rendering(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	result := map[string]string{}
	for name, tc := range clouds {
		result[name] = execute(g, slices.Concat(tc.args, commonArgs)...)
		if slices.Contains(withSecrets, name) {
			result[name+"-secrets"] = execute(g, slices.Concat(tc.args, commonArgs, []string{"--render-sensitive"})...)
		}
	}
	for name, args := range pools {
		result[name] = execute(g, append(append([]string{"nodepool"}, args...), "--name", "workers", "--cluster-name", "demo", "--release-image", "r/i:4.22", "--render")...)
	}
	return result
}

func execute(g Gomega, args ...string) string {
	cmd := Command()
	var out, notes bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SetArgs(args)
	cmd.SilenceUsage = true
	g.Expect(cmd.Execute()).To(Succeed(), strings.Join(args, " "))
	return out.String()
}

func TestCloudsGolden(t *testing.T) {
	for name, out := range rendering(t) {
		g := NewWithT(t)
		sensitive := strings.HasSuffix(name, "-secrets")
		if !sensitive {
			g.Expect(out).NotTo(ContainSubstring("hunter2"), name+" prints a secret")
			g.Expect(out).NotTo(ContainSubstring("aHVudGVyMg"), name+" prints a secret")
			clitest.Golden(t, "clouds/"+name+".yaml", out)
			continue
		}
		// What is new besides what is printed without Secrets.
		clitest.Golden(t, "clouds/"+name+".yaml", secretsOf(g, out))
		g.Expect(namedSecrets(g, out)).To(BeEmpty(), name+" names Secrets that it doesn't print")
	}
}

// The API server has the last word on what is valid: it accepts everything that is rendered, defaults and rules included.
func TestCloudsAreAccepted(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	rendered := rendering(t)
	preview := func(name string) bool {
		return clouds[name].preview || name == "pool-gcp" || name == "pool-openstack"
	}
	accept := func(t *testing.T, name string) {
		g := NewWithT(t)
		for doc := range documents(rendered[name]) {
			if doc == "" {
				continue
			}
			obj := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte(doc), &obj.Object)).To(Succeed())
			if err := c.Create(t.Context(), connect.Namespace("clusters")); err != nil {
				g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
			}
			if obj.GetKind() == "Namespace" {
				continue
			}
			g.Expect(c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), doc)
		}
	}
	for name := range rendered {
		if strings.HasSuffix(name, "-secrets") {
			continue
		}
		if !preview(name) {
			t.Run("When "+name+" is rendered it should be accepted", func(t *testing.T) { accept(t, name) })
		}
	}
	crds, err := config.CRDs(config.TechPreviewSet)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	for name := range rendered {
		if preview(name) {
			t.Run("When "+name+" is rendered with previews it should be accepted", func(t *testing.T) {
				// A changed definition takes effect a moment after it is stored.
				g := NewWithT(t)
				g.Eventually(func(g Gomega) {
					obj := &unstructured.Unstructured{}
					g.Expect(yaml.Unmarshal([]byte(last(rendered[name])), &obj.Object)).To(Succeed())
					g.Expect(c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
				}, "2m", "200ms").Should(Succeed())
				accept(t, name)
			})
		}
	}
}

// secretsOf are the Secrets among documents, without those whose content is random.
func secretsOf(g Gomega, docs string) string {
	var kept []string
	for doc := range documents(docs) {
		obj := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(doc), &obj.Object)).To(Succeed())
		random := obj.GetName() == "demo-etcd-encryption-key" || obj.GetName() == "demo-ssh-key"
		if obj.GetKind() == "Secret" && !random {
			kept = append(kept, doc)
		}
	}
	return strings.Join(kept, "\n---\n")
}

// namedSecrets are the Secrets that the HostedCluster names by their names and that aren't printed.
func namedSecrets(g Gomega, docs string) []string {
	printed, named := map[string]bool{}, []string{}
	var spec map[string]any
	for doc := range documents(docs) {
		obj := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(doc), &obj.Object)).To(Succeed())
		switch obj.GetKind() {
		case "Secret":
			printed[obj.GetName()] = true
		case "HostedCluster":
			spec = obj.Object["spec"].(map[string]any)
		}
	}
	for _, path := range [][]string{
		{"pullSecret", "name"}, {"sshKey", "name"}, {"serviceAccountSigningKey", "name"}, {"secretEncryption", "aescbc", "activeKey", "name"},
		{"platform", "openstack", "identityRef", "name"}, {"platform", "kubevirt", "credentials", "infraKubeConfigSecret", "name"},
		{"platform", "powervs", "kubeCloudControllerCreds", "name"}, {"platform", "powervs", "nodePoolManagementCreds", "name"},
		{"platform", "powervs", "ingressOperatorCloudCreds", "name"}, {"platform", "powervs", "storageOperatorCloudCreds", "name"},
		{"platform", "powervs", "imageRegistryOperatorCloudCreds", "name"},
	} {
		if name, found, _ := unstructured.NestedString(spec, path...); found && !printed[name] {
			named = append(named, strings.Join(path, ".")+" "+name)
		}
	}
	return named
}

// documents are the YAML documents of a rendering.
func documents(docs string) iter.Seq[string] { return strings.SplitSeq("\n"+docs, "\n---\n") }

func last(docs string) string { return docs[strings.LastIndex(docs, "\n---\n")+5:] }

func TestCloudRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"When AWS has no description it should say which files it needs":  {[]string{"cluster", "aws"}, "--infra-json and --iam-json"},
		"When a proxy that looks into TLS is asked for it should refuse":  {slices.Concat(awsArgs, []string{"--enable-secure-proxy"}), "--enable-secure-proxy: this version makes no proxy"},
		"When the region differs it should name both":                     {slices.Concat(awsArgs, []string{"--region", "us-west-1"}), "--region us-west-1: --infra-json is of eu-central-1"},
		"When a zone has no subnet it should name it":                     {slices.Concat(awsArgs, []string{"--zones", "eu-central-1c"}), "--zones eu-central-1c"},
		"When the access is unknown it should list them":                  {slices.Concat(awsArgs, []string{"--endpoint-access", "Secret"}), "Public, PublicAndPrivate, Private"},
		"When the volume is too small it should say the least":            {slices.Concat(awsArgs, []string{"--root-volume-size", "4"}), "at least 8 GiB"},
		"When Azure has no identities it should name the flags":           {azureArgs, "--workload-identities-file"},
		"When OAuth can't have a load balancer it should say why":         {slices.Concat(azureArgs, []string{"--managed-identities-file", "testdata/in/managed-identities.json", "--data-plane-identities-file", "testdata/in/data-plane-identities.json", "--oauth-publishing-strategy", "LoadBalancer"}), "needs --workload-identities-file"},
		"When Azure has no issuer it should name the flag":                {slices.Concat(azureArgs, workloadArgs[:2]), "--oidc-issuer-url"},
		"When a flag of Azure is missing it should name it":               {[]string{"cluster", "azure"}, "--location is required"},
		"When the key is no URL it should show one":                       {slices.Concat(azureArgs, workloadArgs, []string{"--encryption-key-id", "key"}), "https://{vault}.vault.azure.net"},
		"When a marketplace image is half given it should name the rest":  {slices.Concat(azureArgs, workloadArgs, []string{"--marketplace-sku", "s"}), "all of them or none"},
		"When private Azure has nobody to let in it should name a flag":   {slices.Concat(azureArgs, workloadArgs, []string{"--endpoint-access", "Private"}), "--endpoint-access-private-nat-subnet-id"},
		"When a flag of GCP is missing it should name it":                 {[]string{"cluster", "gcp"}, "--storage-service-account is required"},
		"When a mapping has no guest class it should show the form":       {[]string{"cluster", "kubevirt", "--infra-storage-class-mapping", "fast"}, "infra/guest"},
		"When machines have no network it should say why":                 {[]string{"cluster", "kubevirt", "--attach-default-network=false"}, "needs --additional-network"},
		"When node ports have no address it should name the flag":         {slices.Concat([]string{"cluster", "kubevirt", "--service-publishing-strategy", "NodePort"}, nowhere), "--api-server-address"},
		"When Agent has no address it should name the flag":               {slices.Concat([]string{"cluster", "agent", "--agent-namespace", "machines"}, nowhere), "--api-server-address"},
		"When the key differs from the role's it should name both":        {slices.Concat(awsArgs[:4], []string{"--iam-json", "testdata/in/iam-aws-kms.json", "--kms-key-arn", "arn:other"}), "may use arn:aws:kms:eu-central-1:123456789012:key/0123"},
		"When the key has no role it should say so":                       {slices.Concat(awsArgs, []string{"--kms-key-arn", "arn:other"}), "no kmsProviderRoleARN"},
		"When OpenStack workers have no flavor it should name the flag":   {openStackArgs, "--openstack-node-flavor is required"},
		"When an architecture isn't the platform's it should list them":   {[]string{"cluster", "kubevirt", "--arch", "arm64"}, "[amd64 s390x]"},
		"When Azure has identities and no issuer it should name the flag": {[]string{"cluster", "azure", "--azure-creds", "testdata/in/azure-creds.json", "--infra-json", "testdata/in/infra-azure-workload.json"}, "--oidc-issuer-url"},
		"When a toleration has no known effect it should list them":       {[]string{"cluster", "none", "--toleration", "key=a,effect=never"}, "PreferNoSchedule"},
		"When the kubeconfig is none it should say so":                    {[]string{"cluster", "kubevirt", "--infra-namespace", "n", "--infra-kubeconfig-file", "testdata/in/clouds.yaml"}, "holds no kubeconfig"},
		"When a device has no number it should show the form":             {[]string{"cluster", "kubevirt", "--host-device-name", "gpu,count:no"}, "name,count:n"},
		"When Agent has no namespace it should name the flag":             {[]string{"cluster", "agent"}, "--agent-namespace is required"},
		"When the selector is none it should say so":                      {slices.Concat(agentArgs, []string{"--agentLabelSelector", "a b"}), "--agentLabelSelector"},
		"When the cloud isn't in clouds.yaml it should name it":           {slices.Concat(openStackArgs, []string{"--openstack-cloud", "other"}), "no such entry"},
		"When a port has no network it should say so":                     {slices.Concat(openStackArgs, []string{"--node-pool-replicas", "1", "--openstack-node-flavor", "f", "--openstack-node-additional-port", "vnic-type:direct"}), "needs network-id"},
		"When PowerVS has no description it should name the flag":         {[]string{"cluster", "powervs"}, "needs --infra-json"},
		"When processors are none it should show a number":                {slices.Concat(powerVSArgs, []string{"--processors", "half"}), "0.5"},
		"When infrastructure of none is described it should refuse":       {[]string{"cluster", "none", "--infra-json", "x"}, "has no infrastructure to describe"},
		"When both kinds of networks are given it should refuse":          {[]string{"cluster", "none", "--default-dual", "--cluster-cidr", "10.0.0.0/14"}, "leave them out"},
		"When a capability is unknown it should list them":                {slices.Concat(awsArgs, []string{"--disable-cluster-capabilities", "Coffee"}), "ImageRegistry"},
		"When a capability is switched both ways it should refuse":        {slices.Concat(awsArgs, []string{"--disable-cluster-capabilities", "Console", "--enable-cluster-capabilities", "Console"}), "it is also in --disable-cluster-capabilities"},
		"When the feature set is unknown it should list them":             {slices.Concat(awsArgs, []string{"--feature-set", "All"}), "TechPreviewNoUpgrade"},
		"When the MTU is out of range it should say the range":            {slices.Concat(awsArgs, []string{"--ovn-kubernetes-mtu", "9"}), "from 576 to 9216"},
		"When a pool of AWS has no subnet it should name the flag":        {slices.Concat([]string{"nodepool", "aws"}, nowhere), "give --subnet-id, --instance-profile to render without the HostedCluster"},
		"When a pool has fewer than no workers it should refuse":          {[]string{"nodepool", "local", "--replicas=-1"}, "--replicas -1: must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cmd := Command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			args := slices.Concat(tc.args, commonArgs)
			if tc.args[0] == "nodepool" {
				args = append(slices.Clone(tc.args), "--name", "w", "--cluster-name", "demo", "--release-image", "r/i:1", "--render")
			}
			cmd.SetArgs(args)
			cmd.SilenceUsage = true
			err := cmd.Execute()
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(out.String()).NotTo(ContainSubstring("aHVudGVyMg"))
		})
	}
}
