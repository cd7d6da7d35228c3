package agents

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/test/machinepods"
	"hcp.internal/platform/test/objects"
)

// States of hosts, by the names that the assisted installer has for them.
const (
	stateFree      = "known-unbound"
	stateBinding   = "binding"
	stateBooting   = "installing"
	stateInstalled = "added-to-existing-cluster"
	stateUnbinding = "unbinding"
)

// installed is the condition of Agents and of AgentMachines that says that a host has booted.
const installed = "Installed"

// tokenKey is the key of the token in its Secret.
const tokenKey = "ignition-token"

// Hosts stands in for the assisted installer: a host that is bound boots with the configuration that its cluster's AgentCluster leads to, and one that is
// unbound ends, is wiped, and is free again.
type Hosts struct {
	Client    client.Client
	Namespace string // of the Agents
	Pods      machinepods.Pods
}

// Register makes an Agent, as a host does that boots the discovery image, and approves it.
func (h Hosts) Register(ctx context.Context, name string, labels map[string]string) error {
	u := objects.New(HostKind, h.Namespace, name)
	u.Object["spec"] = map[string]any{"approved": true, "hostname": name}
	u.SetLabels(labels)
	if err := h.Client.Create(ctx, u); err != nil {
		return fmt.Errorf("registering host %s: %w", name, err)
	}
	return nil
}

// Pass looks at each host.
func (h Hosts) Pass(ctx context.Context) error {
	items, err := objects.List(ctx, h.Client, HostKind, h.Namespace)
	if err != nil {
		return err
	}
	var errs []error
	for i := range items {
		errs = append(errs, h.host(ctx, &items[i]))
	}
	return errors.Join(errs...)
}

func (h Hosts) host(ctx context.Context, u *unstructured.Unstructured) error {
	a := &agent{}
	if err := objects.Decode(u, a); err != nil {
		return err
	}
	var err error
	if bound := a.Spec.ClusterDeploymentName != nil && a.Spec.Token != nil; bound {
		err = h.boot(ctx, a)
	} else {
		err = h.wipe(ctx, a)
	}
	return errors.Join(err, objects.Set(ctx, h.Client, u, "status", &a.Status))
}

// boot brings a bound host a step further. It says that it begins before there is a machine, so that no machine stays behind a host that says it is free.
func (h Hosts) boot(ctx context.Context, a *agent) error {
	s := &a.Status
	if s.DebugInfo.State == stateUnbinding {
		return h.wipe(ctx, a) // it was given away again too early
	}
	if s.DebugInfo.State == stateFree || s.DebugInfo.State == "" {
		s.DebugInfo.State = stateBinding
		return nil
	}
	data, err := h.userData(ctx, a)
	if err != nil {
		conditions.Set(&s.Conditions, time.Now(), conditions.False(installed, "Waiting", err.Error()))
		return err
	}
	state, err := h.Pods.Boot(ctx, machinepods.Machine{Name: a.Name, Node: a.node(), ProviderID: providerID(a.Name), UserData: data})
	if err != nil {
		return err
	}
	if state.Address != "" {
		s.Inventory.Interfaces = []networkInterface{{Name: "eth0", IPv4: []string{state.Address + "/24"}}}
	}
	s.DebugInfo.State = stateBooting
	c := conditions.False(installed, "InstallationInProgress", "the host boots")
	if state.Running {
		s.DebugInfo.State, c = stateInstalled, conditions.True(installed, "InstallationCompleted", "")
	}
	conditions.Set(&s.Conditions, time.Now(), c)
	return nil
}

// wipe ends the machine that a host was. Its disk goes with it.
func (h Hosts) wipe(ctx context.Context, a *agent) error {
	if a.Status.DebugInfo.State == stateFree {
		return nil
	}
	a.Status.DebugInfo.State = stateUnbinding
	gone, err := h.Pods.End(ctx, a.Name)
	if err != nil || !gone {
		return err
	}
	a.Status = agentStatus{}
	a.Status.DebugInfo.State = stateFree
	return nil
}

// userData leads a host to its configuration: by the endpoint and the authority that the AgentCluster names, with the token and the headers of its Agent.
func (h Hosts) userData(ctx context.Context, a *agent) ([]byte, error) {
	cluster, at := &agentCluster{}, a.Spec.ClusterDeploymentName
	u := objects.New(clusterKind, at.Namespace, at.Name)
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return nil, fmt.Errorf("reading the cluster of host %s: %w", a.Name, err)
	}
	if err := objects.Decode(u, cluster); err != nil {
		return nil, err
	}
	endpoint := cluster.Spec.IgnitionEndpoint
	if endpoint == nil || endpoint.CA == nil {
		return nil, fmt.Errorf("AgentCluster %s/%s names no ignition endpoint", at.Namespace, at.Name)
	}
	ca, err := h.secret(ctx, *endpoint.CA, corev1.TLSCertKey)
	if err != nil {
		return nil, err
	}
	token, err := h.secret(ctx, *a.Spec.Token, tokenKey)
	if err != nil {
		return nil, err
	}
	headers := ignition.HTTPHeaders{{Name: "Authorization", Value: ptr.To("Bearer " + string(token))}}
	for _, name := range slices.Sorted(maps.Keys(a.Spec.Headers)) {
		headers = append(headers, ignition.HTTPHeader{Name: name, Value: ptr.To(a.Spec.Headers[name])})
	}
	raw, err := json.Marshal(ignition.Config{Ignition: ignition.Ignition{
		Version: ignition.MaxVersion.String(), Config: ignition.IgnitionConfig{Merge: []ignition.Resource{{Source: ptr.To(endpoint.URL), HTTPHeaders: headers}}},
		Security: ignition.Security{TLS: ignition.TLS{CertificateAuthorities: []ignition.Resource{{
			Source: ptr.To("data:text/plain;base64," + base64.StdEncoding.EncodeToString(ca))}}}},
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the user data of host %s: %w", a.Name, err)
	}
	return raw, nil
}

func (h Hosts) secret(ctx context.Context, at reference, key string) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", at.Namespace, at.Name, err)
	}
	if len(secret.Data[key]) == 0 {
		return nil, fmt.Errorf("Secret %s/%s has no key %s", at.Namespace, at.Name, key)
	}
	return secret.Data[key], nil
}

// Bound are the names of hosts that are somebody's, Free those that are nobody's, each sorted.
func (h Hosts) Bound(ctx context.Context) (bound, free []string, err error) {
	items, err := objects.List(ctx, h.Client, HostKind, h.Namespace)
	if err != nil {
		return nil, nil, err
	}
	for i := range items {
		a := &agent{}
		if err := objects.Decode(&items[i], a); err != nil {
			return nil, nil, err
		}
		switch {
		case a.Spec.ClusterDeploymentName != nil:
			bound = append(bound, a.Name)
		case a.Status.DebugInfo.State == stateFree:
			free = append(free, a.Name)
		}
	}
	slices.Sort(bound)
	slices.Sort(free)
	return bound, free, nil
}
