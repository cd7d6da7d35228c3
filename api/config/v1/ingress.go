package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IngressSpec configures the way of traffic to applications of the hosted cluster.
type IngressSpec struct {
	// domain is the suffix of the hosts of routes. The operator sets it. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="domain is immutable"
	Domain string `json:"domain,omitempty"`

	// appsDomain is the suffix of the hosts of users' routes, in place of domain.
	//
	// +optional
	AppsDomain string `json:"appsDomain,omitempty"`

	// componentRoutes replaces hosts and certificates of routes of the cluster's own components.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=250
	ComponentRoutes []ComponentRouteSpec `json:"componentRoutes,omitempty"`

	// requiredHSTSPolicies lists what routes must say about HTTP Strict Transport Security. The first match decides.
	//
	// +optional
	RequiredHSTSPolicies []RequiredHSTSPolicy `json:"requiredHSTSPolicies,omitempty"`

	// loadBalancer describes the load balancer of the default ingress controller.
	//
	// +optional
	LoadBalancer LoadBalancer `json:"loadBalancer,omitzero"`
}

// Hostname is a DNS name, which may hold other than ASCII letters.
//
// +kubebuilder:validation:Pattern=`^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$|^(([a-z0-9][-a-z0-9]{0,61}[a-z0-9]|[a-z0-9]{1,63})[\.]){0,}([a-z0-9][-a-z0-9]{0,61}[a-z0-9]|[a-z0-9]{1,63})$`
type Hostname string

// ComponentRouteSpec replaces host and certificate of one route.
type ComponentRouteSpec struct {
	// namespace is the namespace of the route.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// name is the name of the route.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// hostname is the host to use.
	//
	// +required
	Hostname Hostname `json:"hostname"`

	// servingCertKeyPairSecret names a Secret of type kubernetes.io/tls. Unset means the certificate of the ingress
	// controller.
	//
	// +optional
	ServingCertKeyPairSecret SecretNameReference `json:"servingCertKeyPairSecret,omitzero"`

	// labels are put on the route, besides its own; ingress controllers choose routes by labels. A key is a name of at most 63
	// characters, possibly after a DNS name and '/'; kubernetes.io and k8s.io and what is below them are reserved (TechPreview).
	//
	// +optional
	// +mapType=granular
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key must be a name of at most 63 letters, digits, '-', '_' and '.', possibly after a DNS name and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('kubernetes.io/') && !key.contains('.kubernetes.io/'))",message="a key cannot start with kubernetes.io/ or a domain below it"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('k8s.io/') && !key.contains('.k8s.io/'))",message="a key cannot start with k8s.io/ or a domain below it"
	Labels map[string]RouteLabelValue `json:"labels,omitempty"`
}

// RouteLabelValue is the value of a label.
//
// +kubebuilder:validation:MinLength=0
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",message="a label's value must be empty, or consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
type RouteLabelValue string

// PreloadPolicy says whether routes must ask for preloading.
//
// +kubebuilder:validation:Enum=RequirePreload;RequireNoPreload;NoOpinion
type PreloadPolicy string

// IncludeSubDomainsPolicy says whether routes must include subdomains.
//
// +kubebuilder:validation:Enum=RequireIncludeSubDomains;RequireNoIncludeSubDomains;NoOpinion
type IncludeSubDomainsPolicy string

// RequiredHSTSPolicy is what certain routes must say about HTTP Strict Transport Security.
type RequiredHSTSPolicy struct {
	// namespaceSelector selects the namespaces of the routes. Unset means all.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// domainPatterns lists hosts of the routes, possibly with a leading *.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	DomainPatterns []string `json:"domainPatterns"`

	// maxAge bounds how long browsers remember.
	//
	// +optional
	MaxAge MaxAgePolicy `json:"maxAge,omitzero"`

	// preloadPolicy says whether routes must ask for preloading.
	//
	// +optional
	PreloadPolicy PreloadPolicy `json:"preloadPolicy,omitempty"`

	// includeSubDomainsPolicy says whether routes must include subdomains.
	//
	// +optional
	IncludeSubDomainsPolicy IncludeSubDomainsPolicy `json:"includeSubDomainsPolicy,omitempty"`
}

// MaxAgePolicy bounds how long browsers remember, in seconds.
type MaxAgePolicy struct {
	// largestMaxAge is the upper bound; 0 has browsers forget. Unset means none.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	LargestMaxAge *int32 `json:"largestMaxAge,omitempty"`

	// smallestMaxAge is the lower bound. Unset means none.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	SmallestMaxAge *int32 `json:"smallestMaxAge,omitempty"`
}

// LoadBalancer describes the load balancer of the default ingress controller.
type LoadBalancer struct {
	// platform says what only some clouds know.
	//
	// +optional
	Platform IngressPlatformSpec `json:"platform,omitzero"`
}

// PlatformType names a cloud, as OpenShift does; it is not the platform type of a HostedCluster.
//
// +kubebuilder:validation:Enum="";AWS;Azure;BareMetal;GCP;Libvirt;OpenStack;None;VSphere;oVirt;IBMCloud;KubeVirt;EquinixMetal;PowerVS;AlibabaCloud;Nutanix;External
type PlatformType string

// IngressPlatformSpec is a union over type.
//
// +union
type IngressPlatformSpec struct {
	// type names the cloud.
	//
	// +unionDiscriminator
	// +optional
	Type PlatformType `json:"type,omitempty"`

	// aws describes load balancers of AWS when type is AWS.
	//
	// +optional
	AWS *AWSIngressSpec `json:"aws,omitempty"`
}

// AWSLBType names a kind of load balancer of AWS.
//
// +kubebuilder:validation:Enum=NLB;Classic
type AWSLBType string

const (
	// NLB is a network load balancer.
	NLB AWSLBType = "NLB"
	// Classic is a classic load balancer.
	Classic AWSLBType = "Classic"
)

// AWSIngressSpec describes load balancers of AWS.
//
// +union
type AWSIngressSpec struct {
	// type names the kind.
	//
	// +unionDiscriminator
	// +required
	Type AWSLBType `json:"type"`
}
