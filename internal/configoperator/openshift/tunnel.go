package openshift

import (
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

const owningComponent = "openshift.io/owning-component"

// signers are the authorities of certificates that kube-controller-manager signs for the hosted cluster: those of clients, and of kubelets.
func signers(in Input) ([]Action, error) {
	authority := in.configMap(pki.KubeletCABundle, pki.CACertKey)
	if authority == "" {
		return nil, errors.New("the authority of nodes, ConfigMap kubelet-client-ca of the control plane namespace, has no ca.crt yet")
	}
	signer := edit(core, "Secret", "openshift-kube-apiserver-operator", "kube-control-plane-signer", func(live map[string]any) {
		if text(live, "metadata", "resourceVersion") == "" {
			section(live, "metadata", "annotations")[owningComponent] = "kube-apiserver"
		}
		section(live, "data")["tls.crt"] = base64Of([]byte(authority))
	})
	bundle := annotate(configMap(managedConfig, "kubelet-serving-ca", map[string]string{names.CABundleKey: authority}), owningComponent, "kube-controller-manager")
	return append([]Action{signer}, apply(bundle)...), nil
}

// agentTag is the payload's image of the tunnel's agent.
const agentTag = "apiserver-network-proxy"

// tunnel are the agents on nodes by which the control plane reaches the hosted cluster, and the other direction's check: pods that ask the API server, and note
// when it answered last.
func tunnel(in Input) ([]Action, error) {
	system := reference(core, "Namespace", "", "kube-system")
	system.SetLabels(map[string]string{
		"security.openshift.io/scc.podSecurityLabelSync": "false",
		podSecurity + "enforce":                          "privileged", podSecurity + "audit": "privileged", podSecurity + "warn": "privileged",
	})
	actions := apply(system)
	image, ok := in.Release.ImageFor(agentTag)
	if override := strings.TrimSpace(in.HCP.Annotations[hyperv1.KonnectivityAgentImageAnnotation]); override != "" {
		image, ok = override, true
	}
	var err error
	if !ok {
		err = errors.New("the release has no image " + agentTag)
	} else {
		objects, agentErr := resources.TunnelAgents(resources.Input{HCP: in.HCP, Tunnel: in.Tunnel, Images: map[string]string{images.TunnelAgent: image}})
		err = agentErr
		for _, o := range objects {
			if daemons, ok := o.(*appsv1.DaemonSet); ok {
				onIBMCloud(in, daemons)
			}
			actions = append(actions, Action{Do: Apply, Object: o})
		}
	}
	checker, ok := in.Release.ImageFor("cli")
	if !ok {
		return actions, errors.Join(err, errors.New("the release has no image cli, which checks the way to the API server"))
	}
	objects := load("connection-checker.yaml")
	health := "/version"
	if in.on(hyperv1.IBMCloudPlatform) {
		health = "/livez?exclude=etcd&exclude=log"
	}
	container := containerOf(find(objects, "Deployment"))
	container["image"] = checker
	container["env"] = []any{map[string]any{"name": "HEALTH", "value": health}}
	return append(actions, apply(objects...)...), err
}

// onIBMCloud has agents in the pod network, where the node's own is closed to them.
func onIBMCloud(in Input, daemons *appsv1.DaemonSet) {
	if !in.on(hyperv1.IBMCloudPlatform) {
		return
	}
	pod := &daemons.Spec.Template.Spec
	pod.HostNetwork = false
	c := &pod.Containers[0]
	for i, arg := range c.Args {
		c.Args[i] = strings.Replace(arg, "--health-server-host=127.0.0.1", "--health-server-host=0.0.0.0", 1)
	}
	c.LivenessProbe.HTTPGet.Host, c.ReadinessProbe.HTTPGet.Host = "", ""
}
