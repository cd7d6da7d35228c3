package hostedcontrolplane

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodetrust"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pki"
)

// pkiSpec is what the control plane's certificates depend on. Annotations that cannot be read are problems to report, and count as absent.
func pkiSpec(hcp *hyperv1.HostedControlPlane, infra endpoints.Status, base pki.Spec, now time.Time) (pki.Spec, []error) {
	s := base // validity and kind of keys, as the process was started
	s.Namespace, s.Name, s.InfraID, s.Owner = hcp.Namespace, hcp.Name, hcp.Spec.InfraID, ownerReference(hcp)
	s.CustomAPIHost = hcp.Spec.KubeAPIServerDNSName
	s.InternalAPIPort, s.PodAPIPort = endpoints.ServiceAPIPort(hcp), podAPIPort(hcp)
	s.UnmanagedEtcd = hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged
	s.EtcdShards = shards.Names(hcp.Spec.Etcd)
	s.UserServiceAccountKey = hcp.Spec.ServiceAccountSigningKey != nil && hcp.Spec.ServiceAccountSigningKey.Name != ""
	if infra.Ready() {
		s.APIHost, s.APIPort, s.AdvertiseAddress = infra.APIHost, infra.APIPort, infra.AdvertiseAddress
		s.KonnectivityHost = infra.KonnectivityHost
	}
	if _, disabled := hcp.Annotations[hyperv1.DisableIgnitionServerAnnotation]; !disabled {
		s.IgnitionServer, s.IgnitionHost = true, cmp.Or(infra.IgnitionHost, endpoints.IgnitionHost(hcp))
	}
	for _, network := range hcp.Spec.Networking.ServiceNetwork {
		s.ServiceCIDRs = append(s.ServiceCIDRs, string(network.CIDR))
	}
	if ref := hcp.Spec.KubeConfig; ref != nil {
		s.AdminKubeconfigName, s.AdminKubeconfigKey = ref.Name, ref.Key
	}
	if c := hcp.Spec.Configuration; c != nil && c.APIServer != nil {
		s.ClientCA = c.APIServer.ClientCA.Name
		for _, named := range c.APIServer.ServingCerts.NamedCertificates {
			s.NamedCertificates = append(s.NamedCertificates, named.ServingCertificate.Name)
		}
	}
	s.NodesTrust = nodesTrust(hcp)
	_, s.Disabled = hcp.Annotations[pki.DisableAnnotation]
	return s, append(readAnnotations(hcp, &s), readRotation(hcp, &s, now)...)
}

// nodesTrust is the hash of what every node of the hosted cluster trusts; empty: not all trust the same, or nobody says so.
func nodesTrust(hcp *hyperv1.HostedControlPlane) string {
	if c := conditions.Get(hcp.Status.Conditions, hyperv1.NodesTrustAuthorities); c != nil && c.Status == metav1.ConditionTrue {
		return nodetrust.Reported(c.Message)
	}
	return ""
}

// readRotation reads which authorities are to be replaced. A time to come is no time of anything that could have been made before it.
func readRotation(hcp *hyperv1.HostedControlPlane, s *pki.Spec, now time.Time) []error {
	var problems []error
	for _, a := range []struct {
		key  string
		into *time.Time
	}{{pki.RotateBeforeAnnotation, &s.RotateBefore}, {pki.RevokeBeforeAnnotation, &s.RevokeBefore}, {pki.LeaveNodesAnnotation, &s.LeaveNodes}} {
		text, ok := hcp.Annotations[a.key]
		if !ok {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("annotation %s is ignored: it must be a time such as %s", a.key, now.UTC().Format(time.RFC3339)))
		case at.After(now):
			problems = append(problems, fmt.Errorf("annotation %s is ignored until then: it is a time to come, and must be one that has passed, such as %s", a.key, now.UTC().Format(time.RFC3339)))
		default:
			*a.into = at
		}
	}
	return problems
}

// payloadSpec is what the certificates of an OpenShift payload depend on, nil for a release of Kubernetes or one that isn't known.
func payloadSpec(hcp *hyperv1.HostedControlPlane, infra endpoints.Status, of flavour) *pki.Payload {
	if of != openShift {
		return nil
	}
	return &pki.Payload{
		OAuth: kit.OAuthEnabled(hcp), OAuthHost: infra.OAuthHost, IngressAuthority: kit.HasCapability(hcp, hyperv1.IngressCapability), AppsDomain: kit.IngressDomain(hcp), MetricsForwarding: kit.ForwardsMetrics(hcp), MetricsHost: cmp.Or(infra.MetricsHost, kit.MetricsProxyHost(hcp)),
	}
}

func readAnnotations(hcp *hyperv1.HostedControlPlane, s *pki.Spec) []error {
	var problems []error
	if text, ok := hcp.Annotations[pki.ValidityAnnotation]; ok {
		if d, err := time.ParseDuration(text); err == nil && d >= pki.MinValidity {
			s.Validity = d
		} else {
			problems = append(problems, fmt.Errorf("annotation %s is ignored: it must be a duration of at least %s, such as 2160h", pki.ValidityAnnotation, pki.MinValidity))
		}
	}
	if text, ok := hcp.Annotations[pki.RenewalAnnotation]; ok {
		if share, err := strconv.ParseFloat(text, 64); err == nil && share > 0 && share < 1 {
			s.RenewShare = share
		} else {
			problems = append(problems, fmt.Errorf("annotation %s is ignored: it must be a number between 0 and 1, such as 0.3", pki.RenewalAnnotation))
		}
	}
	return problems
}

// podAPIPort is where kube-apiserver listens in its pod: 443 is not for a process without privileges.
func podAPIPort(hcp *hyperv1.HostedControlPlane) int32 {
	if api := hcp.Spec.Networking.APIServer; api != nil {
		if port := ptr.Deref(api.Port, 0); port != 0 && port != endpoints.RoutePort {
			return port
		}
	}
	return endpoints.InternalAPIPort
}

// clientSigner issues certificates for components that act as a service account of the hosted cluster.
type clientSigner struct {
	reader client.Reader
	spec   pki.Spec
	source func() pki.Source
}

// ClientCertificate implements component.Signer.
func (c clientSigner) ClientCertificate(ctx context.Context, hcp *hyperv1.HostedControlPlane, subject component.Subject, existing map[string][]byte) (cert, key []byte, err error) {
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: hcp.Namespace, Name: pki.ClusterSigner}
	if err := c.reader.Get(ctx, name, secret); err != nil {
		return nil, nil, fmt.Errorf("reading signer %s: %w", name, err)
	}
	signer, err := pki.NewClientSigner(c.spec, secret, c.source())
	if err != nil {
		return nil, nil, err
	}
	cert, key = existing[corev1.TLSCertKey], existing[corev1.TLSPrivateKeyKey]
	if signer.NeedsSigning(cert, key, subject.CommonName, subject.Organizations) == "" {
		return cert, key, nil
	}
	return signer.SignClient(subject.CommonName, subject.Organizations)
}
