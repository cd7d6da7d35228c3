//go:build e2e && aws

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
	contract "hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/test/awsemulator"
	"hcp.internal/platform/test/awshypervisor"
	"hcp.internal/platform/test/machinepods"
)

const (
	awsRegion = "eu-central-1"
	// awsAddress is where the emulated AWS is reached from pods: no network of the local cluster, so that control planes may call it as they may the internet.
	awsAddress = "192.0.2.77"
	awsName    = "onaws"
	// awsMachines is the namespace of pods that instances are.
	awsMachines = "aws-machines"
)

// cloudy is a hosted cluster of platform AWS on the local cluster, whose cloud is emulated and whose instances are pods.
type cloudy struct {
	emulator *awsemulator.Emulator
	ec2      *ec2.Client
	network  *infra.Output
	roles    *iam.Output
	ami      string
}

// TestAWS wants a local cluster at /tmp/hcp-e2e, and bin/capa: make e2e-aws-live.
func TestAWS(t *testing.T) {
	c := &cloudy{}
	c.start(t)
	c.tellOperator(t)
	c.makeCluster(t)
	c.runProvider(t)
	c.bootInstances(t)
	t.Run("When a NodePool of AWS has a replica its instance should boot and join, by its name and ID in AWS", func(t *testing.T) { c.joins(t, 1) })
	t.Run("When it is scaled another should join", func(t *testing.T) {
		management().run(t, "scale", "nodepool", "-n", "clusters", awsName, "--replicas=2")
		c.joins(t, 2)
	})
	t.Run("When tags of the cluster change instances should get them and stay", c.retags)
	t.Run("When the instance type changes all should be replaced, and be of the Spot market when that is asked for", func(t *testing.T) {
		before := c.running(t)
		management().run(t, "patch", "nodepool", "-n", "clusters", awsName, "--type=merge", "-p",
			`{"spec":{"platform":{"aws":{"instanceType":"m5.xlarge","placement":{"marketType":"Spot","spot":{"maxPrice":"0.5"}}}}}}`)
		eventually(t, 15*time.Minute, "other instances", func() error {
			for _, id := range c.running(t) {
				if slices.Contains(before, id) {
					return fmt.Errorf("instance %s is of before", id)
				}
			}
			return nil
		})
		c.joins(t, 2)
		c.areSpot(t)
	})
	t.Run("When an instance is terminated from outside another should take its place", func(t *testing.T) {
		gone := c.running(t)[0]
		if _, err := c.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{gone}}); err != nil {
			t.Fatal(err)
		}
		c.joins(t, 2)
		if slices.Contains(c.running(t), gone) {
			t.Fatalf("instance %s still runs", gone)
		}
	})
	t.Run("When it is destroyed no instance should be left", func(t *testing.T) {
		destroyed(t, 10*time.Minute)
		if left := c.running(t); len(left) > 0 {
			t.Fatalf("instances are left: %v", left)
		}
	})
}

// TestAWSWithoutCredentials wants what TestAWS does.
func TestAWSWithoutCredentials(t *testing.T) {
	c := &cloudy{}
	c.start(t)
	c.tellOperator(t)
	c.makeCluster(t)
	stop := c.runProvider(t)
	eventually(t, 5*time.Minute, "an instance", func() error {
		if ids := c.running(t); len(ids) != 1 {
			return fmt.Errorf("instances are %v", ids)
		}
		return nil
	})
	t.Run("When AWS takes the cluster's tokens no longer and nobody ends its instance it should be gone all the same, and the instance be known by its tag", func(t *testing.T) {
		stop()
		c.emulator.Fail(awsemulator.Fault{Service: "sts", Action: "AssumeRoleWithWebIdentity", Code: "InvalidIdentityToken"})
		defer c.emulator.Heal()
		destroyed(t, 8*time.Minute)
		left := awshypervisor.Instances(t.Context(), c.ec2)
		if len(left) != 1 || left[0].State.Name != types.InstanceStateNameRunning {
			t.Fatalf("instances are %v", left)
		}
		if !slices.ContainsFunc(left[0].Tags, func(tag types.Tag) bool { return sdk.ToString(tag.Key) == "kubernetes.io/cluster/"+awsName }) {
			t.Fatalf("the instance has no tag of the cluster: %v", left[0].Tags)
		}
	})
}

// destroyed deletes the hosted cluster and waits until it is gone.
func destroyed(t *testing.T, within time.Duration) {
	t.Helper()
	management().run(t, "delete", "hostedcluster", "-n", "clusters", awsName, "--wait=false")
	eventually(t, within, "the end of the hosted cluster", func() error {
		out, err := management().try(t, "get", "hostedcluster", "-n", "clusters", awsName, "--ignore-not-found", "-o", "name")
		if err != nil || strings.TrimSpace(out) != "" {
			return errors.Join(fmt.Errorf("%s is still there", out), err)
		}
		return nil
	})
}

// retags changes the cluster's tags, and looks that instances follow without being replaced.
func (c *cloudy) retags(t *testing.T) {
	before := c.running(t)
	management().run(t, "patch", "hostedcluster", "-n", "clusters", awsName, "--type=merge", "-p", `{"spec":{"platform":{"aws":{"resourceTags":[{"key":"team","value":"green"}]}}}}`)
	eventually(t, 3*time.Minute, "the tag", func() error {
		for _, i := range awshypervisor.Instances(t.Context(), c.ec2) {
			if i.State.Name == types.InstanceStateNameRunning && !slices.ContainsFunc(i.Tags, func(tag types.Tag) bool { return sdk.ToString(tag.Key) == "team" && sdk.ToString(tag.Value) == "green" }) {
				return fmt.Errorf("instance %s has the tags %v", sdk.ToString(i.InstanceId), i.Tags)
			}
		}
		return nil
	})
	if now := c.running(t); !slices.Equal(now, before) {
		t.Fatalf("instances were %v and are %v", before, now)
	}
}

// areSpot looks that the calls which made the newest instances were for the Spot market, and that nodes tell that they may be taken away.
func (c *cloudy) areSpot(t *testing.T) {
	t.Helper()
	launches := slices.DeleteFunc(c.emulator.Calls(), func(call awsemulator.Call) bool {
		return call.String() != "ec2:RunInstances" || call.Params.Get("InstanceType") != "m5.xlarge"
	})
	if len(launches) == 0 {
		t.Fatal("no instance of the new type was made")
	}
	for _, call := range launches {
		if call.Params.Get("InstanceMarketOptions.MarketType") != "spot" || call.Params.Get("InstanceMarketOptions.SpotOptions.MaxPrice") != "0.5" {
			t.Fatalf("an instance was asked for with %v", call.Params)
		}
	}
	for _, line := range []string{"kubernetes.io/cluster/" + awsName, "aws-node-termination-handler/managed"} {
		for _, i := range awshypervisor.Instances(t.Context(), c.ec2) {
			if i.State.Name == types.InstanceStateNameRunning && !slices.ContainsFunc(i.Tags, func(tag types.Tag) bool { return sdk.ToString(tag.Key) == line }) {
				t.Fatalf("instance %s lacks tag %s: %v", sdk.ToString(i.InstanceId), line, i.Tags)
			}
		}
	}
	if got, err := management().try(t, "get", c.healthChecks(t), "-n", "clusters-"+awsName, awsName+"-spot", "-o", "name"); err != nil {
		t.Fatalf("there is no health check of interruptible machines: %s %v", got, err)
	}
}

// healthChecks is the kind of health checks where the local cluster stores objects of Cluster API.
func (c *cloudy) healthChecks(t *testing.T) string {
	if privateTypes(t) {
		return "machinehealthchecks.cluster.hypershift.openshift.io"
	}
	return "machinehealthchecks.cluster.x-k8s.io"
}

// start runs the emulated AWS, and gives it an address that pods reach.
func (c *cloudy) start(t *testing.T) {
	c.emulator = awsemulator.Start(t)
	c.emulator.Use(t)
	if out, err := exec.Command("ip", "address", "add", awsAddress+"/32", "dev", "lo").CombinedOutput(); err != nil && !strings.Contains(string(out), "exists") && !strings.Contains(string(out), "already assigned") {
		t.Fatalf("ip address add: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "address", "del", awsAddress+"/32", "dev", "lo").Run() })
	target, err := url.Parse(c.emulator.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Addr: awsAddress + ":5566", ReadHeaderTimeout: time.Minute, Handler: httputil.NewSingleHostReverseProxy(target)}
	go func() { _ = front.ListenAndServe() }()
	t.Cleanup(func() { front.Close() })

	cfg, err := session.Load(t.Context(), session.Options{Agent: "test", Region: awsRegion})
	if err != nil {
		t.Fatal(err)
	}
	c.ec2 = ec2.NewFromConfig(cfg)
	if _, err := session.Route53(cfg).CreateHostedZone(t.Context(), &route53.CreateHostedZoneInput{Name: sdk.String("example.com"), CallerReference: sdk.String("1")}); err != nil {
		t.Fatal(err)
	}
	wait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	c.network, err = infra.Create(t.Context(), infra.Options{InfraID: awsName, Name: awsName, BaseDomain: "example.com", Region: awsRegion, Zones: []string{awsRegion + "a"}, VPCCIDR: "10.0.0.0/16"},
		infra.Accounts{Cluster: infra.NewAccount(cfg)}, infra.Surroundings{Log: t.Logf, Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	c.roles, err = iam.Create(t.Context(), iam.Options{InfraID: awsName, Name: awsName, Region: awsRegion, PublicZoneID: c.network.PublicZoneID, PrivateZoneID: c.network.PrivateZoneID,
		LocalZoneID: c.network.LocalZoneID, BucketName: "docs", BucketRegion: awsRegion}, iam.NewAccount(cfg), nil, iam.Surroundings{Log: t.Logf, Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	images, err := c.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images.Images {
		if i.RootDeviceName != nil && i.Architecture == types.ArchitectureValuesX8664 && len(i.BlockDeviceMappings) > 0 && i.BlockDeviceMappings[0].Ebs != nil {
			c.ami = sdk.ToString(i.ImageId)
		}
	}
}

// tellOperator gives the operator the endpoint, and the definitions that local mode leaves out.
func (c *cloudy) tellOperator(t *testing.T) {
	installProviderCRDs(t, "aws")
	management().run(t, "set", "env", "-n", "hypershift", "deployment/operator", "-c", "operator", "AWS_ENDPOINT_URL=http://"+awsAddress+":5566")
	t.Cleanup(func() {
		_, _ = management().try(t, "set", "env", "-n", "hypershift", "deployment/operator", "-c", "operator", "AWS_ENDPOINT_URL-")
	})
	management().run(t, "rollout", "status", "-n", "hypershift", "deployment/operator", "--timeout=50s")
}

// makeCluster renders a cluster of platform None, whose API is published by a node port, and has it be one of AWS.
func (c *cloudy) makeCluster(t *testing.T) {
	node := management().run(t, "get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}")
	manifest, pullSecret := filepath.Join(t.TempDir(), "cluster.yaml"), filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(pullSecret, []byte(`{"auths":{"registry.example.com":{"auth":"bm9ib2R5Om5vdGhpbmc="}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, time.Minute, "hypershift", "create", "cluster", "none", "--name", awsName, "--infra-id", awsName, "--release-image", newestRelease(), "--external-api-server-address", node,
		"--pull-secret", pullSecret, "--node-pool-replicas=-1", kubeconfigFlag(), "--render", "--render-sensitive", "--render-into", manifest)
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(content), "\n---\n")
	for i, doc := range docs {
		if !strings.Contains(doc, "\nkind: HostedCluster\n") && !strings.HasPrefix(doc, "kind: HostedCluster\n") {
			continue
		}
		hc := &hyperv1.HostedCluster{}
		if err := yaml.Unmarshal([]byte(doc), hc); err != nil {
			t.Fatal(err)
		}
		if hc.Annotations == nil {
			hc.Annotations = map[string]string{}
		}
		hc.Annotations["hypershift.openshift.io/machines-are-containers"] = "true"
		// The provider runs beside the cluster, instead of this one.
		hc.Annotations[hyperv1.ClusterAPIProviderAWSImage], hc.Annotations[hyperv1.DebugDeploymentsAnnotation] = noProvider, contract.CAPIProvider
		hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
			Region: awsRegion, RolesRef: c.rolesRef(), CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: c.network.VPCID, Subnet: &hyperv1.AWSResourceReference{ID: ptr.To(c.network.Zones[0].SubnetID)}},
		}}
		hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: "10.0.0.0/16"}}
		raw, err := yaml.Marshal(hc)
		if err != nil {
			t.Fatal(err)
		}
		docs[i] = string(raw)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, what := range []string{"hostedclusters.hypershift.openshift.io", "nodepools.hypershift.openshift.io"} {
			out, _ := management().try(t, "get", what, "-n", "clusters", awsName, "-o", "yaml", "--ignore-not-found")
			t.Log(out)
		}
	})
	management().applyYAML(t, strings.Join(docs, "\n---\n"))
	management().applyYAML(t, fmt.Sprintf(awsPool, awsName, newestRelease(), c.roles.ProfileName, c.ami, c.network.Zones[0].SubnetID))
	eventually(t, 8*time.Minute, "the hosted cluster and its security group", func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", awsName, "-o",
			"jsonpath={.status.conditions[?(@.type=='Available')].status} {.status.platform.aws.defaultWorkerSecurityGroupID}")
		if err != nil || !strings.HasPrefix(got, "True sg-") {
			return errors.Join(fmt.Errorf("Available and group are %q", got), err)
		}
		return nil
	})
}

func (c *cloudy) rolesRef() hyperv1.AWSRolesRef {
	r := c.roles.Roles
	return hyperv1.AWSRolesRef{
		IngressARN: r.IngressARN, ImageRegistryARN: r.ImageRegistryARN, StorageARN: r.StorageARN, NetworkARN: r.NetworkARN, KubeCloudControllerARN: r.KubeCloudControllerARN,
		NodePoolManagementARN: r.NodePoolManagementARN, ControlPlaneOperatorARN: r.ControlPlaneOperatorARN,
	}
}

const awsPool = `
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: %[1]s, namespace: clusters}
spec:
  clusterName: %[1]s
  replicas: 1
  arch: amd64
  release: {image: %[2]q}
  management: {upgradeType: Replace, autoRepair: true, replace: {strategy: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}
  platform:
    type: AWS
    aws: {instanceType: m5.large, instanceProfile: %[3]q, ami: %[4]q, subnet: {id: %[5]q}, rootVolume: {type: gp3, size: 120}}
`

// runProvider runs the stock provider beside the cluster. Where objects are stored in HyperShift's groups it sees standard ones through the proxy.
// It gives what stops it.
func (c *cloudy) runProvider(t *testing.T) (stop func()) {
	server := standardAPI(t)
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf := clientcmdapi.NewConfig()
	conf.Clusters["c"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData, CertificateAuthority: server.CAFile}
	conf.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: server.CertData, ClientKeyData: server.KeyData, ClientCertificate: server.CertFile, ClientKey: server.KeyFile, Token: server.BearerToken}
	conf.Contexts["x"], conf.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	file := filepath.Join(dir, "kubeconfig")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600), clientcmd.WriteToFile(*conf, file)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(stateDir, "capa.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root(t), builds.ProviderAWSManager), "--kubeconfig="+file, "--namespace=clusters-"+awsName, "--webhook-cert-dir="+dir,
		"--insecure-diagnostics", "--health-addr=127.0.0.1:19440", "--webhook-port=19443", "--diagnostics-address=127.0.0.1:18443", "--v=4", "--sync-period=10s",
		"--feature-gates=EKS=false,ROSA=false,MachinePool=false,AutoControllerIdentityCreator=false,ExternalResourceGC=false,TagUnmanagedNetworkResources=false")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "AWS_REGION="+awsRegion), log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting the provider (make capa builds it): %v", err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
	})
	t.Cleanup(stop)
	return stop
}

// bootInstances starts a machine for each instance that runs.
func (c *cloudy) bootInstances(t *testing.T) {
	m := management()
	m.applyYAML(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: privileged}}\n", awsMachines))
	t.Cleanup(func() { _, _ = m.try(t, "delete", "namespace", awsMachines, "--wait=false") })
	api := clientOf(t, managementConfig(t))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awshypervisor.Run(ctx, c.ec2, awshypervisor.Pods{Pods: machinepods.Pods{Client: api, Namespace: awsMachines, Image: nodeImage()}, API: c.ec2, Log: t.Logf})
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// running are the IDs of instances that run.
func (c *cloudy) running(t *testing.T) (ids []string) {
	for _, i := range awshypervisor.Instances(t.Context(), c.ec2) {
		if i.State.Name == types.InstanceStateNameRunning || i.State.Name == types.InstanceStateNamePending {
			ids = append(ids, sdk.ToString(i.InstanceId))
		}
	}
	return ids
}

// joins waits until there are n instances, and a ready node of each.
func (c *cloudy) joins(t *testing.T, n int) {
	t.Helper()
	k := hostedKubectl(t, awsName)
	eventually(t, 12*time.Minute, fmt.Sprintf("%d nodes of instances", n), func() error {
		var want []string
		for _, i := range awshypervisor.Instances(t.Context(), c.ec2) {
			if i.State.Name == types.InstanceStateNameRunning {
				want = append(want, sdk.ToString(i.PrivateDnsName)+"="+awshypervisor.ProviderID(i)+"=True")
			}
		}
		out, err := k.try(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.providerID}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		got := strings.Fields(out)
		slices.Sort(want)
		slices.Sort(got)
		if err != nil || len(want) != n || !slices.Equal(got, want) {
			return errors.Join(fmt.Errorf("nodes are %v, %v are wanted", got, want), err)
		}
		return nil
	})
}
