package create

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// printed are the objects of a rendering, by kind.
func printed(g Gomega, docs string) map[string][]map[string]any {
	all := map[string][]map[string]any{}
	for doc := range documents(docs) {
		obj := map[string]any{}
		g.Expect(yaml.Unmarshal([]byte(doc), &obj)).To(Succeed())
		kind, _ := obj["kind"].(string)
		all[kind] = append(all[kind], obj)
	}
	return all
}

// valuesAt are the values at a path in each object of a kind, as text; an object that hasn't the path gives "none".
func valuesAt(all map[string][]map[string]any, kind, path string) []string {
	var values []string
	for _, obj := range all[kind] {
		value, found, _ := unstructured.NestedFieldNoCopy(obj, strings.Split(path, ".")...)
		if !found {
			value = "none"
		}
		values = append(values, fmt.Sprint(value))
	}
	return values
}

// awsWith names the files that infrastructure and identities are described in.
func awsWith(infra, iam string) []string {
	return []string{"cluster", "aws", "--infra-json", "testdata/in/" + infra, "--iam-json", "testdata/in/" + iam}
}

// TestPrintsWhatThePublishedCLIPrints has a row for each difference that was found once. That helm charts name an image of their own is held in
// internal/cli/install.
func TestPrintsWhatThePublishedCLIPrints(t *testing.T) {
	none := []string{"cluster", "none", "--external-api-server-address", "api.example.com"}
	proxy, kms := awsWith("infra-aws-proxy.json", "iam-aws-shared.json"), awsWith("infra-aws.json", "iam-aws-kms.json")
	azureMade := []string{"cluster", "azure", "--azure-creds", "testdata/in/azure-creds.json", "--infra-json", "testdata/in/infra-azure-workload.json", "--oidc-issuer-url", "https://issuer.example.com"}
	services := "spec.services"
	for name, tc := range map[string]struct {
		args       []string
		kind, path string
		want       []string // the values; with a star in front: what each contains
	}{
		"no replicas are the default":                         {none, "NodePool", "spec.replicas", []string{"0"}},
		"a negative number of replicas means no NodePool":     {slices.Concat(none, []string{"--node-pool-replicas", "-1"}), "NodePool", "spec.replicas", nil},
		"no key is made unless asked for":                     {none, "HostedCluster", "spec.sshKey", []string{"none"}},
		"a key is made when asked for":                        {slices.Concat(none, []string{"--generate-ssh", "--render-sensitive"}), "HostedCluster", "spec.sshKey.name", []string{"demo-ssh-key"}},
		"AWS: the proxy of infra.json":                        {proxy, "HostedCluster", "spec.configuration.proxy.httpProxy", []string{"http://10.1.0.9:3128"}},
		"AWS: the key of iam.json encrypts":                   {kms, "HostedCluster", "spec.secretEncryption.kms.aws.activeKey.arn", []string{"arn:aws:kms:eu-central-1:123456789012:key/0123"}},
		"AWS: and never another way":                          {kms, "HostedCluster", "spec.secretEncryption.type", []string{"kms"}},
		"AWS: no prefix of the base domain":                   {proxy, "HostedCluster", "spec.dns.baseDomainPrefix", []string{""}},
		"AWS: a single zone is in the NodePool's name":        {slices.Concat(awsArgs, []string{"--zones", "eu-central-1b"}), "NodePool", "metadata.name", []string{"demo-eu-central-1b"}},
		"AWS: each zone has all replicas":                     {slices.Concat(awsArgs, []string{"--node-pool-replicas", "3"}), "NodePool", "spec.replicas", []string{"*3"}},
		"Azure: identities of infra.json":                     {azureMade, "HostedCluster", "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.ingress.clientID", []string{"00000000-0000-0000-0000-000000000002"}},
		"Azure: objects of identities are text":               {clouds["azure-managed"].args, "HostedCluster", "spec.platform.azure.azureAuthenticationConfig.managedIdentities.controlPlane.cloudProvider.objectEncoding", []string{"utf-8"}},
		"Azure: the image of infra.json":                      {azureMade, "NodePool", "spec.platform.azure.image.imageID", []string{"*rhcos.x86_64.vhd"}},
		"Azure: the size of machines":                         {azureMade, "NodePool", "spec.platform.azure.vmSize", []string{"Standard_D4s_v5"}},
		"Azure: the size of machines with ARM":                {slices.Concat(azureMade, []string{"--arch", "arm64"}), "NodePool", "spec.platform.azure.vmSize", []string{"Standard_D4ps_v5"}},
		"Azure: the name of credentials":                      {slices.Concat(azureMade, []string{"--render-sensitive"}), "Secret", "metadata.name", []string{"demo-cloud-credentials"}},
		"PowerVS: what create infra wrote, with its domain":   {clouds["powervs-infra"].args, "HostedCluster", "spec.dns.baseDomain", []string{"power.example.com"}},
		"PowerVS: with its ID":                                {clouds["powervs-infra"].args, "HostedCluster", "spec.infraID", []string{"demo-abc23"}},
		"PowerVS: with its Secrets":                           {slices.Concat(clouds["powervs-infra"].args, []string{"--render-sensitive"}), "Secret", "metadata.name", []string{"demo-cloud-ctrl-creds", "demo-node-mgmt-creds", "demo-ingress-creds", "demo-storage-creds", "demo-registry-creds"}},
		"a toleration in any letters":                         {slices.Concat(none, []string{"--toleration", "key=a,operator=exists,effect=noschedule"}), "HostedCluster", "spec.tolerations", []string{"[map[effect:NoSchedule key:a operator:Exists]]"}},
		"OpenStack: the network of machines":                  {clouds["openstack"].args, "HostedCluster", "spec.networking.machineNetwork", []string{"[map[cidr:10.0.0.0/16]]"}},
		"PowerVS: the network of machines":                    {powerVSArgs, "HostedCluster", "spec.networking.machineNetwork", []string{"[map[cidr:10.0.0.0/16]]"}},
		"Agent: the base domain":                              {agentArgs, "HostedCluster", "spec.dns.baseDomain", []string{"example.com"}},
		"None: the base domain":                               {none, "HostedCluster", "spec.dns.baseDomain", []string{"example.com"}},
		"Agent: a node port for OIDC":                         {agentArgs, "HostedCluster", services, []string{"*service:OIDC"}},
		"None: a node port for OIDC":                          {none, "HostedCluster", services, []string{"*service:OIDC"}},
		"GCP: the API is published by a load balancer":        {gcpArgs, "HostedCluster", services, []string{"*[map[service:APIServer servicePublishingStrategy:map[type:LoadBalancer]]"}},
		"GCP: with external DNS by a Route":                   {clouds["gcp-dns"].args, "HostedCluster", services, []string{"*type:Route"}},
		"KubeVirt: the memory of machines":                    {clouds["kubevirt"].args, "NodePool", "spec.platform.kubevirt.compute.memory", []string{"4Gi"}},
		"pull secrets can be applied over those of the other": {slices.Concat(none, []string{"--render-sensitive"}), "Secret", "type", []string{"Opaque"}},
	} {
		t.Run("When it prints "+name+" it should be as published", func(t *testing.T) {
			g := NewWithT(t)
			got := valuesAt(printed(g, execute(g, slices.Concat(tc.args, commonArgs)...)), tc.kind, tc.path)
			if len(tc.want) == 1 && strings.HasPrefix(tc.want[0], "*") {
				g.Expect(got).NotTo(BeEmpty())
				g.Expect(got).To(HaveEach(ContainSubstring(tc.want[0][1:])))
				return
			}
			if tc.kind == "Secret" {
				g.Expect(got).To(ContainElements(tc.want))
				return
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
