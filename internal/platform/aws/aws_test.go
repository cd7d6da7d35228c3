package aws

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/bootimages"
)

var update = flag.Bool("update", os.Getenv("UPDATE") == "true", "rewrite the golden files")

// sample is a cluster with a pool that has nothing but what it needs.
func sample() machine.Input {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.InfraID = "demo-abcde"
	arn := func(name string) string { return "arn:aws:iam::123456789012:role/demo-abcde-" + name }
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
		Region: "eu-west-1", CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1", Zone: "eu-west-1a"},
		RolesRef: hyperv1.AWSRolesRef{IngressARN: arn("openshift-ingress"), ImageRegistryARN: arn("openshift-image-registry"), StorageARN: arn("storage"),
			NetworkARN: arn("network"), KubeCloudControllerARN: arn("cloud-controller"), NodePoolManagementARN: arn("node-pool"), ControlPlaneOperatorARN: arn("control-plane-operator")},
	}}
	hc.Status.Platform = &hyperv1.PlatformStatus{AWS: &hyperv1.AWSPlatformStatus{DefaultWorkerSecurityGroupID: "sg-default"}}
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}}
	pool.Spec.Arch = hyperv1.ArchitectureAMD64
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{
		InstanceType: "m5.large", Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-1")},
	}}
	images := func(suffix string) *bootimages.Images {
		return &bootimages.Images{AWS: map[string]string{"eu-west-1": "ami-" + suffix}, AWSWindows: map[string]string{"eu-west-1": "ami-windows-" + suffix}}
	}
	payload := &release.Release{Version: "4.20.3", Image: "registry/release:4.20.3", BootImages: &bootimages.Streams{
		Default: bootimages.Stream{"amd64": images("amd64"), "arm64": images("arm64")},
	}}
	return machine.Input{HostedCluster: hc, NodePool: pool, Release: payload}
}

// changes are one for each field that machines heed.
var changes = map[string]func(*machine.Input, *hyperv1.AWSNodePoolPlatform){
	"plain": func(*machine.Input, *hyperv1.AWSNodePoolPlatform) {},
	"ami":   func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.AMI = "ami-mine" },
	"arm64": func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) {
		in.NodePool.Spec.Arch = hyperv1.ArchitectureARM64
	},
	"windows":  func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.ImageType = hyperv1.ImageTypeWindows },
	"instance": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.InstanceType = "m6i.xlarge" },
	"profile":  func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.InstanceProfile = "mine" },
	"subnet-filters": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Subnet = hyperv1.AWSResourceReference{Filters: []hyperv1.Filter{{Name: "tag:Name", Values: []string{"a", "b"}}}}
	},
	"security-groups": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.SecurityGroups = []hyperv1.AWSResourceReference{{ID: ptr.To("sg-1")}, {Filters: []hyperv1.Filter{{Name: "group-name", Values: []string{"x"}}}}}
	},
	"volume": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.RootVolume = &hyperv1.Volume{Size: 200, Type: "io1", IOPS: 3000, Encrypted: ptr.To(true), EncryptionKey: "arn:aws:kms:eu-west-1:123456789012:key/1"}
	},
	"volume-defaults": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.RootVolume = &hyperv1.Volume{} },
	"metadata-tokens": func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) {
		in.NodePool.Annotations = map[string]string{hyperv1.EC2InstanceMetadataHTTPTokensAnnotation: "required"}
	},
	"public-addresses": func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) {
		in.HostedCluster.Annotations = map[string]string{hyperv1.AWSMachinePublicIPs: "true"}
	},
	"dedicated": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{Tenancy: "dedicated"}
	},
	"spot": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{MarketType: hyperv1.PlacementMarketTypeSpot, Spot: &hyperv1.SpotOptions{MaxPrice: "0.05"}}
	},
	"spot-by-annotation": func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) {
		in.NodePool.Annotations = map[string]string{hyperv1.EnableSpotAnnotation: "true"}
	},
	"on-demand": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{MarketType: hyperv1.PlacementMarketTypeOnDemand}
	},
	"capacity-blocks": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{MarketType: hyperv1.PlacementMarketTypeCapacityBlocks, CapacityReservation: &hyperv1.CapacityReservationOptions{ID: ptr.To("cr-0123456789abcdef0")}}
	},
	"reservation": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{ID: ptr.To("cr-0123456789abcdef0")}}
	},
	"reservation-on-demand": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{ID: ptr.To("cr-0123456789abcdef0"), MarketType: hyperv1.MarketTypeOnDemand}}
	},
	"reservation-preference": func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		p.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{Preference: hyperv1.CapacityReservationPreferenceOnly}}
	},
	"tags": func(in *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
		in.HostedCluster.Spec.Platform.AWS.ResourceTags = []hyperv1.AWSClusterResourceTag{
			{AWSResourceTag: hyperv1.AWSResourceTag{Key: "team", Value: "a"}}, {AWSResourceTag: hyperv1.AWSResourceTag{Key: "cost", Value: "1"}, OverridePolicy: hyperv1.AWSTagOverrideAllow}}
		p.ResourceTags = []hyperv1.AWSResourceTag{{Key: "team", Value: "b"}, {Key: "cost", Value: "2"}, {Key: "own", Value: "x"}, {Key: "own", Value: "y"}}
	},
}

// TestFields compares the machines that each field leads to.
func TestFields(t *testing.T) {
	g := NewWithT(t)
	out := map[string]any{}
	names := map[string]string{}
	for name, change := range changes {
		in := sample()
		change(&in, in.NodePool.Spec.Platform.AWS)
		template, err := Platform{}.MachineTemplate(in)
		g.Expect(err).NotTo(HaveOccurred(), name)
		raw, err := json.Marshal(template)
		g.Expect(err).NotTo(HaveOccurred())
		var content map[string]any
		g.Expect(json.Unmarshal(raw, &content)).To(Succeed())
		out[name] = content["Object"].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"]
		identity, err := json.Marshal(template.Identity)
		g.Expect(err).NotTo(HaveOccurred())
		names[name] = string(identity)
		g.Expect(template.Interruptible).To(Equal(name == "spot" || name == "spot-by-annotation"), name)
	}
	g.Expect(names["tags"]).To(Equal(names["plain"]), "other tags replace no machine")
	for name := range changes {
		if name != "plain" && name != "tags" {
			g.Expect(names[name]).NotTo(Equal(names["plain"]), "%s is another machine", name)
		}
	}
	in := sample()
	in.HostedCluster.Annotations = map[string]string{hyperv1.AWSMachinePublicIPs: "true"}
	infra, err := Platform{}.InfraCR(in.HostedCluster, "clusters-demo", hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Platform{}.CompleteInfra(infra, in.HostedCluster, []hyperv1.NodePool{*in.NodePool, *in.NodePool})).To(Succeed())
	out["cluster"] = infra
	text, err := yaml.Marshal(out)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join("testdata", "fields.yaml")
	if *update {
		g.Expect(os.WriteFile(file, text, 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(string(want)))
}

func TestMachinesThatCannotBeMade(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*machine.Input, *hyperv1.AWSNodePoolPlatform)
		says    string
		waiting bool
	}{
		"When there is no security group yet it should wait": {change: func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) { in.HostedCluster.Status.Platform = nil }, says: "default security group", waiting: true},
		"When the release has no image of the region it should name the remedy": {change: func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) {
			in.HostedCluster.Spec.Platform.AWS.Region = "mars-1"
		}, says: "no AMI for region mars-1 and amd64: name one of the region by spec.platform.aws.ami"},
		"When the release is of Kubernetes it should ask for an image": {change: func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) {
			in.Release = &release.Release{Version: "1.36.3", Kubernetes: true}
		}, says: "release 1.36.3 brings no AMI"},
		"When there is no subnet it should say so":             {change: func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.Subnet = hyperv1.AWSResourceReference{} }, says: "spec.platform.aws.subnet"},
		"When there is no instance type it should say so":      {change: func(_ *machine.Input, p *hyperv1.AWSNodePoolPlatform) { p.InstanceType = "" }, says: "spec.platform.aws.instanceType"},
		"When the platform's part is missing it should say so": {change: func(in *machine.Input, _ *hyperv1.AWSNodePoolPlatform) { in.NodePool.Spec.Platform.AWS = nil }, says: "spec.platform.aws: is missing"},
		"When a reservation is too new for the release it should say so": {change: func(in *machine.Input, p *hyperv1.AWSNodePoolPlatform) {
			in.Release.Version = "4.18.9"
			p.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{ID: ptr.To("cr-0123456789abcdef0")}}
		}, says: "needs release 4.19 or later, and this is 4.18.9"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := sample()
			tc.change(&in, in.NodePool.Spec.Platform.AWS)
			_, err := Platform{}.MachineTemplate(in)
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			var waiting *machine.NotReadyError
			g.Expect(errors.As(err, &waiting)).To(Equal(tc.waiting))
			Platform{}.PoolConditions(in) // whatever is wrong, it answers
		})
	}
}

func TestPoolConditions(t *testing.T) {
	find := func(in machine.Input, t string) *hyperv1.NodePoolCondition {
		set, _ := Platform{}.PoolConditions(in)
		for i := range set {
			if set[i].Type == t {
				return &set[i]
			}
		}
		return nil
	}
	t.Run("When all is well it should say so", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(find(sample(), hyperv1.NodePoolValidPlatformImageType)).To(HaveField("Message", `Bootstrap AMI is "ami-amd64"`))
		g.Expect(find(sample(), hyperv1.NodePoolAWSSecurityGroupAvailableConditionType)).To(HaveField("Status", corev1.ConditionTrue))
		g.Expect(find(sample(), hyperv1.NodePoolAWSResourceTagConflictConditionType)).To(HaveField("Status", corev1.ConditionFalse))
	})
	t.Run("When the user names an image there should be nothing to say of the release's", func(t *testing.T) {
		in := sample()
		in.NodePool.Spec.Platform.AWS.AMI = "ami-mine"
		_, absent := Platform{}.PoolConditions(in)
		NewWithT(t).Expect(absent).To(ConsistOf(hyperv1.NodePoolValidPlatformImageType))
	})
	t.Run("When tags are in conflict it should name their keys, and none that is equal", func(t *testing.T) {
		g := NewWithT(t)
		in := sample()
		changes["tags"](&in, in.NodePool.Spec.Platform.AWS)
		c := find(in, hyperv1.NodePoolAWSResourceTagConflictConditionType)
		g.Expect(c).To(And(HaveField("Status", corev1.ConditionTrue), HaveField("Reason", "TagConflictDetected"), HaveField("Message", And(ContainSubstring("team"), ContainSubstring("overridden for cost"), Not(ContainSubstring("own"))))))
	})
	t.Run("When there is no security group yet it should wait for it", func(t *testing.T) {
		in := sample()
		in.HostedCluster.Status.Platform = nil
		NewWithT(t).Expect(find(in, hyperv1.NodePoolAWSSecurityGroupAvailableConditionType)).To(HaveField("Reason", "DefaultSGNotReady"))
	})
}

func TestCredentials(t *testing.T) {
	ask := func(hc *hyperv1.HostedCluster, objects ...client.Object) (map[string]string, error) {
		list, err := Platform{}.Credentials(t.Context(), fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build(), hc, "clusters-demo")
		out := map[string]string{}
		for _, o := range list {
			out[o.GetName()] = string(o.(*corev1.Secret).Data["credentials"])
		}
		return out, err
	}
	t.Run("When all roles are named it should make a file for each", func(t *testing.T) {
		g := NewWithT(t)
		got, err := ask(sample().HostedCluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(HaveLen(5))
		g.Expect(got).To(HaveKeyWithValue("node-management-creds", `[default]
role_arn = arn:aws:iam::123456789012:role/demo-abcde-node-pool
web_identity_token_file = /var/run/secrets/openshift/serviceaccount/token
sts_regional_endpoints = regional
region = eu-west-1
`))
	})
	t.Run("When a key encrypts Secrets it should have a role for it", func(t *testing.T) {
		g := NewWithT(t)
		hc := sample().HostedCluster
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{AWS: &hyperv1.AWSKMSSpec{
			Region: "eu-west-1", ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: "arn:key"}, Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: "arn:aws:iam::1:role/kms"}}}}
		got, err := ask(hc)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got["kms-creds"]).To(ContainSubstring("role/kms"))
	})
	t.Run("When a role is missing it should name the field and the Secret", func(t *testing.T) {
		hc := sample().HostedCluster
		hc.Spec.Platform.AWS.RolesRef.StorageARN = ""
		_, err := ask(hc)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("spec.platform.aws.rolesRef.storageARN is empty"), ContainSubstring("Secret ebs-cloud-credentials"))))
	})
	t.Run("When there is no region it should say so", func(t *testing.T) {
		hc := sample().HostedCluster
		hc.Spec.Platform.AWS.Region = ""
		_, err := ask(hc)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("region is empty")))
	})
	t.Run("When a Secret names the role it should be read from there", func(t *testing.T) {
		g := NewWithT(t)
		hc := sample().HostedCluster
		hc.Spec.Platform.AWS.RolesRef.NodePoolManagementARN = "arn-from-secret::old"
		_, err := ask(hc)
		g.Expect(err).To(MatchError(ContainSubstring("Secret clusters/old does not exist")))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "old"}, Data: map[string][]byte{"credentials": []byte("[other]\nrole_arn = no\n[default]\nrole_arn = arn:aws:iam::1:role/old\n")}}
		got, err := ask(hc, secret)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got["node-management-creds"]).To(ContainSubstring("role_arn = arn:aws:iam::1:role/old\n"))
		secret.Data["credentials"] = []byte("aws_access_key_id = SECRET")
		_, err = ask(hc, secret)
		g.Expect(err).To(MatchError(And(ContainSubstring("has no role_arn"), Not(ContainSubstring("SECRET")))))
	})
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	hc := sample().HostedCluster
	g.Expect(Platform{}.Default(hc)).To(BeTrue())
	g.Expect(Platform{}.Default(hc)).To(BeFalse(), "the same twice")
	g.Expect(hc.Spec.Platform.AWS.ResourceTags).To(ConsistOf(HaveField("Key", "kubernetes.io/cluster/demo-abcde")))
	hc.Spec.Platform.AWS.ResourceTags[0].Value = "shared"
	g.Expect(Platform{}.Default(hc)).To(BeTrue())
	g.Expect(hc.Spec.Platform.AWS.ResourceTags[0].Value).To(Equal("owned"))
}

func TestSupported(t *testing.T) {
	here := map[string]string{"AWS_REGION": sample().HostedCluster.Spec.Platform.AWS.Region, "AWS_SHARED_CREDENTIALS_FILE": "/etc/provider/credentials"}
	elsewhere := map[string]string{"AWS_REGION": "sa-east-1", "AWS_SHARED_CREDENTIALS_FILE": "/etc/provider/credentials"}
	for name, tc := range map[string]struct {
		access      hyperv1.AWSEndpointAccessType
		environment map[string]string
		refusal     string
	}{
		"When access is not said it should be taken":                                              {},
		"When access is public it should be taken":                                                {access: hyperv1.Public},
		"When access is private and the operator is in the region it should be taken":             {access: hyperv1.Private, environment: here},
		"When access is both and the operator is in the region it should be taken":                {access: hyperv1.PublicAndPrivate, environment: here},
		"When access is private and the operator is elsewhere it should name the region":          {access: hyperv1.Private, environment: elsewhere, refusal: "only supports private clusters in region sa-east-1"},
		"When access is private and the operator has no credentials it should say how to install": {access: hyperv1.Private, refusal: "--private-platform AWS"},
	} {
		t.Run(name, func(t *testing.T) {
			hc := sample().HostedCluster
			hc.Spec.Platform.AWS.EndpointAccess = tc.access
			err := Platform{}.Supported(hc, func(key string) string { return tc.environment[key] })
			if tc.refusal == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(tc.refusal), HaveSuffix("with endpointAccess Public"))))
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	g := NewWithT(t)
	hc := sample().HostedCluster
	hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}}}
	g.Expect(Platform{}.Mistakes(hc)).To(ConsistOf(ContainSubstring("spec.services[0] (APIServer)")))
	hc.Spec.Platform.AWS.EndpointAccess = hyperv1.Private
	g.Expect(Platform{}.Mistakes(hc)).To(BeEmpty())
	hc.Spec.Platform.AWS.CloudProviderConfig = nil
	g.Expect(Platform{}.Mistakes(hc)).To(ConsistOf(ContainSubstring("cloudProviderConfig.vpc")))
	hc.Spec.Platform.AWS = nil
	g.Expect(Platform{}.Mistakes(hc)).To(ConsistOf(ContainSubstring("spec.platform.aws: is missing")))
}

func TestConditions(t *testing.T) {
	service := func(name string, c ...metav1.Condition) client.Object {
		return &hyperv1.AWSEndpointService{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: hyperv1.AWSEndpointServiceStatus{Conditions: c}}
	}
	get := func(in cluster.Input, t string) *metav1.Condition {
		in.HostedCluster = sample().HostedCluster
		set, _ := Platform{}.Conditions(in)
		return conditions.Get(set, t)
	}
	const endpoint = hyperv1.AWSEndpointAvailable
	for name, tc := range map[string]struct {
		in   cluster.Input
		of   string
		want metav1.ConditionStatus
		says string
	}{
		"When there is no control plane it should be unknown":     {of: hyperv1.ValidAWSIdentityProvider, want: metav1.ConditionUnknown},
		"When the control plane hasn't said it should be unknown": {in: cluster.Input{HostedControlPlane: &hyperv1.HostedControlPlane{}}, of: hyperv1.AWSDefaultSecurityGroupCreated, want: metav1.ConditionUnknown},
		"When the control plane has said it should be copied": {in: cluster.Input{HostedControlPlane: &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{Conditions: []metav1.Condition{
			conditions.False(hyperv1.ValidAWSIdentityProvider, "InvalidIdentityProvider", "InvalidIdentityToken")}}}}, of: hyperv1.ValidAWSIdentityProvider, want: metav1.ConditionFalse, says: "InvalidIdentityToken"},
		"When there are no endpoints it should be unknown":                 {of: endpoint, want: metav1.ConditionUnknown},
		"When one endpoint is wrong it should be False, with what all say": {in: cluster.Input{Objects: []client.Object{service("a", conditions.False(endpoint, "AWSError", "x")), service("b", conditions.False(endpoint, "AWSError", "y"))}}, of: endpoint, want: metav1.ConditionFalse, says: "x; y"},
		"When one endpoint hasn't said it should be unknown":               {in: cluster.Input{Objects: []client.Object{service("a", conditions.True(endpoint, "AWSSuccess", "")), service("b")}}, of: endpoint, want: metav1.ConditionUnknown, says: "b"},
		"When all endpoints are there it should be True":                   {in: cluster.Input{Objects: []client.Object{service("a", conditions.True(endpoint, "AWSSuccess", ""))}}, of: endpoint, want: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			c := get(tc.in, tc.of)
			NewWithT(t).Expect(c).To(And(HaveField("Status", tc.want), HaveField("Message", ContainSubstring(tc.says))))
		})
	}
}

func TestAbandoned(t *testing.T) {
	now := time.Now()
	trusted := sample().HostedCluster
	trusted.Status.Conditions = []metav1.Condition{conditions.True(hyperv1.ValidOIDCConfiguration, "AsExpected", ""), conditions.True(hyperv1.ValidAWSIdentityProvider, "AsExpected", "")}
	going := func(since time.Duration) client.Object {
		return &hyperv1.AWSEndpointService{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now.Add(-since)}, Finalizers: []string{hyperv1.AWSEndpointServiceCPOFinalizer, hyperv1.AWSEndpointServiceHOFinalizer}}}
	}
	t.Run("When credentials are valid it should wait ten minutes", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Platform{}.Abandoned(trusted, going(9*time.Minute), now)).To(BeEmpty())
		g.Expect(Platform{}.Abandoned(trusted, going(11*time.Minute), now)).To(ConsistOf(hyperv1.AWSEndpointServiceCPOFinalizer))
	})
	t.Run("When they are not it should not wait", func(t *testing.T) {
		NewWithT(t).Expect(Platform{}.Abandoned(distrusted(), going(0), now)).To(ConsistOf(hyperv1.AWSEndpointServiceCPOFinalizer))
	})
	t.Run("When nothing is known of them it should wait, too", func(t *testing.T) {
		NewWithT(t).Expect(Platform{}.Abandoned(sample().HostedCluster, going(0), now)).To(BeEmpty())
	})
}

// distrusted is a cluster whose tokens AWS refuses.
func distrusted() *hyperv1.HostedCluster {
	hc := sample().HostedCluster
	hc.Status.Conditions = []metav1.Condition{conditions.False(hyperv1.ValidAWSIdentityProvider, "InvalidIdentityProvider", "")}
	return hc
}

func TestOrphaned(t *testing.T) {
	now := time.Now()
	trusted := sample().HostedCluster
	trusted.Status.Conditions = []metav1.Condition{conditions.True(hyperv1.ValidOIDCConfiguration, "AsExpected", ""), conditions.True(hyperv1.ValidAWSIdentityProvider, "AsExpected", "")}
	// of is a cluster with these conditions.
	of := func(list ...metav1.Condition) *hyperv1.HostedCluster {
		hc := sample().HostedCluster
		hc.Status.Conditions = list
		return hc
	}
	taken := conditions.True(hyperv1.ValidAWSIdentityProvider, "AsExpected", "")
	for name, tc := range map[string]struct {
		hc         *hyperv1.HostedCluster
		deleted    bool
		since      time.Duration
		finalizers []string
		want       bool
	}{
		"When credentials are wrong it should be let go at once":                         {distrusted(), true, 0, []string{"x"}, true},
		"When nothing is known of them its instance should not leak":                     {sample().HostedCluster, true, 9 * time.Minute, []string{"x"}, false},
		"When nothing becomes known of them it should not hold up the deletion for ever": {sample().HostedCluster, true, 11 * time.Minute, []string{"x"}, true},
		"When they are right it should be left to the provider however long it takes":    {trusted, true, time.Hour, []string{"x"}, false},
		"When the user published the documents its instance should not leak":             {of(taken), true, time.Hour, []string{"x"}, false},
		"When no documents are published but AWS takes the tokens it should not leak":    {of(taken, conditions.False(hyperv1.ValidOIDCConfiguration, "OIDCConfigurationInvalid", "")), true, time.Hour, []string{"x"}, false},
		"When it isn't being deleted it should be left alone":                            {distrusted(), false, 0, []string{"x"}, false},
		"When it has no finalizer there should be nothing to do":                         {distrusted(), true, 0, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &hyperv1.AWSEndpointService{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.finalizers}}
			if tc.deleted {
				obj.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.since)}
			}
			NewWithT(t).Expect(orphaned(tc.hc, obj, now)).To(Equal(tc.want))
		})
	}
}
