// Package apiproxy lets pods on a node of an OpenShift release reach the API of the hosted cluster under the address that Service kubernetes has.
//
// The address is put on the loopback device of each node, and a static pod there passes connections on to where the API is published: HAProxy, or, when the
// way out leads through a proxy of the user, a program of the release that asks that one.
package apiproxy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Name of the MachineConfig.
const Name = "20-apiserver-haproxy"

// Paths on a node.
const (
	setupPath    = "/usr/local/bin/setup-apiserver-ip.sh"
	teardownPath = "/usr/local/bin/teardown-apiserver-ip.sh"
	configDir    = "/etc/kubernetes/apiserver-proxy-config"
	configPath   = configDir + "/haproxy.cfg"
	podPath      = "/etc/kubernetes/manifests/kube-apiserver-proxy.yaml"
	podName      = "kube-apiserver-proxy"
	unitName     = "apiserver-ip.service"
)

// Input is what the MachineConfig is made of.
type Input struct {
	// Address that the API server advertises, which nodes put on their loopback device, and the port that is listened on.
	Address netip.Addr
	Port    int32
	// Host and HostPort are where the API is published.
	Host     string
	HostPort int32
	// Image has HAProxy.
	Image string
	// Proxy is the URL of the user's proxy to Host; empty: it is reached directly. ProxyImage has the program that asks it then.
	Proxy, ProxyImage string
}

// MachineConfig is the manifest. The same input gives the same bytes: another one replaces machines.
func MachineConfig(in Input) (string, error) {
	if in.Host == "" || in.HostPort == 0 {
		return "", errors.New("the HostedCluster has no address of its API yet; see its condition InfrastructureReady")
	}
	if strings.ContainsAny(in.Host, " \t\n\"'$`\\") {
		return "", fmt.Errorf("the address %q of the API is no name of a host", in.Host)
	}
	pod, err := staticPod(in)
	if err != nil {
		return "", err
	}
	bits := "32"
	if in.Address.Is6() {
		bits = "128"
	}
	files := []any{
		file(setupPath, 0o755, fmt.Sprintf("#!/usr/bin/env bash\nset -eu\nip address show dev lo | grep -qw 'inet6\\? %[1]s/%[2]s' || ip address add %[1]s/%[2]s scope host dev lo\n", in.Address, bits)),
		file(teardownPath, 0o755, fmt.Sprintf("#!/usr/bin/env bash\nset -eu\nip address delete %s/%s dev lo || true\n", in.Address, bits)),
		file(podPath, 0o644, pod),
	}
	if in.Proxy == "" {
		files = append(files, file(configPath, 0o644, haproxyConfig(in)))
	}
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": Name, "labels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}},
		"spec": map[string]any{"config": map[string]any{
			"ignition": map[string]any{"version": "3.2.0"},
			"storage":  map[string]any{"files": files},
			"systemd":  map[string]any{"units": []any{map[string]any{"name": unitName, "enabled": true, "contents": unit}}},
		}},
	})
	if err != nil {
		return "", fmt.Errorf("writing MachineConfig %s: %w", Name, err)
	}
	return string(out), nil
}

// unit owns the address as long as the node is up.
const unit = `[Unit]
Description=Address of the API server on the loopback device
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + setupPath + `
ExecStop=` + teardownPath + `
[Install]
WantedBy=multi-user.target
`

func file(path string, mode int, data string) any {
	return map[string]any{"path": path, "mode": mode, "overwrite": true,
		"contents": map[string]any{"source": "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(data))}}
}

// haproxyConfig passes connections on. The client's time limits are those of watches.
func haproxyConfig(in Input) string {
	return fmt.Sprintf(`global
  maxconn 7000
  log stdout local0
  log-send-hostname
defaults
  mode tcp
  log global
  option dontlognull
  retries 3
  timeout queue 5s
  timeout connect 10s
  timeout client 10m
  timeout server 10m
  timeout client-fin 5s
  timeout server-fin 5s
frontend local_apiserver
  bind %s
  default_backend remote_apiserver
backend remote_apiserver
  option tcp-check
  default-server inter 10s fall 3 rise 3
  server controlplane %s check
`, net.JoinHostPort(in.Address.String(), strconv.Itoa(int(in.Port))), net.JoinHostPort(in.Host, strconv.Itoa(int(in.HostPort))))
}

// staticPod is what the kubelet starts before there is an API.
func staticPod(in Input) (string, error) {
	listen, target := net.JoinHostPort(in.Address.String(), strconv.Itoa(int(in.Port))), net.JoinHostPort(in.Host, strconv.Itoa(int(in.HostPort)))
	main := corev1.Container{
		Name: "haproxy", Image: in.Image, Command: []string{"haproxy", "-f", configPath},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: configDir, ReadOnly: true}},
	}
	if in.Proxy != "" {
		main = corev1.Container{Name: "kubernetes-default-proxy", Image: in.ProxyImage, Command: []string{"control-plane-operator", "kubernetes-default-proxy"},
			Args: []string{"--listen-addr=" + listen, "--proxy-addr=" + in.Proxy, "--apiserver-addr=" + target}}
	}
	if main.Image == "" {
		return "", fmt.Errorf("the release has no image for the proxy to the API on nodes (container %s): name another release", main.Name)
	}
	main.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](1001)}
	main.Ports = []corev1.ContainerPort{{Name: "apiserver", ContainerPort: in.Port, HostPort: in.Port, Protocol: corev1.ProtocolTCP}}
	main.LivenessProbe = &corev1.Probe{
		InitialDelaySeconds: 120, PeriodSeconds: 120, TimeoutSeconds: 60, FailureThreshold: 3, SuccessThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/version", Scheme: corev1.URISchemeHTTPS, Host: in.Address.String(), Port: intstr.FromInt32(in.Port)}},
	}
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: "kube-system", Labels: map[string]string{"k8s-app": podName, "hypershift.openshift.io/control-plane-component": podName}},
		Spec:       corev1.PodSpec{HostNetwork: true, PriorityClassName: "system-node-critical", Containers: []corev1.Container{main}},
	}
	if in.Proxy == "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: configDir}}}}
	}
	out, err := yaml.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("writing the pod of the proxy to the API on nodes: %w", err)
	}
	return string(out), nil
}
