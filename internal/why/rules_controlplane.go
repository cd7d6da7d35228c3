package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
)

// controlPlaneRules are about HostedControlPlanes and their components.
var controlPlaneRules = []Rule{
	{ID: "operator-of-control-plane-down", On: kindHostedControlPlane, See: ownOperatorDown, Sees: "always, to check the control-plane-operator", Ask: []edge{ownOperator}, Leads: true},
	{ID: "clock-wrong", On: kindHostedControlPlane, Condition: hyperv1.HostedControlPlaneDegraded, Is: yes, Says: regexp.MustCompile(`clock`), State: Broken,
		Do: "synchronise the clocks of the management cluster's nodes (NTP); then certificates are issued again"},
	{ID: "certificates-not-reconciled", On: kindHostedControlPlane, Condition: hyperv1.HostedControlPlaneDegraded, Is: yes, Reasons: []string{"CertificatesNotReconciled"}, State: Broken,
		Do: "repair or delete the Secret that the message names; its certificates are then issued again"},
	{ID: "control-plane-config-refused", On: kindHostedControlPlane, Condition: hyperv1.ValidHostedControlPlaneConfiguration, Is: no, State: Broken, Do: "correct the field that the message names"},
	{ID: "infrastructure-missing", On: kindHostedControlPlane, Condition: hyperv1.InfrastructureReady, Is: no, Reasons: []string{hyperv1.WaitingOnInfrastructureReadyReason}, State: Broken, Young: comingUp,
		Do: "install a load balancer provider, or publish the API by NodePort in spec.services"},
	{ID: "infrastructure-failed", On: kindHostedControlPlane, Condition: hyperv1.InfrastructureReady, Is: no, State: Broken, Do: "follow the message about the Service"},
	{ID: "etcd-full", On: kindHostedControlPlane, Condition: hyperv1.EtcdAvailable, Is: no, Reasons: []string{hyperv1.EtcdDatabaseFullReason}, State: Broken,
		Do: "delete objects in the hosted cluster and raise the quota: docs/alerts.md, HyperShiftEtcdDatabaseFull"},
	{ID: "etcd-no-quorum", On: kindHostedControlPlane, Condition: hyperv1.EtcdAvailable, Is: no, Ask: []edge{etcd}, State: Broken, Young: comingUp,
		Do: "find out why members don't run: kubectl get pods -l app=etcd; docs/etcd.md says how one is replaced"},
	{ID: "api-server-down", On: kindHostedControlPlane, Condition: hyperv1.KubeAPIServerAvailable, Is: no, Ask: []edge{apiServer}, State: Broken, Young: comingUp,
		Do: "read the log: kubectl logs -l app=kube-apiserver -c kube-apiserver --tail=50 in the control-plane namespace"},
	{ID: "api-address-unreachable", On: kindHostedControlPlane, Condition: hyperv1.HostedControlPlaneAvailable, Is: no, Reasons: []string{hyperv1.KASLoadBalancerNotReachableReason},
		Ask: []edge{components}, State: Broken, Young: comingUp, Do: "check that the load balancer or node port leads to the API server's pods"},
	{ID: "components-not-available", On: kindHostedControlPlane, Condition: hyperv1.HostedControlPlaneAvailable, Is: no, Ask: []edge{components, workloads}, State: Waiting,
		Do: "wait: it continues by itself; kubectl get controlplanecomponents shows what is missing"},
	{ID: "control-plane-degraded", On: kindHostedControlPlane, Condition: hyperv1.HostedControlPlaneDegraded, Is: yes, Ask: []edge{workloads}, State: Broken, Young: comingUp,
		Do: "find out why the Deployments in the message lack replicas"},
	{ID: "payload-failing", On: kindHostedControlPlane, Condition: hyperv1.ClusterVersionFailing, Is: yes, Ask: []edge{components}, State: Broken, Do: "follow the message; the rollout then continues by itself"},
	{ID: "control-plane-rolling-out", On: kindHostedControlPlane, See: rollingOut, Sees: "a component is not rolled out, or `ClusterVersionProgressing` is True", Ask: []edge{components}, Leads: true},

	{ID: "component-cycle", On: kindComponent, See: cycle, Sees: "following `Waiting for Dependencies` leads back to the component", State: Broken, Do: "report it: components that wait for each other are a bug in the release or in this version"},
	{ID: "component-waits", On: kindComponent, See: waitsForOthers, Sees: "`RolloutComplete` is False with reason WaitingForDependencies", Ask: []edge{awaited}, State: Waiting, Do: "wait: it continues when those are available"},
	{ID: "component-error", On: kindComponent, Condition: hyperv1.ControlPlaneComponentRolloutComplete, Is: no, Reasons: []string{component.ReconciliationErrorReason}, State: Broken,
		Do: "read the message; the operator keeps trying"},
	{ID: "component-unavailable", On: kindComponent, Condition: hyperv1.ControlPlaneComponentAvailable, Is: no, Ask: []edge{workloadOf}, State: Waiting,
		Do: "wait a minute; then check the pods of the component"},
	{ID: "component-rolling-out", On: kindComponent, Condition: hyperv1.ControlPlaneComponentRolloutComplete, Is: no, Ask: []edge{workloadOf}, State: Waiting, Do: "wait: replicas are being replaced"},
}

// ownOperatorDown: nobody works on the control plane.
func ownOperatorDown(s *scene, it *item) *seen {
	if len(ownOperator(s, it)) == 0 {
		return nil
	}
	return &seen{field: "status", text: "kept by the control-plane-operator"}
}

func ownOperator(s *scene, it *item) []*item {
	return s.named(kindDeployment, it.Namespace, names.ControlPlaneOperator)
}

func rollingOut(s *scene, it *item) *seen {
	if conditions.IsTrue(it.conditions, hyperv1.ClusterVersionProgressing) {
		return ofCondition(*conditions.Get(it.conditions, hyperv1.ClusterVersionProgressing))
	}
	for _, c := range components(s, it) {
		if !conditions.IsTrue(c.conditions, hyperv1.ControlPlaneComponentRolloutComplete) || !conditions.IsTrue(c.conditions, hyperv1.ControlPlaneComponentAvailable) {
			return &seen{field: "components", text: "component " + c.Name + " is not rolled out"}
		}
	}
	return nil
}

const waitsPrefix = "Waiting for Dependencies: "

// waits are the names of the components that a component waits for.
func waits(it *item) []string {
	c := conditions.Get(it.conditions, hyperv1.ControlPlaneComponentRolloutComplete)
	if c == nil || c.Status != no || c.Reason != component.WaitingForDependenciesReason {
		return nil
	}
	return strings.Split(strings.TrimPrefix(c.Message, waitsPrefix), ", ")
}

func waitsForOthers(_ *scene, it *item) *seen {
	if waits(it) == nil {
		return nil
	}
	return ofCondition(*conditions.Get(it.conditions, hyperv1.ControlPlaneComponentRolloutComplete))
}

func awaited(s *scene, it *item) []*item {
	var out []*item
	for _, name := range waits(it) {
		out = append(out, s.named(kindComponent, it.Namespace, name)...)
	}
	return out
}

// cycle: following what is waited for leads back.
func cycle(s *scene, it *item) *seen {
	path := []*item{it}
	var walk func(at *item) []*item
	walk = func(at *item) []*item {
		for _, next := range awaited(s, at) {
			if next == it {
				return path
			}
			if slices.Contains(path, next) || len(path) > maxDepth {
				continue
			}
			path = append(path, next)
			if found := walk(next); found != nil {
				return found
			}
			path = path[:len(path)-1]
		}
		return nil
	}
	found := walk(it)
	if found == nil {
		return nil
	}
	var list []string
	for _, c := range append(found, it) {
		list = append(list, c.Name)
	}
	saw := ofCondition(*conditions.Get(it.conditions, hyperv1.ControlPlaneComponentRolloutComplete))
	saw.cause = fmt.Sprintf("components wait for each other: %s", strings.Join(list, " → "))
	return saw
}

// Edges from a HostedControlPlane and from components.

func components(s *scene, it *item) []*item {
	return s.filter(kindComponent, func(c *item) bool { return c.Namespace == it.Namespace })
}

func workloads(s *scene, it *item) []*item {
	in := func(w *item) bool { return w.Namespace == it.Namespace }
	return append(s.filter(kindStatefulSet, in), s.filter(kindDeployment, in)...)
}

func etcd(s *scene, it *item) []*item {
	return s.filter(kindStatefulSet, func(w *item) bool {
		return w.Namespace == it.Namespace && (w.Name == names.Etcd || strings.HasPrefix(w.Name, names.Etcd+"-"))
	})
}

func apiServer(s *scene, it *item) []*item {
	return append(s.named(kindDeployment, it.Namespace, names.KubeAPIServer), s.named(kindComponent, it.Namespace, names.KubeAPIServer)...)
}

func workloadOf(s *scene, it *item) []*item {
	return append(s.named(kindDeployment, it.Namespace, it.Name), s.named(kindStatefulSet, it.Namespace, it.Name)...)
}
