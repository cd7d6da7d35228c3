//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hcp.internal/platform/internal/local/components"
)

// stranger is a namespace that pretends to be another control plane, with a pod like its API server.
const stranger = `
apiVersion: v1
kind: Namespace
metadata: {name: clusters-neighbour, labels: {hypershift.openshift.io/hosted-control-plane: "true"}}
---
apiVersion: v1
kind: Pod
metadata:
  namespace: clusters-neighbour
  name: kube-apiserver
  labels: {app: kube-apiserver, hypershift.openshift.io/control-plane-component: kube-apiserver, hypershift.openshift.io/need-management-kas-access: "true"}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  containers: [{name: pause, image: %s}]
`

// packetsAreRefused opens connections out of the networks of pods of the management cluster: of another namespace, of a hosted cluster's worker, and of the
// control plane itself.
func packetsAreRefused(t *testing.T) {
	k := management()
	const ns = "clusters-demo"
	k.applyYAML(t, fmt.Sprintf(stranger, components.PauseImage))
	t.Cleanup(func() { k.run(t, "delete", "namespace", "clusters-neighbour", "--wait=true", "--timeout=50s") })
	address := func(ns, selector string) (ip string) {
		eventually(t, time.Minute, "a pod of "+ns+" with "+selector, func() error {
			out, err := k.try(t, "get", "pods", "-n", ns, "-l", selector, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[0].status.podIP}")
			if ip = strings.TrimSpace(out); err != nil || ip == "" {
				return fmt.Errorf("no address: %q: %w", out, cmp.Or(err, errors.New("the pod has none yet")))
			}
			return nil
		})
		return ip
	}
	component := func(name string) string {
		return address(ns, "hypershift.openshift.io/control-plane-component="+name)
	}
	const machine = "10.244.0.1"
	etcd, kas, ignition, manager := component("etcd"), component("kube-apiserver"), component("ignition-server"), component("kube-controller-manager")
	operator, worker, other := component("control-plane-operator"), address(ns, "infrastructure.cluster.x-k8s.io/local-machine"), address("clusters-neighbour", "app=kube-apiserver")
	hypershift := address("hypershift", "name=operator")
	for _, c := range []struct {
		who, from, to, what string
		open                bool
	}{
		{"a neighbour's API server", other, etcd + ":2379", "etcd", false},
		{"a neighbour's API server", other, etcd + ":2380", "etcd's peers", false},
		{"a neighbour's API server", other, etcd + ":2382", "etcd's metrics", false},
		{"a neighbour's API server", other, kas + ":8090", "the tunnel's inner door", false},
		{"a neighbour's API server", other, manager + ":10257", "the controller manager", false},
		{"a neighbour's API server", other, ignition + ":8080", "ignition's metrics", false},
		{"a neighbour's API server", other, operator + ":8080", "the operator's metrics", false},
		{"a neighbour's API server", other, kas + ":6443", "the published API", true},
		{"the operator of the management cluster", hypershift, etcd + ":2379", "etcd", false},
		{"a worker", worker, etcd + ":2379", "etcd", false},
		{"a worker", worker, manager + ":10257", "the controller manager", false},
		{"a worker", worker, operator + ":8080", "the operator's metrics", false},
		{"a worker", worker, hypershift + ":9000", "an operator of the management cluster", false},
		{"a worker", worker, machine + ":6443", "the management API", false},
		{"a worker", worker, kas + ":6443", "its API", true},
		{"a worker", worker, kas + ":8091", "its tunnel", true},
		{"a worker", worker, ignition + ":9090", "its ignition server", true},
		{"a worker", worker, machine + ":5000", "the registry", true},
		{"the API server", kas, etcd + ":2379", "its etcd", true},
		{"the API server", kas, etcd + ":2380", "its etcd's peers", false},
		{"the API server", kas, machine + ":6443", "the management API", false},
		{"the API server", kas, hypershift + ":9000", "an operator of the management cluster", false},
		{"the API server", kas, manager + ":10257", "the controller manager", false},
		{"the controller manager", manager, kas + ":6443", "its API", true},
		{"the controller manager", manager, etcd + ":2379", "etcd", false},
		{"the controller manager", manager, machine + ":6443", "the management API", false},
		{"the control plane's operator", operator, machine + ":6443", "the management API", true},
		{"the control plane's operator", operator, etcd + ":2379", "etcd", true},
		{"the control plane's operator", operator, machine + ":5000", "the registry", true},
	} {
		// What is new may take a moment to be told; what is refused stays so.
		eventually(t, 20*time.Second, fmt.Sprintf("%s and %s at %s", c.who, c.what, c.to), func() error {
			err := dialFrom(t, c.from, c.to)
			if c.open != (err == nil) {
				return fmt.Errorf("open should be %t: %w", c.open, err)
			}
			return nil
		})
	}
}

// dialFrom opens a TCP connection out of the network namespace that has an address.
func dialFrom(t testing.TB, from, to string) error {
	t.Helper()
	host, port, _ := strings.Cut(to, ":")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	script := fmt.Sprintf("exec 3<>/dev/tcp/%s/%s", host, port)
	out, err := exec.CommandContext(ctx, "nsenter", "--net="+netnsOf(t, from), "timeout", "5", "bash", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// netnsOf finds the file of the network namespace of the pod with an address.
func netnsOf(t testing.TB, address string) string {
	t.Helper()
	for _, path := range list(filepath.Join(stateDir, "containerd/state/*/netns/*")) {
		out, _ := exec.CommandContext(t.Context(), "nsenter", "--net="+path, "ip", "-4", "-o", "address").Output() // one that just went has none
		if strings.Contains(string(out), " "+address+"/") {
			return path
		}
	}
	t.Fatalf("no network namespace has %s", address)
	return ""
}
