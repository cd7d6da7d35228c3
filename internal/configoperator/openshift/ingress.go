package openshift

import (
	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

const ingressCertificate = "default-ingress-cert"

// ingress is the default IngressController, given once, and the certificate that it serves.
func ingress(in Input) ([]Action, error) {
	if !in.has(hyperv1.IngressCapability) {
		return nil, nil
	}
	spec := map[string]any{"domain": payload.IngressDomain(in.HCP), "replicas": replicas(in), "endpointPublishingStrategy": publishing(in)}
	if in.on(hyperv1.IBMCloudPlatform) {
		spec["nodePlacement"] = map[string]any{"tolerations": []any{map[string]any{"key": "dedicated", "value": "edge"}}}
	} else {
		spec["defaultCertificate"] = map[string]any{"name": ingressCertificate}
	}
	actions := []Action{{Do: Create, Object: object(operatorV1, "IngressController", "openshift-ingress-operator", "default", map[string]any{"spec": spec})}}
	if s := in.secret("ingress-crt"); s != nil {
		actions = append(actions, apply(secret(ingressNamespace, ingressCertificate, "", map[string][]byte{"tls.crt": s.Data["tls.crt"], "tls.key": s.Data["tls.key"]}))...)
	}
	return actions, nil
}

// publishing is how Routes are reached from outside.
func publishing(in Input) map[string]any {
	if c := in.HCP.Spec.OperatorConfiguration; c != nil && c.IngressOperator != nil && c.IngressOperator.EndpointPublishingStrategy != nil {
		return encoded(c.IngressOperator.EndpointPublishingStrategy)
	}
	if in.HCP.Annotations[hyperv1.PrivateIngressControllerAnnotation] == "true" {
		return map[string]any{"type": "Private"}
	}
	balanced := func(provider map[string]any) map[string]any {
		balancer := map[string]any{"scope": scope(in)}
		if provider != nil {
			balancer["providerParameters"] = provider
		}
		return map[string]any{"type": "LoadBalancerService", "loadBalancer": balancer}
	}
	switch in.platform() {
	case hyperv1.NonePlatform:
		return map[string]any{"type": "HostNetwork"}
	case hyperv1.KubevirtPlatform:
		return map[string]any{"type": "NodePortService"}
	case hyperv1.AWSPlatform:
		if aws := awsBalancer(in); aws != nil && aws.Type == configv1.NLB {
			return balanced(map[string]any{"type": "AWS", "aws": map[string]any{"type": "NLB", "networkLoadBalancer": map[string]any{}}})
		}
		return map[string]any{"type": "LoadBalancerService"}
	case hyperv1.IBMCloudPlatform:
		if ibm := in.HCP.Spec.Platform.IBMCloud; ibm != nil && ibm.ProviderType == "UPI" {
			return map[string]any{"type": "NodePortService", "nodePort": map[string]any{"protocol": "TCP"}}
		}
	case hyperv1.OpenStackPlatform:
		if o := in.HCP.Spec.Platform.OpenStack; o != nil && o.IngressFloatingIP != "" {
			return balanced(map[string]any{"type": "OpenStack", "openstack": map[string]any{"floatingIP": o.IngressFloatingIP}})
		}
	}
	return balanced(nil)
}

func awsBalancer(in Input) *configv1.AWSIngressSpec {
	if c := in.configuration().Ingress; c != nil {
		return c.LoadBalancer.Platform.AWS
	}
	return nil
}

// scope says from where a load balancer is reached.
func scope(in Input) string {
	p := in.HCP.Spec.Platform
	internal := in.HCP.Annotations[hyperv1.IngressControllerLoadBalancerScope] == "Internal" ||
		in.on(hyperv1.AWSPlatform) && p.AWS != nil && awsBalancer(in) != nil && p.AWS.EndpointAccess == hyperv1.Private ||
		in.on(hyperv1.AzurePlatform) && p.Azure != nil && in.ManagedService != payload.ARO &&
			(p.Azure.Topology == hyperv1.AzureTopologyPrivate || p.Azure.Topology == hyperv1.AzureTopologyPublicAndPrivate)
	if internal {
		return "Internal"
	}
	return "External"
}
