//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// webappPort is the port of docs/examples/webapp.yaml on every worker.
	webappPort = "30080"
	// appStart covers the pull of the image by workers that may have just come, on a busy machine.
	appStart  = 3 * time.Minute
	maxAnswer = 1 << 16
	// callTimeout is what a careful client gives a small request.
	callTimeout = 2 * time.Second
)

// workersReady expects the two workers of the demo cluster, and that nothing of them is left to be done.
func workersReady(t *testing.T) {
	eventually(t, 5*time.Minute, "two Ready workers", func() error {
		got, err := hosted().try(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
		if err != nil || strings.TrimSpace(got) != "True True" {
			return errors.Join(fmt.Errorf("Ready of the nodes is %q, want True True", got), err)
		}
		return nil
	})
	for condition, want := range map[string]string{
		"Ready": "True", "AllMachinesReady": "True", "AllNodesHealthy": "True", "UpdatingVersion": "False", "UpdatingConfig": "False",
		"ReachedIgnitionEndpoint": "True", "ValidGeneratedPayload": "True", "ValidMachineConfig": "True",
	} {
		eventually(t, 2*time.Minute, condition, func() error {
			got, err := management().try(t, "get", "nodepool", "-n", "clusters", "demo", "-o", fmt.Sprintf("jsonpath={.status.conditions[?(@.type=='%s')].status}", condition))
			if err != nil || got != want {
				return errors.Join(fmt.Errorf("%s of the NodePool is %q, want %s", condition, got, want), err)
			}
			return nil
		})
	}
	for _, condition := range []string{"DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable"} { // looked at once a minute
		eventually(t, 3*time.Minute, condition, func() error {
			got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", fmt.Sprintf("jsonpath={.status.conditions[?(@.type=='%s')].status}", condition))
			if err != nil || got != "True" {
				return errors.Join(fmt.Errorf("%s of the HostedCluster is %q, want True", condition, got), err)
			}
			return nil
		})
	}
}

// runWebapp is what somebody does with the example application: deploy it, reach it from outside and inside, look into it.
func runWebapp(t *testing.T) {
	k := hosted()
	k.run(t, "apply", "-f", filepath.Join(root(t), "docs/examples/webapp.yaml"))
	eventually(t, appStart, "the application", func() error {
		got, err := k.try(t, "get", "deployment", "webapp", "-o", "jsonpath={.status.availableReplicas}")
		if err != nil || got != "2" {
			return errors.Join(fmt.Errorf("%q of 2 replicas are available", got), err)
		}
		return nil
	})

	t.Run("When the Service is asked on each worker it should answer", func(t *testing.T) {
		for _, address := range workerAddresses(t, k) {
			url := "http://" + net.JoinHostPort(address, webappPort) + "/"
			eventually(t, time.Minute, url, func() error { return expectHello(ask(t.Context(), url)) })
		}
	})
	t.Run("When a pod asks the Service by its name it should answer", func(t *testing.T) {
		eventually(t, time.Minute, "an answer inside the cluster", func() error {
			out, err := k.try(t, "exec", "deployment/webapp", "--", "/webapp", "get", "http://webapp.default.svc.cluster.local/")
			return expectHello(out, err)
		})
	})
	t.Run("When the Service is made anew its name should lead to it at once", func(t *testing.T) {
		k.run(t, "delete", "service", "webapp")
		k.run(t, "apply", "-f", filepath.Join(root(t), "docs/examples/webapp.yaml"))
		// Less than an answer that is remembered would last, and than a request to an address that nobody has any more.
		eventually(t, 20*time.Second, "an answer of the new Service", func() error {
			out, err := k.try(t, "exec", "deployment/webapp", "--", "/webapp", "get", "http://webapp")
			return expectHello(out, err)
		})
	})
	t.Run("When logs are asked for they should come from the worker", func(t *testing.T) {
		eventually(t, time.Minute, "logs", func() error {
			out, err := k.try(t, "logs", "-l", "app=webapp", "--tail=-1")
			if err != nil || !strings.Contains(out, "listens at") || !strings.Contains(out, "GET /") {
				return errors.Join(fmt.Errorf("the logs show no request: %s", out), err)
			}
			return nil
		})
	})
	t.Run("When a port is forwarded it should answer", func(t *testing.T) {
		eventually(t, time.Minute, "an answer through the tunnel", func() error { return expectHello(forwarded(t, k, "deployment/webapp", "8080")) })
	})
}

func workerAddresses(t *testing.T, k kubectl) []string {
	t.Helper()
	found := strings.Fields(k.run(t, "get", "nodes", "-o", `jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}`))
	if len(found) == 0 {
		t.Fatal("no worker has an address")
	}
	return found
}

func expectHello(answer string, err error) error {
	if err != nil || !strings.HasPrefix(answer, "Hello from webapp-") {
		return errors.Join(fmt.Errorf("the answer is %q", answer), err)
	}
	return nil
}

// ask sends one request over a connection of its own, so that every one is balanced anew.
func ask(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return string(body), err
}

// forwarded asks / through "kubectl port-forward", which ends before it returns.
func forwarded(t *testing.T, k kubectl, target, port string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root(t), "bin", "kubectl"), "--kubeconfig", k.kubeconfig, "port-forward", "--address=127.0.0.1", target, ":"+port)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	line := make([]byte, 256)
	n, err := out.Read(line) // "Forwarding from 127.0.0.1:40123 -> 8080"
	if err != nil {
		return "", fmt.Errorf("kubectl port-forward: %w", err)
	}
	_, rest, _ := strings.Cut(string(line[:n]), "127.0.0.1:")
	local, _, ok := strings.Cut(rest, " ")
	if !ok {
		return "", fmt.Errorf("kubectl port-forward says %q", line[:n])
	}
	return ask(ctx, "http://"+net.JoinHostPort("127.0.0.1", local)+"/")
}
