package resources

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/endpoints"
)

// apiServerProxy runs on every node when what Service default/kubernetes points to is nobody's address: it owns it there, and passes
// connections on to the published API. It is no part of a machine's payload, so nodes that users bring have it, too, and no machine
// is replaced when the API is published otherwise.
func apiServerProxy(in Input) ([]client.Object, error) {
	published := in.HCP.Status.ControlPlaneEndpoint
	if published.Host == "" || published.Port == 0 {
		return nil, nil // the endpoints say so
	}
	address, port, needed := endpoints.Advertised(&in.HCP.Spec.Networking, published.Host, published.Port)
	if _, err := netip.ParseAddr(address); !needed || err != nil {
		return nil, nil //nolint:nilerr // because an error is one of the endpoints, too
	}
	image, ok := in.Images[images.APIProxy]
	if !ok {
		if in.Nodes == 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("pods can't reach the API, which is published as %s and advertised as %s, because the release has no image %s: "+
			"set spec.release of the HostedCluster to a release that has it, or publish the API by an IP address without spec.networking.apiServer.advertiseAddress",
			published.Host, address, images.APIProxy)
	}
	objects := load("kube-apiserver-proxy.yaml")
	template := &find[*appsv1.DaemonSet](objects).Spec.Template
	template.Spec.Containers[0].Args = append(template.Spec.Containers[0].Args,
		"--listen="+net.JoinHostPort(address, strconv.Itoa(int(port))), "--target="+net.JoinHostPort(published.Host, strconv.Itoa(int(published.Port))))
	complete(template, image)
	return objects, nil
}
