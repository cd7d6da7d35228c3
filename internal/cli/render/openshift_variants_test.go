package render

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"
)

// variant is a control plane of an OpenShift payload with options that the scenarios leave alone: a merge patch of scenario from, and what has to be in the
// objects then, by file. A text that begins with ! must not be there.
type variant struct {
	from  string
	aro   bool // the operators run as those of the managed service
	patch string
	want  map[string][]string
}

const (
	kasDeployment = "kube-apiserver/deployment_kube-apiserver.yaml"
	kasConfig     = "kube-apiserver/configmap_kas-config.yaml"
	oasDeployment = "openshift-apiserver/deployment_openshift-apiserver.yaml"
	oasConfig     = "openshift-apiserver/configmap_openshift-apiserver.yaml"
	cvoDeployment = "cluster-version-operator/deployment_cluster-version-operator.yaml"
	cnoDeployment = "cluster-network-operator/deployment_cluster-network-operator.yaml"
)

var variants = map[string]variant{
	"When capabilities are switched off it should leave them out of ClusterVersion and of the settings": {
		patch: `{spec: {capabilities: {disabled: [Console, ImageRegistry, Ingress, NodeTuning]}}}`,
		want: map[string][]string{
			cvoDeployment: {`"DeploymentConfig","Insights","MachineAPI","OperatorLifecycleManager"`, "!Console"},
			"openshift-controller-manager/configmap_openshift-controller-manager-config.yaml": {"-openshift.io/serviceaccount-pull-secrets", `internalRegistryHostname: ""`},
			kasConfig: {`"internalRegistryHostname":""`},
		},
	},
	"When features are chosen one by one it should hand the choice on": {
		patch: `{spec: {configuration: {featureGate: {featureSet: CustomNoUpgrade, customNoUpgrade: {enabled: [Mine]}}}}}`,
		want:  map[string][]string{"featuregate-generator/job_featuregate-generator.yaml": {"- Mine"}, cvoDeployment: {"*CustomNoUpgrade*"}},
	},
	"When the hosted cluster has a proxy and authorities it should give them to what dials into it": {
		patch: `{spec: {additionalTrustBundle: {name: user-ca-bundle}, configuration: {proxy: {httpsProxy: "http://proxy:3128", noProxy: mine, trustedCA: {name: proxy-ca}}, image: {additionalTrustedCA: {name: registry-ca}}}}}`,
		want: map[string][]string{
			oasDeployment: {"- --https-proxy\n        - http://proxy:3128", "proxy-trusted-ca.pem", "image-registry-2.pem"},
			"oauth-openshift/deployment_oauth-openshift.yaml":             {"localhost,mine"},
			"ignition-server/deployment_ignition-server.yaml":             {"user-ca-bundle.pem"},
			"cluster-network-operator/role_cluster-network-operator.yaml": nil,
		},
	},
	"When etcd is the user's it should not be waited for": {
		patch: `{spec: {etcd: {managementType: Unmanaged, managed: null, unmanaged: {endpoint: "https://etcd.example.com:2379", tls: {clientSecret: {name: etcd}}}}}}`,
		want: map[string][]string{
			kasDeployment: {"!wait-for-etcd"}, kasConfig: {`"etcd-servers":["https://etcd.example.com:2379"]`}, oasConfig: {"https://etcd.example.com:2379"},
			oasDeployment: {"kube-apiserver,etcd.example.com,audit-webhook"},
		},
	},
	"When etcd has shards it should name them": {
		patch: `{spec: {etcd: {managed: {shards: [{name: events, replicas: 1, resources: [{resource: events}]}, {name: pods, replicas: 3, resources: [{resource: pods}], storage: {type: EmptyDir}}]}}}}`,
		want: map[string][]string{
			kasConfig: {`"/events#https://etcd-client-events.clusters-demo.svc:2379"`}, kasDeployment: {"etcd-client-pods.$(POD_NAMESPACE).svc"},
			"etcd-events/statefulset_etcd-events.yaml": {"!etcd-defrag"}, "etcd-pods/poddisruptionbudget_etcd-pods.yaml": nil,
		},
	},
	"When Secrets are encrypted with a key it should mount the configuration": {
		patch: `{spec: {secretEncryption: {type: aescbc, aescbc: {activeKey: {name: active-key}}}}}`,
		want:  map[string][]string{kasDeployment: {"kube-apiserver.hypershift.openshift.io/encryption-config-hash", "--encryption-provider-config="}},
	},
	"When Secrets are encrypted by KMS of AWS it should run a plugin for each key": {
		patch: `{spec: {secretEncryption: {type: kms, kms: {provider: AWS, aws: {region: us-east-1, activeKey: {arn: "arn:aws:kms:us-east-1:123456789012:key/a"},
			backupKey: {arn: "arn:aws:kms:us-east-1:123456789012:key/b"}, auth: {awsKms: "arn:aws:iam::123456789012:role/kms"}}}}}}`,
		want: map[string][]string{kasDeployment: {"name: aws-kms-active", "--listen=/var/run/awskmsbackup.sock", "exclude=kms-provider-1"}},
	},
	"When Secrets are encrypted by KMS of Azure it should take the managed identity": {
		from: "aro", aro: true,
		patch: `{spec: {secretEncryption: {type: kms, kms: {provider: Azure, azure: {activeKey: {keyVaultName: kv, keyName: k, keyVersion: "1"},
			kms: {clientID: 44444444-0000-0000-0000-000000000009, credentialsSecretName: kms, objectEncoding: utf-8}}}}}}`,
		want: map[string][]string{kasDeployment: {"--keyvault-name=kv", "secretProviderClass: managed-azure-kms"}, "kube-apiserver/secretproviderclass_managed-azure-kms.yaml": {"objectName: kms"}},
	},
	"When Azure is the user's own it should mint tokens": {
		from: "aro",
		patch: `{spec: {platform: {azure: {azureAuthenticationConfig: {azureAuthenticationConfigType: WorkloadIdentities, managedIdentities: null, workloadIdentities: {
			cloudProvider: {clientID: "1"}, disk: {clientID: "2"}, file: {clientID: "3"}, ingress: {clientID: "4"}, imageRegistry: {clientID: "5"}, nodePoolManagement: {clientID: "6"}, network: {clientID: "7"}}}}}}}`,
		want: map[string][]string{
			"azure-cloud-controller-manager/serviceaccount_azure-cloud-controller-manager.yaml": {`azure.workload.identity/client-id: "1"`},
			"azure-cloud-controller-manager/deployment_azure-cloud-controller-manager.yaml":     {"--service-account-name=azure-cloud-provider"},
		},
	},
	"When the control plane is private it should be reached by names of its own": {
		patch: `{spec: {platform: {aws: {endpointAccess: Private}}}}`,
		want: map[string][]string{
			cnoDeployment: {"value: api.demo.hypershift.local", "!PROXY_INTERNAL_APISERVER_ADDRESS"}, "ignition-server/route_ignition-server.yaml": {"host: ignition-server.apps.demo.hypershift.local"},
		},
	},
	"When the network is somebody else's it should have few rights": {
		patch: `{spec: {networking: {networkType: Other}}}`,
		want:  map[string][]string{"cluster-network-operator/role_cluster-network-operator.yaml": {"ovnkube-identity-cm", "!poddisruptionbudgets"}},
	},
	"When catalogs run in the hosted cluster it should not reach for them here": {
		patch: `{spec: {olmCatalogPlacement: guest}}`,
		want:  map[string][]string{"olm-operator/deployment_olm-operator.yaml": {"!certified-operators"}},
	},
	"When catalogs are given by annotation it should take them": {
		patch: `{metadata: {annotations: {hypershift.openshift.io/redhat-operators-catalog-image: "a@sha256:1", hypershift.openshift.io/community-operators-catalog-image: "b@sha256:2", hypershift.openshift.io/certified-operators-catalog-image: "c@sha256:3"}}}`,
		want:  map[string][]string{"redhat-operators-catalog/deployment_redhat-operators-catalog.yaml": {"image: a@sha256:1", "!image.openshift.io/triggers"}},
	},
	"When it has nodes of its own it should stay on them": {
		patch: `{metadata: {annotations: {hypershift.openshift.io/topology: dedicated-request-serving-components, hypershift.openshift.io/request-serving-node-additional-selector: "size=big",
			resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver: "cpu=2,memory=4Gi"}}, spec: {nodeSelector: {pool: cp}, tolerations: [{key: t, operator: Exists}], labels: {team: blue}}}`,
		want: map[string][]string{
			kasDeployment: {"replicas: 2", "key: size", "cpu: \"2\"", "team: blue", "pool: cp", "- \"2\""}, "kube-scheduler/deployment_kube-scheduler.yaml": {"key: t", "!requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms"},
		},
	},
	"When autoscaling is set it should say so in the published order": {
		patch: `{spec: {autoscaling: {maxNodesTotal: 10, maxPodGracePeriod: 60, maxNodeProvisionTime: 15m, podPriorityThreshold: -5, expanders: [Random], scaling: ScaleUpAndScaleDown,
			scaleDown: {delayAfterAddSeconds: 60, utilizationThresholdPercent: 50}, balancingIgnoredLabels: [z], maxFreeDifferenceRatioPercent: 10}}}`,
		want: map[string][]string{"cluster-autoscaler/deployment_cluster-autoscaler.yaml": {`        - --scale-down-enabled=true
        - --scale-down-delay-after-add=60s
        - --scale-down-utilization-threshold=0.50
        - --max-nodes-total=10
        - --max-graceful-termination-sec=60
        - --max-node-provision-time=15m
        - --max-free-difference-ratio=0.10
        - --expendable-pods-priority-cutoff=-5
        - --balancing-ignore-label=z
        - --expander=random
        - --balancing-ignore-label=hypershift.openshift.io/nodePool
`}},
	},
	"When users come from an OpenID issuer it should have no OAuth": {
		patch: `{spec: {configuration: {authentication: {type: OIDC, oidcProviders: [{name: p, issuer: {issuerURL: "https://issuer.example.com", audiences: [a], issuerCertificateAuthority: {name: oidc-ca}},
			claimMappings: {username: {claim: sub, prefixPolicy: NoPrefix}, groups: {claim: g, prefix: "oidc:"}}}]}}}}`,
		want: map[string][]string{
			"kube-apiserver/configmap_auth-config.yaml": {`"url":"https://issuer.example.com"`, `"prefix":"oidc:"`}, kasConfig: {`"authentication-config"`, "!authentication-token-webhook"},
			oasDeployment: {"--internal-oauth-disabled=true"}, kasDeployment: {"!init-auth-bootstrap-render"}, cvoDeployment: {"0000_50_console-operator_01-oauth.yaml"},
		},
	},
	"When there are identity providers it should mount what they name": {
		patch: `{spec: {configuration: {oauth: {templates: {login: {name: my-login}}, identityProviders: [{name: h, type: HTPasswd, mappingMethod: claim, htpasswd: {fileData: {name: users}}},
			{name: l, type: LDAP, ldap: {url: "ldap://x", bindDN: d, bindPassword: {name: bind}, insecure: false, ca: {name: ldap-ca}, attributes: {id: [dn]}}}]}}}}`,
		want: map[string][]string{
			"oauth-openshift/configmap_oauth-openshift.yaml":  {"/etc/oauth/idp/idp_secret_0_file-data/htpasswd", "/etc/oauth/idp/idp_cm_1_ca/ca.crt"},
			"oauth-openshift/deployment_oauth-openshift.yaml": {"secretName: users", "name: idp-secret-1-bind-password", "secretName: my-login"},
		},
	},
	"When the API server is tuned it should follow": {
		patch: `{metadata: {annotations: {hypershift.openshift.io/portieris-image: "portieris:1", hypershift.openshift.io/kube-apiserver-gogc: "50", hypershift.openshift.io/disable-profiling: "kube-apiserver,kube-scheduler"}},
			spec: {auditWebhook: {name: audit}, kubeAPIServerDNSName: api.custom.example.com, configuration: {apiServer: {audit: {profile: None}, servingCerts: {namedCertificates: [{names: [x.y], servingCertificate: {name: named}}]},
			tlsSecurityProfile: {type: Old, old: {}}}, scheduler: {profile: HighNodeUtilization, defaultNodeSelector: a=b}}}}`,
		want: map[string][]string{
			kasDeployment: {"image: portieris:1", "name: GOGC", "!name: audit-logs", "mountPath: /etc/kubernetes/certs/named-1"}, kasConfig: {`"audit-webhook-mode":["batch"]`, `"profiling":["false"]`, `"minTLSVersion":"VersionTLS10"`, `"defaultNodeSelector":"a=b"`},
			"kube-apiserver/secret_custom-admin-kubeconfig.yaml": nil, "kube-scheduler/deployment_kube-scheduler.yaml": {"--profiling=false"}, "kube-scheduler/configmap_kube-scheduler.yaml": {"MostAllocated"},
			"oauth-openshift/configmap_oauth-openshift.yaml": {"loginURL: https://api.custom.example.com:443"},
		},
	},
	"When one replica is enough it should have nothing for more": {
		patch: `{spec: {controllerAvailabilityPolicy: SingleReplica}}`,
		want:  map[string][]string{"etcd/statefulset_etcd.yaml": {"replicas: 1", "!etcd-defrag"}, "kube-apiserver/poddisruptionbudget_kube-apiserver.yaml": {"minAvailable: 1"}, kasConfig: {`"goaway-chance":["0"]`}},
	},
	"When the network is IPv6 it should put addresses into brackets": {
		patch: `{spec: {networking: {clusterNetwork: [{cidr: "fd01::/48"}], serviceNetwork: [{cidr: "fd02::/112"}], machineNetwork: [{cidr: "fd03::/64"}]}}}`,
		want:  map[string][]string{"etcd/statefulset_etcd.yaml": {"https://[$(POD_IP)]:2379", "--listen-addr=[::1]:2383"}, oasDeployment: {"!--prefer-ipv4"}},
	},
	"When somebody else keeps certificates it should mount his": {
		patch: `{metadata: {annotations: {hypershift.openshift.io/disable-pki-reconciliation: "true", hypershift.openshift.io/disable-monitoring-services: "true"}}}`,
		want:  map[string][]string{"dns-operator/deployment_dns-operator.yaml": {"secretName: dns-operator-service-account-kubeconfig"}},
	},
	"When all metrics are wanted it should leave out what is noise": {
		patch: `{spec: {monitoring: {metricsSet: All}}}`,
		want:  map[string][]string{"kube-apiserver/servicemonitor_kube-apiserver.yaml": {"regex: etcd_(debugging|disk|server).*", "regex: transformation_("}},
	},
	"When virtual machines run elsewhere it should reach them there": {
		patch: `{spec: {platform: {type: KubeVirt, aws: null, kubevirt: {credentials: {infraNamespace: infra, infraKubeConfigSecret: {name: k, key: kubeconfig}},
			storageDriver: {type: Manual, manual: {storageClassMapping: [{group: g, guestStorageClassName: a, infraStorageClassName: b}]}}}}}}`,
		want: map[string][]string{
			"kubevirt-csi-controller/configmap_driver-config.yaml":                                {"infraClusterNamespace: infra", "allowList: [b]"},
			"hosted-cluster-config-operator/deployment_hosted-cluster-config-operator.yaml":       {"--kubevirt-infra-kubeconfig="},
			"kubevirt-cloud-controller-manager/deployment_kubevirt-cloud-controller-manager.yaml": {"kubevirt-infra-credentials"},
		},
	},
	"When hardly anything is said it should have an answer": {
		patch: `{metadata: {labels: {cluster.x-k8s.io/cluster-name: x}}, spec: {clusterID: null, controllerAvailabilityPolicy: null, dns: null, infraID: null, issuerURL: null, networking: {networkType: null, serviceNetwork: null, machineNetwork: null},
			etcd: {managed: null}, olmCatalogPlacement: null, pullSecret: null, sshKey: null, services: null}}`,
		want: map[string][]string{kasDeployment: {"replicas: 3"}, kasConfig: {`"service-account-issuer":["https://kubernetes.default.svc"]`}},
	},
}

// TestRenderedOpenShiftVariants renders control planes with unusual options: none is refused, every pod is of a piece, and the option ends where it should.
func TestRenderedOpenShiftVariants(t *testing.T) {
	const root = "testdata/openshift"
	t.Setenv("ARO_HCP_KEY_VAULT_USER_CLIENT_ID", "11111111-0000-0000-0000-000000000000")
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(objects, []byte(variantObjects), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		t.Run(name, func(t *testing.T) {
			v := variants[name]
			t.Setenv("MANAGED_SERVICE", map[bool]string{true: "ARO-HCP"}[v.aro])
			got := v.render(t, root, objects)
			w := parsed(t, got)
			for workload, pod := range w.pods(t) {
				for _, problem := range podProblems(pod) {
					t.Errorf("%s: %s", workload, problem)
				}
			}
			for path, texts := range v.want {
				content, there := got[path]
				if !there {
					t.Errorf("%s is not there", path)
				}
				for _, text := range texts {
					unwanted := strings.HasPrefix(text, "!")
					if there && strings.Contains(content, strings.TrimPrefix(text, "!")) == unwanted {
						t.Errorf("%s: want %q in\n%s", path, text, content)
					}
				}
			}
		})
	}
}

// render gives the files of the variant, by their path.
func (v variant) render(t *testing.T, root, objects string) map[string]string {
	t.Helper()
	from := v.from
	if from == "" {
		from = "plain"
	}
	patch, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(v.patch, "\t", " ")))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonpatch.MergePatch(patched(t, root, from), patch)
	if err != nil || !json.Valid(doc) {
		t.Fatalf("the patch can't be merged: %v", err)
	}
	file, dir := filepath.Join(t.TempDir(), "hcp.json"), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	_, said, err := run(t, "", "--no-signing", "--no-defaults", "--all", "--placeholder-images", "--management-capabilities", "all", "--output-dir", dir,
		"-f", file, "--release-metadata", filepath.Join(root, "release.json"), "--objects", filepath.Join(root, "objects.yaml"), "--objects", objects, "--infra-status", filepath.Join(root, "infra.yaml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return files(t, dir)
}

// variantObjects are what variants name.
const variantObjects = `
apiVersion: v1
kind: Secret
metadata: {name: active-key, namespace: clusters-demo}
data: {key: bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm4=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: oidc-ca, namespace: clusters-demo}
data: {ca-bundle.crt: authority of the issuer}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: registry-ca, namespace: clusters-demo}
data: {r1: one, r0: another}
`
