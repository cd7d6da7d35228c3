package openshift

import (
	"encoding/base64"
	"errors"
	"fmt"

	"hcp.internal/platform/internal/pki"
)

// API servers beside kube-apiserver, by the name of their Service in the control plane namespace and in namespace default of the hosted cluster.
const (
	openshiftAPIServer = "openshift-apiserver"
	oauthAPIServer     = "openshift-oauth-apiserver"
	packageServer      = "packageserver"
)

// aggregated is an API group that one of them serves.
type aggregated struct {
	server, version, group string
	priority               int64
}

func aggregatedGroups(in Input) []aggregated {
	var all []aggregated
	for _, g := range []string{"apps", "authorization", "build", "image", "quota", "route", "security", "template", "project"} {
		all = append(all, aggregated{openshiftAPIServer, "v1", g + ".openshift.io", 9900})
	}
	if in.oauth() {
		for _, g := range []string{"oauth", "user"} {
			all = append(all, aggregated{oauthAPIServer, "v1", g + ".openshift.io", 9900})
		}
	}
	return append(all, aggregated{packageServer, "v1", "packages.operators.coreos.com", 2000})
}

// aggregatedAPIs have kube-apiserver pass requests of these groups on: to a Service of the hosted cluster without pods, whose endpoint is the address of
// the Service in the control plane namespace. The tunnel's server sends connections to that address to an agent in the control plane.
func aggregatedAPIs(in Input) ([]Action, error) {
	authority := in.configMap(pki.RootCABundle, pki.CACertKey)
	if authority == "" {
		return nil, errors.New("ConfigMap root-ca of the control plane namespace has no ca.crt yet")
	}
	var actions []Action
	var errs []error
	done := map[string]bool{}
	for _, a := range aggregatedGroups(in) {
		if !done[a.server] {
			done[a.server] = true
			service, err := toControlPlane(in, a.server)
			errs = append(errs, err)
			actions = append(actions, service...)
		}
		actions = append(actions, apply(object("apiregistration.k8s.io/v1", "APIService", "", a.version+"."+a.group, map[string]any{"spec": map[string]any{
			"group": a.group, "version": a.version, "groupPriorityMinimum": a.priority, "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString([]byte(authority)),
			"service":  map[string]any{"namespace": "default", "name": a.server, "port": int64(443)},
		}}))...)
	}
	return actions, errors.Join(errs...)
}

// toControlPlane are a Service of the hosted cluster and its endpoint, the address of the Service of that name in the control plane namespace.
func toControlPlane(in Input, name string) ([]Action, error) {
	service := apply(object(core, "Service", "default", name, map[string]any{"spec": map[string]any{
		"ports": []any{map[string]any{"name": "https", "port": int64(443), "protocol": "TCP", "targetPort": int64(443)}},
	}}))
	live := in.Control.Services[name]
	if live == nil || live.Spec.ClusterIP == "" || live.Spec.ClusterIP == "None" {
		return service, fmt.Errorf("service %s of the control plane namespace has no cluster IP yet", name)
	}
	return append(service, apply(object(core, "Endpoints", "default", name, map[string]any{"subsets": []any{map[string]any{
		"addresses": []any{map[string]any{"ip": live.Spec.ClusterIP}},
		"ports":     []any{map[string]any{"name": "https", "port": int64(443), "protocol": "TCP"}},
	}}}))...), nil
}
