package validate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/hostedcluster/sources"
)

// seen is what validation sees of a HostedCluster that is valid.
func seen(mutate ...func(*Input)) Input {
	in := Input{HC: hostedclustertest.Example("clusters", hostedclustertest.Image), Sources: sources.Set{}}
	for _, m := range mutate {
		m(&in)
	}
	return in
}

func TestValidate(t *testing.T) {
	spec := func(change func(*hyperv1.HostedClusterSpec)) func(*Input) {
		return func(in *Input) { change(&in.HC.Spec) }
	}
	for name, tc := range map[string]struct {
		world func(*Input)
		says  string // empty: valid
	}{
		"When nothing is wrong it should be valid":                    {world: func(*Input) {}},
		"When the namespace would be too long it should say how long": {world: func(in *Input) { in.HC.Name = strings.Repeat("x", 60) }, says: "would have 69 characters, at most 63"},
		"When there are no Routes it should offer what there is": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}), says: "spec.services[1] (OAuthServer): type Route needs a management cluster with route.openshift.io/v1"},
		"When a payload's router serves names on a plain management cluster it should be valid": {world: func(in *Input) {
			in.Payload = true
			for i, host := range []string{"api.example.com", "oauth.example.com"} {
				in.HC.Spec.Services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: hyperv1.PublishedHostname(host)}}
			}
		}},
		"When nobody there chooses a name for a payload's Route it should ask for one": {world: func(in *Input) {
			in.Payload = true
			in.HC.Spec.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}, says: "spec.services[1] (OAuthServer): the management cluster does not serve route.openshift.io/v1, so nobody chooses a name for type Route: set route.hostname"},
		"When a payload would have no router there it should say how it has one": {world: func(in *Input) {
			in.Payload = true
			in.HC.Spec.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "oauth.example.com"}}
		}, says: "only while APIServer is of type Route with route.hostname"},
		"When the API server is published by Route it should need a hostname": {world: func(in *Input) {
			in.Routes = true
			in.HC.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}, says: "needs route.hostname"},
		"When the API server is not published it should say so": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Services[0].ServicePublishingStrategy.Type = hyperv1.None
		}), says: "type None can't publish an API server"},
		"When two services have the same hostname it should name both": {world: func(in *Input) {
			in.Routes = true
			for i := range 2 {
				in.HC.Spec.Services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "a.example.com"}}
			}
		}, says: "spec.services[1] (OAuthServer): hostname a.example.com is also used by spec.services[0]"},
		"When a public cluster on AWS is to become private it should be refused, since its control plane is public": {world: func(in *Input) {
			in.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
				Region: "eu-west-1", EndpointAccess: hyperv1.Private, CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1"}}}
			in.Plane = &hyperv1.HostedControlPlane{}
			in.Plane.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{}
		}, says: "spec.platform.aws.endpointAccess: was Public and can't become Private"},
		"When a label is not valid it should say which": {world: spec(func(s *hyperv1.HostedClusterSpec) { s.Labels = map[string]string{"a b": "c"} }), says: `spec.labels: "a b" is not a valid label name`},
		"When a signing key is malformed it should say so": {world: func(in *Input) {
			in.HC.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "signer"}
			in.Sources[sources.Key{Kind: sources.Secret, Name: "signer"}] = sources.Object{Data: map[string][]byte{"key": []byte("x")}}
		}, says: `Secret clusters/signer: key "key" does not hold a private key in PEM form`},
		"When the trust bundle is missing it should say so": {world: func(in *Input) {
			in.HC.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "ca"}
			in.Sources[sources.Key{Kind: sources.ConfigMap, Name: "ca"}] = sources.Object{Missing: true}
		}, says: "spec.additionalTrustBundle names ConfigMap clusters/ca, which does not exist"},
		"When a mirrored Secret would replace one of the control plane it should be refused": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{
				NamedCertificates: []configv1.APIServerNamedServingCert{{ServingCertificate: configv1.SecretNameReference{Name: "root-ca"}}}}}}
		}), says: "the name root-ca is taken by an object of the control plane"},
		"When the Secret of the audit webhook would replace one of the control plane it should be refused": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.AuditWebhook = &corev1.LocalObjectReference{Name: "root-ca"}
		}), says: "spec.auditWebhook: the name root-ca is taken by an object of the control plane"},
		"When an encryption key would replace one of the control plane it should be refused": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "etcd-signer"}}}
		}), says: "spec.secretEncryption.aescbc.activeKey: the name etcd-signer is taken by an object of the control plane"},
		"When the client certificate of the user's own etcd would replace a signer it should be refused": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
				Endpoint: "https://etcd.example.com:2379", TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: "root-ca"}}}}
		}), says: "spec.etcd.unmanaged.tls.clientSecret: the name root-ca is taken by an object of the control plane"},
		"When a named certificate is for an internal name it should be refused": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{
				NamedCertificates: []configv1.APIServerNamedServingCert{{Names: []string{"Kubernetes.default.svc"}, ServingCertificate: configv1.SecretNameReference{Name: "mine"}}}}}}
		}), says: "the certificate is for Kubernetes.default.svc, by which the control plane calls the API server"},
		"When networks are of two families it should name them": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "fd01::/112"}}
		}), says: "are of different IP families"},
		"When the advertise address is inside a network it should name it": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("172.31.0.5")}
		}), says: "spec.networking.apiServer.advertiseAddress 172.31.0.5 lies inside spec.networking.serviceNetwork[0] 172.31.0.0/16"},
		"When the advertise address can't be an endpoint it should say what to choose": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("169.254.0.1")}
		}), says: "spec.networking.apiServer.advertiseAddress 169.254.0.1 can't be the endpoint of a Service: choose a private address that nothing else uses, such as 172.20.0.1, or leave the field out"},
		"When the advertise address is that of another published service it should say which": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("192.0.2.1")}
			s.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.1"}}
		}), says: "spec.networking.apiServer.advertiseAddress 192.0.2.1 is also the address of spec.services[1] (OAuthServer)"},
		"When the advertise address is the published one it should be fine": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("192.0.2.1")}
			for i := range 2 {
				s.Services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.1"}}
			}
		})},
		"When a NodePort address is inside the service network it should say so": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Services[1].ServicePublishingStrategy.NodePort.Address = "172.31.0.5"
		}), says: "spec.services[1] (OAuthServer): nodePort.address 172.31.0.5 lies inside spec.networking.serviceNetwork[0]"},
		"When the node port is out of range it should name the range": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.1", Port: 6443}}
		}), says: "nodePort.port 6443 is outside 30000-32767"},
		"When the user gives another range it should hold": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Configuration = &hyperv1.ClusterConfiguration{Network: &configv1.NetworkSpec{ServiceNodePortRange: "6000-7000"}}
			s.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.1", Port: 6443}}
		})},
		"When a shard of etcd can't work it should say which": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Shards: []hyperv1.ManagedEtcdShard{{
				Name: "widgets", Replicas: 1, Resources: []hyperv1.EtcdShardResource{{APIGroup: ptr.To("example.com"), Resource: "widgets"}}}}}}
		}), says: "spec.etcd.managed.shards[0].resources[0]: widgets.example.com is not a resource that kube-apiserver can keep"},
		"When a mirrored Secret would replace one of a shard it should be refused": {world: spec(func(s *hyperv1.HostedClusterSpec) {
			s.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Shards: []hyperv1.ManagedEtcdShard{{Name: "events"}}}}
			s.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{
				NamedCertificates: []configv1.APIServerNamedServingCert{{ServingCertificate: configv1.SecretNameReference{Name: "etcd-events-peer-tls"}}}}}}
		}), says: "the name etcd-events-peer-tls is taken by an object of the control plane"},
		"When the namespace is another cluster's it should name that": {world: func(in *Input) {
			in.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "a/b"}}}
		}, says: "belongs to HostedCluster a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mistakes := Mistakes(seen(tc.world))
			if tc.says == "" {
				g.Expect(mistakes).To(BeEmpty())
			} else {
				g.Expect(mistakes).To(ContainElement(ContainSubstring(tc.says)))
			}
		})
	}
}

func TestEncryptionPlugin(t *testing.T) {
	const key = "metadata.annotations[hypershift.openshift.io/secret-encryption-plugin]: "
	for name, tc := range map[string]struct {
		value             string
		payload, withKeys bool
		says              string // empty: usable
	}{
		"When there is none it should be usable":                                     {value: "-"},
		"When it is to hold the keys of a release of Kubernetes it should be usable": {value: encryption.PluginLocal, withKeys: true},
		"When nobody knows it it should say which there is":                          {value: "vault", withKeys: true, says: key + `"vault" is no plugin: write "local-kms", or remove the annotation`},
		"When the release is a payload it should say what there is":                  {value: encryption.PluginLocal, withKeys: true, payload: true, says: key + "OpenShift payloads have plugins of clouds alone: remove the annotation"},
		"When there are no keys to hold it should ask for them":                      {value: encryption.PluginLocal, says: key + "the plugin holds the keys of spec.secretEncryption with type aescbc, and there are none"},
	} {
		t.Run(name, func(t *testing.T) {
			in := seen(func(in *Input) {
				in.Payload = tc.payload
				if tc.value != "-" {
					in.HC.Annotations = map[string]string{encryption.PluginAnnotation: tc.value}
				}
				if tc.withKeys {
					in.HC.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key"}}}
				} else {
					in.HC.Spec.SecretEncryption = nil
				}
			})
			g := NewWithT(t)
			if mistakes := encryptionPluginIsUsable(&in); tc.says == "" {
				g.Expect(mistakes).To(BeEmpty())
			} else {
				g.Expect(mistakes).To(ConsistOf(HavePrefix(tc.says)))
			}
		})
	}
}

func TestReservedLabels(t *testing.T) {
	for key, reserved := range map[string]bool{
		"app": true, "name": true, "team": false, "app.kubernetes.io/part-of": false, "example.com/app": false, "nothypershift.openshift.io/x": false,
		hyperv1.NeedManagementKASAccessLabel: true, hyperv1.ControlPlaneComponentLabel: true, "idp.hypershift.openshift.io/x": true,
		"infrastructure.cluster.x-k8s.io/local-machine": true, "kubevirt.io": false, "kubevirt.io/vm": true, "network.openshift.io/policy-group": true,
	} {
		t.Run("When a label is "+key+" it should be known whose it is", func(t *testing.T) {
			g := NewWithT(t)
			in := seen(func(in *Input) { in.HC.Spec.Labels = map[string]string{key: "x"} })
			want := BeEmpty()
			if reserved {
				want = ConsistOf(And(HavePrefix(`spec.labels: "`+key+`"`), HaveSuffix("choose a label of your own")))
			}
			g.Expect(labelsAreValid(&in)).To(want)
		})
	}
}
