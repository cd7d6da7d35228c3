//go:build e2e && hosts

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	contract "hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/test/agents"
	"hcp.internal/platform/test/machinepods"
	"hcp.internal/platform/test/objects"
	"hcp.internal/platform/test/virtualmachines"
)

const (
	agentCluster, vmCluster = "onhosts", "onvms"
	// hostsNamespace has Agents, vmsNamespace virtual machines, and machinesNamespace the pods that both are.
	hostsNamespace, vmsNamespace, machinesNamespace = "hosts", "vms", "stand-in-machines"
	// nodesStart is how long it may take from a control plane to its nodes.
	nodesStart = 8 * time.Minute
)

// prepareHosts makes the definitions of both platforms and the namespaces, and has the operator see them.
func prepareHosts(t *testing.T) machinepods.Pods {
	t.Helper()
	crd, err := agents.CRD()
	if err != nil {
		t.Fatal(err)
	}
	installProviderCRDs(t, "agent", crd)
	crds, err := virtualmachines.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	installProviderCRDs(t, "kubevirt", crds...)
	management().applyYAML(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: v1
kind: Namespace
metadata: {name: %s}
---
apiVersion: v1
kind: Namespace
metadata: {name: %s}
---
apiVersion: v1
kind: Namespace
metadata: {name: clusters}
`, machinesNamespace, hostsNamespace, vmsNamespace))
	management().run(t, "rollout", "restart", "-n", "hypershift", "deployment/operator")
	management().run(t, "rollout", "status", "-n", "hypershift", "deployment/operator", "--timeout=50s")
	return machinepods.Pods{Client: clientOf(t, managementConfig(t)), Namespace: machinesNamespace, Image: nodeImage()}
}

// providerOf may do what the operator lets the provider of a cluster do.
func providerOf(t *testing.T, cluster string) client.Client {
	t.Helper()
	cfg := standardAPI(t)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:clusters-" + cluster + ":" + contract.CAPIProvider}
	return clientOf(t, &cfg)
}

// createOn makes a hosted cluster by the CLI, whose machines are containers and whose provider runs beside it.
func createOn(t *testing.T, platform, name, providerImage string, args ...string) {
	t.Helper()
	run(t, 2*time.Minute, "hypershift", append([]string{"create", "cluster", platform, "--name", name, "--infra-id", name, "--release-image", newestRelease(),
		"--pull-secret", pullSecretFile(t), "--base-domain", "example.com", "--network-type", "Other", "--allocate-node-cidrs", "--node-upgrade-type", "Replace",
		"--api-server-address", nodeAddress(t), "--annotations", contract.ContainerMachinesAnnotation + "=true", "--annotations", providerImage + "=" + noProvider,
		"--annotations", hyperv1.DebugDeploymentsAnnotation + "=" + contract.CAPIProvider, kubeconfigFlag()}, args...)...)
	eventually(t, 8*time.Minute, "the control plane of "+name, func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", name, "-o", "jsonpath={.status.conditions[?(@.type=='Available')].status}")
		if err != nil || got != "True" {
			return errors.Join(fmt.Errorf("Available is %q", got), err)
		}
		return nil
	})
}

// TestHosts wants a local cluster at /tmp/hcp-e2e: make e2e-hosts.
func TestHosts(t *testing.T) {
	pods := prepareHosts(t)
	t.Run("Agent", func(t *testing.T) { onAgents(t, pods) })
	t.Run("KubeVirt", func(t *testing.T) { onVirtualMachines(t, pods) })
}

func onAgents(t *testing.T, pods machinepods.Pods) {
	hosts := agents.Hosts{Client: pods.Client, Namespace: hostsNamespace, Pods: pods}
	for name, size := range map[string]string{"host-a": "small", "host-b": "large", "host-c": "large", "host-d": "large"} {
		if err := hosts.Register(t.Context(), name, map[string]string{"size": size}); err != nil {
			t.Fatal(err)
		}
	}
	tellOnFailure(t, agentCluster, "agents.agent-install.openshift.io", "agentclusters,agentmachines")
	beside(t, func(ctx context.Context) { objects.Run(ctx, hosts.Pass, t.Logf) })
	provider := agents.Provider{Client: providerOf(t, agentCluster), Namespace: "clusters-" + agentCluster, AgentNamespace: hostsNamespace}
	createOn(t, "agent", agentCluster, hyperv1.ClusterAPIAgentProviderImage, "--agent-namespace", hostsNamespace, "--agentLabelSelector", "size=large", "--node-pool-replicas", "2")
	beside(t, func(ctx context.Context) { objects.Run(ctx, provider.Pass, t.Logf) })

	boundHosts := func(t *testing.T, n int) {
		t.Helper()
		nodesAre(t, agentCluster, nodesStart, func() (want []string, err error) {
			bound, _, err := hosts.Bound(t.Context())
			if err != nil || len(bound) != n || slices.Contains(bound, "host-a") {
				return nil, errors.Join(fmt.Errorf("bound hosts are %v", bound), err)
			}
			for _, name := range bound {
				want = append(want, name+"=agent://"+name)
			}
			return want, nil
		})
	}
	t.Run("When a NodePool asks for two large hosts they should join, and the small one stay free", func(t *testing.T) { boundHosts(t, 2) })
	t.Run("When it asks for more than there are the others should join, and a machine say what is missing", func(t *testing.T) {
		management().run(t, "scale", "nodepool", "-n", "clusters", agentCluster, "--replicas=4")
		boundHosts(t, 3)
		eventually(t, time.Minute, "a machine that says what it misses", func() error {
			out, err := management().try(t, "get", "agentmachines", "-n", "clusters-"+agentCluster, "-o", `jsonpath={.items[*].status.conditions[?(@.type=="AgentReserved")].reason}`)
			if err != nil || !strings.Contains(out, "NoSuitableAgents") {
				return errors.Join(fmt.Errorf("reasons are %q", out), err)
			}
			return nil
		})
	})
	t.Run("When it is scaled down hosts should be free again", func(t *testing.T) {
		management().run(t, "scale", "nodepool", "-n", "clusters", agentCluster, "--replicas=1")
		boundHosts(t, 1)
		allFree(t, hosts, 3)
	})
	t.Run("When the cluster is deleted all hosts should be free, and no right be left beside them", func(t *testing.T) {
		management().run(t, "delete", "hostedcluster", "-n", "clusters", agentCluster, "--wait=false")
		gone(t, agentCluster)
		allFree(t, hosts, 4)
		if left := management().run(t, "get", "roles,rolebindings", "-n", hostsNamespace, "-o", "name"); left != "" {
			t.Fatalf("rights are left: %s", left)
		}
	})
}

// allFree waits until n hosts are nobody's.
func allFree(t *testing.T, hosts agents.Hosts, n int) {
	t.Helper()
	eventually(t, 2*time.Minute, fmt.Sprintf("%d free hosts", n), func() error {
		bound, free, err := hosts.Bound(t.Context())
		if err != nil || len(free) != n {
			return errors.Join(fmt.Errorf("free are %v, bound %v", free, bound), err)
		}
		return nil
	})
}

func onVirtualMachines(t *testing.T, pods machinepods.Pods) {
	// They are in another cluster, as far as the operators know: the kubeconfig leads back to this one.
	content, err := os.ReadFile(management().kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	infra := filepath.Join(t.TempDir(), "infra.kubeconfig")
	if err := os.WriteFile(infra, content, 0o600); err != nil {
		t.Fatal(err)
	}
	tellOnFailure(t, vmCluster, "virtualmachines,virtualmachineinstances,datavolumes", "kubevirtclusters,kubevirtmachines")
	virt := virtualmachines.Virt{Client: pods.Client, Pods: pods}
	beside(t, func(ctx context.Context) { objects.Run(ctx, virt.Pass, t.Logf) })
	provider := virtualmachines.Provider{Client: providerOf(t, vmCluster), Namespace: "clusters-" + vmCluster}
	createOn(t, "kubevirt", vmCluster, hyperv1.ClusterAPIKubeVirtProviderImage, "--service-publishing-strategy", "NodePort", "--infra-kubeconfig-file", infra, "--infra-namespace", vmsNamespace,
		"--containerdisk", "registry.example.com/disk:1", "--cores", "1", "--memory", "2Gi", "--node-pool-replicas", "1")
	beside(t, func(ctx context.Context) { objects.Run(ctx, provider.Pass, t.Logf) })

	machines := func() []string {
		return strings.Fields(management().run(t, "get", "virtualmachines", "-n", vmsNamespace, "-o", "jsonpath={.items[*].metadata.name}"))
	}
	join := func(t *testing.T, n int) {
		t.Helper()
		nodesAre(t, vmCluster, nodesStart, func() (want []string, err error) {
			all := machines()
			if len(all) != n {
				return nil, fmt.Errorf("virtual machines are %v", all)
			}
			for _, name := range all {
				want = append(want, name+"=kubevirt://"+name)
			}
			return want, nil
		})
	}
	t.Run("When a NodePool has a replica its virtual machine should run where the kubeconfig leads, and join", func(t *testing.T) { join(t, 1) })
	t.Run("When it runs NodePool and HostedCluster should say that it can move to another host", func(t *testing.T) {
		for _, what := range []string{"nodepool", "hostedcluster"} {
			eventually(t, 2*time.Minute, "the condition of the "+what, func() error {
				got, err := management().try(t, "get", what, "-n", "clusters", vmCluster, "-o", "jsonpath={.status.conditions[?(@.type=='KubeVirtNodesLiveMigratable')].status}")
				if err != nil || got != "True" {
					return errors.Join(fmt.Errorf("KubeVirtNodesLiveMigratable is %q", got), err)
				}
				return nil
			})
		}
	})
	t.Run("When the memory of machines changes all should be replaced", func(t *testing.T) {
		before := machines()
		management().run(t, "patch", "nodepool", "-n", "clusters", vmCluster, "--type=merge", "-p", `{"spec":{"platform":{"kubevirt":{"compute":{"memory":"3Gi"}}}}}`)
		eventually(t, nodesStart, "another virtual machine", func() error {
			if now := machines(); len(now) != 1 || slices.Contains(before, now[0]) {
				return fmt.Errorf("virtual machines are %v, before they were %v", now, before)
			}
			return nil
		})
		join(t, 1)
		if got := management().run(t, "get", "virtualmachines", "-n", vmsNamespace, "-o", "jsonpath={.items[*].spec.template.spec.domain.memory.guest}"); got != "3Gi" {
			t.Fatalf("memory is %s", got)
		}
	})
	t.Run("When the cluster is deleted nothing should be left where its machines ran", func(t *testing.T) {
		management().run(t, "delete", "hostedcluster", "-n", "clusters", vmCluster, "--wait=false")
		gone(t, vmCluster)
		if left := management().run(t, "get", "virtualmachines,virtualmachineinstances,datavolumes,secrets,services", "-n", vmsNamespace, "-o", "name"); left != "" {
			t.Fatalf("left are: %s", left)
		}
	})
}
