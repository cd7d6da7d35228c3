package endpoints

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestIgnitionEndpoint(t *testing.T) {
	exposed := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, NodePort: 30123}}}}
	route := hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "ignition.example.com"}}
	six := hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "fd00::1"}}
	for name, tc := range map[string]struct {
		strategy hyperv1.ServicePublishingStrategy
		svc      *corev1.Service
		want     string
		proxy    *corev1.Service
		host     string
	}{
		"When a node port is assigned it should be address and port":   {strategy: nodePort, svc: exposed, want: "10.244.0.1:30123"},
		"When the address is IPv6 it should be in brackets":            {strategy: six, svc: exposed, want: "[fd00::1]:30123"},
		"When there is no Service yet it should be unknown":            {strategy: nodePort},
		"When no node port is assigned yet it should be unknown":       {strategy: nodePort, svc: &corev1.Service{}},
		"When it is a Route it should be the host name":                {strategy: route, want: "ignition.example.com"},
		"When it is not published it should be unknown, with any port": {strategy: none, svc: exposed},
		"When a proxy is in front of it it should be the proxy's port": {strategy: nodePort, svc: &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}, proxy: exposed, want: "10.244.0.1:30123"},
		"When the Route got another name it should be that":            {strategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}, host: "ignition-server-clusters-demo.apps.example.com", want: "ignition-server-clusters-demo.apps.example.com"},
		"When the Route has no name yet it should be unknown":          {strategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}},
	} {
		t.Run(name, func(t *testing.T) {
			services := []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.Ignition, ServicePublishingStrategy: tc.strategy}}
			NewWithT(t).Expect(IgnitionEndpoint(services, Ignition{Service: tc.svc, Proxy: tc.proxy, RouteHost: tc.host})).To(Equal(tc.want))
		})
	}
}
