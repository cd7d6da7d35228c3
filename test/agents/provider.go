package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/test/objects"
)

const (
	// finalizer keeps an AgentMachine until its host is unbound.
	finalizer = "agentmachine.agent-install.openshift.io/stand-in"
	// claimAnnotation of an Agent names the AgentMachine that has it: namespace/name/uid. It is written with the binding, so that a provider that dies in
	// between knows its host again.
	claimAnnotation = "agent-install.openshift.io/stand-in-machine"

	reserved, synced  = "AgentReserved", "AgentSpecSynced"
	noSuitable        = "NoSuitableAgents"
	waitingForMachine = "WaitingForMachine"
)

// Provider stands in for the infrastructure provider of one hosted cluster.
type Provider struct {
	// Client may do what the operator lets the provider do, in the namespace of the control plane and in that of the Agents. It sees standard groups.
	Client client.Client
	// Namespace of the control plane, and of the Agents.
	Namespace, AgentNamespace string
}

// Pass brings every AgentCluster and AgentMachine a step further.
func (p Provider) Pass(ctx context.Context) error {
	clusters, err := objects.List(ctx, p.Client, clusterKind, p.Namespace)
	if err != nil {
		return err
	}
	var errs []error
	cluster := ""
	for i := range clusters {
		cluster = clusters[i].GetName()
		errs = append(errs, p.cluster(ctx, &clusters[i]))
	}
	machines, err := objects.List(ctx, p.Client, machineKind, p.Namespace)
	if err != nil {
		return err
	}
	if len(machines) == 0 {
		return errors.Join(errs...)
	}
	hosts, err := objects.List(ctx, p.Client, HostKind, p.AgentNamespace)
	if err != nil {
		return err
	}
	w, err := observe(machines, hosts)
	if err != nil {
		return err
	}
	bound := Bind(w.claims, w.free)
	for _, m := range w.machines {
		errs = append(errs, p.machine(ctx, w, m, cluster, bound[m.Name]))
	}
	return errors.Join(errs...)
}

// cluster says that the infrastructure is there once hosts can be told where to get their configuration, and where the API is.
func (p Provider) cluster(ctx context.Context, u *unstructured.Unstructured) error {
	c := &agentCluster{}
	if err := objects.Decode(u, c); err != nil {
		return err
	}
	if c.Spec.IgnitionEndpoint == nil || c.Spec.IgnitionEndpoint.URL == "" || c.Spec.ControlPlaneEndpoint.Host == "" {
		return nil
	}
	c.Status.Ready, c.Status.ClusterDeployment = true, &reference{Namespace: p.Namespace, Name: c.Name}
	return objects.Set(ctx, p.Client, u, "status", &c.Status)
}

// world is what one pass sees.
type world struct {
	machines []*machine
	hosts    map[string]*host
	claims   []Claim
	free     []Host
}

type machine struct {
	agentMachine
	object *unstructured.Unstructured
	host   *host // nil: none
	err    error // the selector is none
}

type host struct {
	agent
	object *unstructured.Unstructured
}

func observe(machines, hosts []unstructured.Unstructured) (*world, error) {
	w, byClaim := &world{hosts: map[string]*host{}}, map[string]*host{}
	for i := range hosts {
		h := &host{object: &hosts[i]}
		if err := objects.Decode(h.object, &h.agent); err != nil {
			return nil, err
		}
		w.hosts[h.Name] = h
		byClaim[h.Annotations[claimAnnotation]] = h
		w.free = append(w.free, Host{Name: h.Name, Labels: h.Labels,
			Free: h.Spec.Approved && h.Spec.ClusterDeploymentName == nil && h.Status.DebugInfo.State == stateFree && h.DeletionTimestamp.IsZero()})
	}
	for i := range machines {
		m := &machine{object: &machines[i]}
		if err := objects.Decode(m.object, &m.agentMachine); err != nil {
			return nil, err
		}
		m.host = byClaim[m.claim()]
		w.machines = append(w.machines, m)
		if m.host != nil || !m.DeletionTimestamp.IsZero() || m.Spec.ProviderID != "" || objects.OwnerMachine(m.object) == "" {
			continue // a machine is not made twice
		}
		selector := labels.Everything()
		if m.Spec.AgentLabelSelector != nil {
			if selector, m.err = metav1.LabelSelectorAsSelector(m.Spec.AgentLabelSelector); m.err != nil {
				continue
			}
		}
		w.claims = append(w.claims, Claim{Machine: m.Name, Selector: selector, Since: m.CreationTimestamp.Time})
	}
	return w, nil
}

func (m *machine) claim() string { return m.Namespace + "/" + m.Name + "/" + string(m.UID) }

func (p Provider) machine(ctx context.Context, w *world, m *machine, cluster, found string) error {
	if !m.DeletionTimestamp.IsZero() {
		return p.release(ctx, m)
	}
	status := m.Status
	status.Conditions = slices.Clone(status.Conditions)
	say := func(conds ...metav1.Condition) { conditions.Set(&status.Conditions, time.Now(), conds...) }
	token, headers, err := p.token(ctx, m)
	switch {
	case m.err != nil:
		say(conditions.False(reserved, "InvalidLabelSelector", m.err.Error()))
	case m.host == nil && m.Spec.ProviderID != "":
		say(conditions.False(reserved, "AgentNotFound", "the Agent of this machine is gone; a machine is not made twice: delete the Machine to have another one"))
		status.Ready = false
	case err != nil:
		say(conditions.False(reserved, waitingForMachine, err.Error()))
	case cluster == "":
		say(conditions.False(reserved, "WaitingForCluster", "there is no AgentCluster yet"))
	case m.host == nil && found == "":
		say(conditions.False(reserved, noSuitable, fmt.Sprintf("no Agent of namespace %s is free, approved, and has the labels that are asked for: %s",
			p.AgentNamespace, metav1.FormatLabelSelector(m.Spec.AgentLabelSelector))))
	case m.host == nil:
		say(conditions.True(reserved, "AgentFound", ""))
		if err := p.bind(ctx, m, w.hosts[found], cluster, token, headers); err != nil {
			return err
		}
	default:
		say(conditions.True(reserved, "AgentFound", ""), conditions.True(synced, "SpecSynced", ""))
		if err := p.identify(ctx, m); err != nil {
			return err
		}
		report(m.host, &status)
	}
	return objects.Set(ctx, p.Client, m.object, "status", &status)
}

// report is what a machine says of its host.
func report(h *host, s *machineStatus) {
	s.AgentRef = &reference{Namespace: h.Namespace, Name: h.Name}
	s.Addresses = []address{{Type: "Hostname", Address: h.node()}, {Type: "InternalDNS", Address: h.node()}}
	for _, i := range h.Status.Inventory.Interfaces {
		for _, a := range i.IPv4 {
			ip, _, _ := strings.Cut(a, "/")
			s.Addresses = append(s.Addresses, address{Type: "InternalIP", Address: ip})
		}
	}
	c := conditions.False(installed, "InstallationInProgress", "the host boots")
	if of := conditions.Get(h.Status.Conditions, installed); of != nil {
		c = conditions.New(installed, of.Status, of.Reason, of.Message)
	}
	s.Ready = s.Ready || c.Status == metav1.ConditionTrue
	conditions.Set(&s.Conditions, time.Now(), c)
}

// identify writes the provider ID.
func (p Provider) identify(ctx context.Context, m *machine) error {
	if id := providerID(m.host.Name); m.Spec.ProviderID != id {
		before := m.object.DeepCopy()
		if err := unstructured.SetNestedField(m.object.Object, id, "spec", "providerID"); err != nil {
			return fmt.Errorf("setting the provider ID of %s: %w", m.Name, err)
		}
		if err := p.Client.Patch(ctx, m.object, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("writing the provider ID of %s: %w", m.Name, err)
		}
	}
	return nil
}

// bind gives a host to a machine. Only one of several that want it succeeds, as all of it is one write of what was read.
func (p Provider) bind(ctx context.Context, m *machine, h *host, cluster string, token []byte, headers map[string]string) error {
	if controllerutil.AddFinalizer(m.object, finalizer) {
		if err := p.Client.Update(ctx, m.object); err != nil {
			return fmt.Errorf("adding a finalizer to AgentMachine %s: %w", m.Name, err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: m.Name + "-ignition-token", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: provided.String(), Kind: machineKind.Kind, Name: m.Name, UID: m.UID}}}, Data: map[string][]byte{tokenKey: token}}
	err := p.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = p.Client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("writing the token of AgentMachine %s: %w", m.Name, err)
	}
	annotations := h.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[claimAnnotation] = m.claim()
	h.object.SetAnnotations(annotations)
	spec := h.Spec
	spec.ClusterDeploymentName = &reference{Namespace: p.Namespace, Name: cluster}
	spec.Token, spec.Headers = &reference{Namespace: p.Namespace, Name: secret.Name}, headers
	return objects.Set(ctx, p.Client, h.object, "spec", &spec)
}

// release unbinds the host of a machine that is deleted, and lets go of the machine.
func (p Provider) release(ctx context.Context, m *machine) error {
	if h := m.host; h != nil {
		annotations := h.object.GetAnnotations()
		delete(annotations, claimAnnotation)
		h.object.SetAnnotations(annotations)
		spec := h.Spec
		spec.ClusterDeploymentName, spec.Token, spec.Headers, spec.NodeLabels = nil, nil, nil, nil
		return objects.Set(ctx, p.Client, h.object, "spec", &spec) // the next pass goes on, when it has happened
	}
	if controllerutil.RemoveFinalizer(m.object, finalizer) {
		if err := p.Client.Update(ctx, m.object); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("removing the finalizer of AgentMachine %s: %w", m.Name, err)
		}
	}
	return nil
}

// token is what a machine's user data proves itself with to the ignition server, and what else it says there. A host gets these two, not the user data.
func (p Provider) token(ctx context.Context, m *machine) (token []byte, headers map[string]string, err error) {
	if m.host != nil || m.Spec.ProviderID != "" {
		return nil, nil, nil // it has been given
	}
	data, err := objects.UserData(ctx, p.Client, m.object)
	if err != nil {
		return nil, nil, err
	}
	config := ignition.Config{}
	if err := json.Unmarshal(data, &config); err != nil || len(config.Ignition.Config.Merge) != 1 {
		return nil, nil, errors.New("the user data leads to no ignition server")
	}
	headers = map[string]string{}
	for _, h := range config.Ignition.Config.Merge[0].HTTPHeaders {
		value := ptr.Deref(h.Value, "")
		if bearer, ok := strings.CutPrefix(value, "Bearer "); ok && h.Name == "Authorization" {
			token = []byte(bearer)
			continue
		}
		headers[h.Name] = value
	}
	if len(token) == 0 {
		return nil, nil, errors.New("the user data has no token")
	}
	return token, headers, nil
}
