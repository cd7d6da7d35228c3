package create

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
)

// Objects returns what makes up a hosted cluster, in the order of creation: what the HostedCluster refers to comes before it.
func Objects(o Options, g Generated) []client.Object {
	objs := []client.Object{connect.Namespace(o.Namespace), pullSecret(o, g)}
	if o.existing == nil {
		// A cluster that exists has its keys. Under the name of one that is gone there must be no other, which reads nothing that is encrypted.
		objs = append(objs, encryptionKey(o, g))
	}
	if len(g.SSHPublic) > 0 {
		objs = append(objs, sshKeySecret(o, g))
	}
	if len(o.TrustBundle) > 0 {
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: trustBundleName(o.Name), Namespace: o.Namespace},
			Data:       map[string]string{"ca-bundle.crt": string(o.TrustBundle)},
		})
	}
	if len(o.SigningKey) > 0 {
		objs = append(objs, &corev1.Secret{
			ObjectMeta: secretMeta(o, g, signingKeyName(o.Name)),
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{"key": o.SigningKey},
		})
	}
	if o.cloud != nil {
		objs = append(objs, o.cloud.objects(o, g)...)
	}
	objs = append(objs, hostedCluster(o, g))
	for _, np := range firstPools(o, g) {
		objs = append(objs, np)
	}
	return objs
}

// firstPools are the pools that a cluster starts with: one of its name, or as many as the platform needs.
func firstPools(o Options, g Generated) []*hyperv1.NodePool {
	if o.NodePool.Replicas < 0 {
		return nil
	}
	np := o.NodePool
	np.Name, np.Namespace, np.ClusterName = o.Name, o.Namespace, o.Name
	if np.ReleaseImage == "" {
		np.ReleaseImage = o.ReleaseImage
	}
	if o.cloud == nil {
		return []*hyperv1.NodePool{NodePool(np)}
	}
	return o.cloud.pools(o, g, NodePool(np))
}

// keptSecrets are made once: what is random in them must not change when the cluster is created again.
func keptSecrets(o Options) map[string]bool {
	kept := map[string]bool{encryptionKeyName(o.Name): true, pullSecretName(o.Name): o.keepsPullSecret()}
	if len(o.SSHPublicKey) == 0 {
		kept[sshKeyName(o.Name)] = true
	}
	return kept
}

func secretMeta(o Options, g Generated, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: map[string]string{
		SafeToDeleteLabel:   "true",
		AutoCreatedForLabel: g.InfraID,
	}}
}

// pullSecret has no type, so that it can be applied over one of any type: types can't change, and clusters of the published tool
// have another than those of earlier versions of this one. Who reads it goes by the key.
func pullSecret(o Options, g Generated) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: secretMeta(o, g, pullSecretName(o.Name)),
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: o.PullSecret},
	}
}

func encryptionKey(o Options, g Generated) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: secretMeta(o, g, encryptionKeyName(o.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{hyperv1.AESCBCKeySecretKey: g.EncryptionKey},
	}
}

func sshKeySecret(o Options, g Generated) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: secretMeta(o, g, sshKeyName(o.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"id_rsa.pub": g.SSHPublic},
	}
	if len(g.SSHPrivate) > 0 {
		secret.Data["id_rsa"] = g.SSHPrivate
	}
	return secret
}

func hostedCluster(o Options, g Generated) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: o.Labels, Annotations: annotations(o)},
		Spec: hyperv1.HostedClusterSpec{
			Release:                          hyperv1.Release{Image: o.ReleaseImage},
			InfraID:                          g.InfraID,
			Platform:                         hyperv1.PlatformSpec{Type: o.Platform},
			ControllerAvailabilityPolicy:     o.Availability,
			InfrastructureAvailabilityPolicy: o.InfraAvailability,
			KubeAPIServerDNSName:             o.KASDNSName,
			DNS:                              dns(o),
			Networking:                       networking(o),
			Etcd:                             etcd(o),
			Services:                         services(o),
			PullSecret:                       corev1.LocalObjectReference{Name: pullSecretName(o.Name)},
			SecretEncryption: &hyperv1.SecretEncryptionSpec{
				Type:   hyperv1.AESCBC,
				AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: encryptionKeyName(o.Name)}},
			},
			FIPS:                o.FIPS,
			NodeSelector:        o.NodeSelector,
			Labels:              o.PodLabels,
			Tolerations:         o.Tolerations,
			ImageContentSources: o.ContentSources,
		},
	}
	if len(g.SSHPublic) > 0 || o.keepsSSHKey() {
		hc.Spec.SSHKey.Name = sshKeyName(o.Name)
	}
	if len(o.TrustBundle) > 0 {
		hc.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: trustBundleName(o.Name)}
	}
	if o.PausedUntil != "" {
		hc.Spec.PausedUntil = ptr.To(o.PausedUntil)
	}
	hc.Spec.IssuerURL = o.IssuerURL
	if len(o.SigningKey) > 0 {
		hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: signingKeyName(o.Name)}
	}
	openShift(o, &hc.Spec)
	if o.cloud != nil {
		o.cloud.cluster(o, g, hc)
	}
	o.keepDefaults(hc)
	return hc
}

// keepsSSHKey says that a cluster that is created again has a key that this command once made: without it, every node would be
// replaced.
func (o Options) keepsSSHKey() bool {
	return o.existing != nil && o.existing.Spec.SSHKey.Name == sshKeyName(o.Name)
}

// keepDefaults leaves alone what can't change and what nobody asked to: an existing cluster may be of a version with other
// defaults, and its keys may have been rotated.
func (o Options) keepDefaults(hc *hyperv1.HostedCluster) {
	if o.existing == nil {
		return
	}
	without := slices.DeleteFunc(slices.Clone(hc.Spec.Services), func(s hyperv1.ServicePublishingStrategyMapping) bool { return s.Service == hyperv1.OIDC })
	hc.Spec.SecretEncryption = o.existing.Spec.SecretEncryption.DeepCopy()
	if o.keepsServices() || equality.Semantic.DeepEqual(without, o.existing.Spec.Services) {
		hc.Spec.Services = o.existing.Spec.Services
	}
	if o.keepsPullSecret() {
		hc.Spec.PullSecret = o.existing.Spec.PullSecret
	}
	o.keepRanges(&hc.Spec.Networking)
	if o.existing.Spec.DNS.BaseDomain == "" && o.BaseDomain == NewOptions(o.Platform).BaseDomain {
		hc.Spec.DNS.BaseDomain = ""
	}
}

func dns(o Options) hyperv1.DNSSpec {
	spec := hyperv1.DNSSpec{BaseDomain: hyperv1.BaseDomain(o.BaseDomain)}
	switch o.BaseDomainPrefix {
	case "":
	case "none":
		spec.BaseDomainPrefix = ptr.To(hyperv1.BaseDomain(""))
	default:
		spec.BaseDomainPrefix = ptr.To(hyperv1.BaseDomain(o.BaseDomainPrefix))
	}
	return spec
}

func networking(o Options) hyperv1.ClusterNetworking {
	spec := hyperv1.ClusterNetworking{NetworkType: o.NetworkType}
	for _, cidr := range o.ClusterCIDRs {
		spec.ClusterNetwork = append(spec.ClusterNetwork, hyperv1.ClusterNetworkEntry{CIDR: hyperv1.CIDRBlock(cidr)})
	}
	for _, cidr := range o.ServiceCIDRs {
		spec.ServiceNetwork = append(spec.ServiceNetwork, hyperv1.ServiceNetworkEntry{CIDR: hyperv1.CIDRBlock(cidr)})
	}
	for _, cidr := range o.MachineCIDRs {
		spec.MachineNetwork = append(spec.MachineNetwork, hyperv1.MachineNetworkEntry{CIDR: hyperv1.CIDRBlock(cidr)})
	}
	if o.AllocateNodeCIDRs {
		spec.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	}
	return spec
}

func etcd(o Options) hyperv1.EtcdSpec {
	volume := &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse(o.EtcdStorageSize))}
	if o.EtcdStorageClass != "" {
		volume.StorageClassName = ptr.To(o.EtcdStorageClass)
	}
	return hyperv1.EtcdSpec{
		ManagementType: hyperv1.Managed,
		Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{
			Type: hyperv1.PersistentVolumeEtcdStorage, PersistentVolume: volume,
		}},
	}
}

// localNode is the address of a local management cluster's only node. Machines reach it; Routes are not to be had there.
const localNode = "10.244.0.1"

// services lists all four endpoints, because the API wants at least four. Node ports publish all of them at the same
// address, and OIDC documents with them; behind a load balancer only the API is published, and the others by Routes where
// there are Routes. With names of its own the API is published by a Route, too, as is one that nodes reach by a private
// connection.
func services(o Options) []hyperv1.ServicePublishingStrategyMapping {
	strategy := func(service hyperv1.ServiceType) hyperv1.ServicePublishingStrategy {
		switch {
		case o.APIServerAddress != "":
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: o.APIServerAddress}}
		case o.Routes && o.ExternalDNSDomain != "" && o.PrivateNodes && (service == hyperv1.Konnectivity || service == hyperv1.Ignition):
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		case o.Routes && o.ExternalDNSDomain != "":
			host := hyperv1.PublishedHostname(hostLabels[service] + "-" + o.Name + "." + o.ExternalDNSDomain)
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: host}}
		case service == hyperv1.APIServer && o.ExternalDNSDomain != "":
			host := hyperv1.PublishedHostname(hostLabels[service] + "-" + o.Name + "." + o.ExternalDNSDomain)
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: host}}
		case service == hyperv1.APIServer && !o.Private:
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		case o.Platform == hyperv1.LocalPlatform && service != hyperv1.OAuthServer:
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: localNode}}
		case o.Routes:
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}
		return hyperv1.ServicePublishingStrategy{Type: hyperv1.None}
	}
	var list []hyperv1.ServicePublishingStrategyMapping
	all := []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition}
	if o.APIServerAddress != "" && o.Platform != hyperv1.LocalPlatform {
		all = slices.Insert(all, 2, hyperv1.OIDC)
	}
	for _, service := range all {
		list = append(list, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: strategy(service)})
	}
	return list
}

// hostLabels are the first parts of the services' names below an external DNS domain.
var hostLabels = map[hyperv1.ServiceType]string{
	hyperv1.APIServer: "api", hyperv1.OAuthServer: "oauth", hyperv1.Konnectivity: "konnectivity", hyperv1.Ignition: "ignition",
}

// localRequests are what the components of a small control plane use when it is idle. The defaults are for clusters that share a management
// cluster with strangers; with them a machine of two cores would be full after four.
var localRequests = map[string]string{
	"etcd.etcd":                     "cpu=20m,memory=128Mi",
	"kube-apiserver.kube-apiserver": "cpu=30m,memory=320Mi",
	"kube-controller-manager.kube-controller-manager": "cpu=10m,memory=128Mi",
	"kube-scheduler.kube-scheduler":                   "cpu=5m,memory=64Mi",
}

// annotations are the user's, and on platform Local the requests of control planes on one machine unless the user set them.
func annotations(o Options) map[string]string {
	if o.Platform != hyperv1.LocalPlatform {
		return o.Annotations
	}
	all := map[string]string{}
	for container, requests := range localRequests {
		all[hyperv1.ResourceRequestOverrideAnnotationPrefix+"/"+container] = requests
	}
	maps.Copy(all, o.Annotations)
	return all
}
