package resources

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/endpoints"
)

// kubernetesService is the Service that pods reach the API by. kube-apiserver creates it; its endpoints are ours, because the
// address of kube-apiserver's pod means nothing to the nodes (--endpoint-reconciler-type=none).
const kubernetesService = "kubernetes"

// skipMirror keeps the hosted cluster's mirroring controller from making a second slice out of our Endpoints.
const skipMirror = "endpointslice.kubernetes.io/skip-mirror"

// APIServerEndpoints points Service default/kubernetes to the published API. Both forms are written: kube-proxy reads the
// slice, older clients read Endpoints.
func APIServerEndpoints(in Input) ([]client.Object, error) {
	published := in.HCP.Status.ControlPlaneEndpoint
	if published.Host == "" || published.Port == 0 {
		return nil, errors.New("status.controlPlaneEndpoint of the HostedControlPlane isn't known yet")
	}
	address, port, _ := endpoints.Advertised(&in.HCP.Spec.Networking, published.Host, published.Port)
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("spec.networking.apiServer.advertiseAddress %q is not an IP address", address)
	}
	family := discoveryv1.AddressTypeIPv4
	if ip.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	return []client.Object{
		&corev1.Endpoints{ //nolint:staticcheck // because it is what older clients of the hosted cluster read
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: kubernetesService, Labels: map[string]string{skipMirror: "true"},
			},
			Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // because it is what older clients of the hosted cluster read
				Addresses: []corev1.EndpointAddress{{IP: ip.String()}},
				Ports:     []corev1.EndpointPort{{Name: "https", Port: port, Protocol: corev1.ProtocolTCP}},
			}},
		},
		&discoveryv1.EndpointSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: kubernetesService,
				Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesService},
			},
			AddressType: family,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: &port, Protocol: ptr.To(corev1.ProtocolTCP)}},
		},
	}, nil
}
