// Package provider makes machines of a hosted cluster for Karpenter's core: a Machine of Cluster API for each NodeClaim, like those of a NodePool of the management
// cluster. So certificates, drains, health checks and deletion are those of every other machine.
package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/karpenter/api"
)

// Labels and annotations of the objects that are made.
const (
	clusterLabel = "cluster.x-k8s.io/cluster-name"
	ownedByLabel = "hypershift.openshift.io/owned-by"
	// claimLabel is on Machines that stand for NodeClaims; its value is the name of the claim.
	claimLabel = "karpenter.hypershift.openshift.io/nodeclaim"
	// templateAnnotation tells what a Machine was made from.
	templateAnnotation = "karpenter.hypershift.openshift.io/template"
	// claimAnnotation has the labels of the claim, from which a claim is made again.
	claimAnnotation = "karpenter.hypershift.openshift.io/labels"
	clonedFrom      = "cluster.x-k8s.io/cloned-from-name"
	clonedFromKind  = "cluster.x-k8s.io/cloned-from-groupkind"

	fieldOwner = client.FieldOwner("hcp-karpenter")

	// maxMachines bounds how many Machines are read.
	maxMachines = 5000
)

// Machines makes, finds and deletes machines in the namespace of a control plane.
type Machines struct {
	// Client reaches the management cluster, and needs no cache.
	Client client.Client
	// Namespace is that of the control plane.
	Namespace string
	// Private: the objects of Cluster API are stored in HyperShift's own groups.
	Private bool
}

func (m Machines) group(suffix string) string {
	if m.Private {
		return strings.TrimSuffix(suffix, "cluster.x-k8s.io") + "cluster.hypershift.openshift.io"
	}
	return suffix
}

func (m Machines) object(kind string) *unstructured.Unstructured {
	gv := schema.GroupVersion{Group: m.group("cluster.x-k8s.io"), Version: "v1beta2"}
	if strings.HasPrefix(kind, "Local") {
		gv = schema.GroupVersion{Group: m.group("infrastructure.cluster.x-k8s.io"), Version: "v1beta1"}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gv.WithKind(kind))
	u.SetNamespace(m.Namespace)
	return u
}

// Template is what machines of a NodePool are made from.
type Template struct {
	Cluster string
	// Machine is the spec of Machines, without what is each one's own.
	Machine map[string]any
	// Infra is the spec of a LocalMachine, from the template of name InfraTemplate.
	Infra         map[string]any
	InfraTemplate string
	// Annotations of Machines, of which nodes learn their taints and labels.
	Annotations, Labels map[string]string
}

// localTemplate is the only kind of templates whose machines are understood.
const localTemplate = "LocalMachineTemplate"

// Unfit is an error that a user can mend: a NodePool that is not there, or not one that machines can be made from.
type Unfit struct{ Problem string }

func (u Unfit) Error() string { return u.Problem }

// Template reads what machines of a NodePool are made from.
func (m Machines) Template(ctx context.Context, pool string) (*Template, error) {
	md := m.object("MachineDeployment")
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: pool}, md)
	if apierrors.IsNotFound(err) {
		return nil, Unfit{fmt.Sprintf("spec.nodePool: there is no NodePool %s whose machines are replaced on upgrade, or it is not ready yet: create one, which may have no replicas", pool)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading MachineDeployment %s: %w", pool, err)
	}
	spec, _, err := unstructured.NestedMap(md.Object, "spec", "template", "spec")
	if err != nil {
		return nil, fmt.Errorf("MachineDeployment %s: %w", pool, err)
	}
	t := &Template{Machine: spec}
	t.Cluster, _, _ = unstructured.NestedString(spec, "clusterName")
	t.Annotations, _, _ = unstructured.NestedStringMap(md.Object, "spec", "template", "metadata", "annotations")
	labels, _, _ := unstructured.NestedStringMap(md.Object, "spec", "template", "metadata", "labels")
	t.Labels = map[string]string{}
	for k, v := range labels {
		// Not the rest: by its selector a MachineSet would take the machine for its own, and delete it.
		if strings.HasPrefix(k, "managed.hypershift.openshift.io.") || k == ownedByLabel {
			t.Labels[k] = v
		}
	}
	kind, _, _ := unstructured.NestedString(spec, "infrastructureRef", "kind")
	t.InfraTemplate, _, _ = unstructured.NestedString(spec, "infrastructureRef", "name")
	secret, _, _ := unstructured.NestedString(spec, "bootstrap", "dataSecretName")
	switch {
	case kind != localTemplate:
		return nil, Unfit{fmt.Sprintf("spec.nodePool: machines of NodePool %s are made from a %s, and only %ss are understood: name a NodePool of platform Local", pool, kind, localTemplate)}
	case secret == "":
		return nil, Unfit{fmt.Sprintf("spec.nodePool: NodePool %s has no user data yet", pool)}
	}
	source := m.object(localTemplate)
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: t.InfraTemplate}, source); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", localTemplate, t.InfraTemplate, err)
	}
	if t.Infra, _, err = unstructured.NestedMap(source.Object, "spec", "template", "spec"); err != nil {
		return nil, fmt.Errorf("%s %s: %w", localTemplate, t.InfraTemplate, err)
	}
	return t, nil
}

// Hash tells templates apart from which different machines come. Secrets of user data are named after their configuration, so that a new token in one changes nothing.
func (t *Template) Hash() string {
	secret, _, _ := unstructured.NestedString(t.Machine, "bootstrap", "dataSecretName")
	version, _, _ := unstructured.NestedString(t.Machine, "version")
	raw, err := json.Marshal([]any{secret, version, t.InfraTemplate})
	if err != nil {
		panic(err) // strings can be encoded
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// Create makes a machine of this size, if there is none of this name. labels are those of its node.
func (m Machines) Create(ctx context.Context, name string, t *Template, size api.InstanceType, labels map[string]string) error {
	own := map[string]string{clusterLabel: t.Cluster, claimLabel: name, ownedByLabel: "hypershift-operator"}
	for k, v := range t.Labels {
		own[k] = v
	}
	infra := m.object("LocalMachine")
	infra.SetName(name)
	infra.SetLabels(own)
	infra.SetAnnotations(map[string]string{clonedFrom: t.InfraTemplate, clonedFromKind: localTemplate + ".infrastructure.cluster.x-k8s.io"})
	spec := runtime.DeepCopyJSON(t.Infra)
	spec["cpu"], spec["memory"] = size.CPU.String(), size.Memory.String()
	infra.Object["spec"] = spec
	if err := m.Client.Create(ctx, infra, fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making LocalMachine %s: %w", name, err)
	}
	raw, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	machine := m.object("Machine")
	machine.SetName(name)
	machine.SetLabels(own)
	annotations := map[string]string{templateAnnotation: t.Hash(), claimAnnotation: string(raw)}
	for k, v := range t.Annotations {
		if k != "hypershift.openshift.io/nodePool" { // it is none of that NodePool's machines
			annotations[k] = v
		}
	}
	machine.SetAnnotations(annotations)
	spec = runtime.DeepCopyJSON(t.Machine)
	spec["infrastructureRef"] = map[string]any{"apiGroup": m.group("infrastructure.cluster.x-k8s.io"), "kind": "LocalMachine", "name": name}
	machine.Object["spec"] = spec
	if err := m.Client.Create(ctx, machine, fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making Machine %s: %w", name, err)
	}
	return nil
}

// Made is a machine that was made.
type Made struct {
	Name, Hash string
	Labels     map[string]string
	Deleting   bool
}

// Get finds a machine; nil: there is none.
func (m Machines) Get(ctx context.Context, name string) (*Made, error) {
	machine := m.object("Machine")
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, machine); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Machine %s: %w", name, err)
	}
	if machine.GetLabels()[claimLabel] == "" {
		return nil, nil // somebody else's
	}
	return made(machine), nil
}

func made(machine *unstructured.Unstructured) *Made {
	out := &Made{Name: machine.GetName(), Hash: machine.GetAnnotations()[templateAnnotation], Deleting: machine.GetDeletionTimestamp() != nil}
	if err := json.Unmarshal([]byte(machine.GetAnnotations()[claimAnnotation]), &out.Labels); err != nil || out.Labels == nil {
		out.Labels = map[string]string{} // only we write it
	}
	return out
}

// List finds all machines that were made.
func (m Machines) List(ctx context.Context) ([]*Made, error) {
	items, err := m.list(ctx, "Machine")
	var out []*Made
	for i := range items {
		out = append(out, made(&items[i]))
	}
	return out, err
}

func (m Machines) list(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(m.object(kind + "List").GroupVersionKind())
	if err := m.Client.List(ctx, list, client.InNamespace(m.Namespace), client.HasLabels{claimLabel}, client.Limit(maxMachines)); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind, err)
	}
	return list.Items, nil
}

// Remains is what there is of a machine.
type Remains struct {
	Made     time.Time
	Deleting bool
}

// Remains finds by name whatever is left of machines that were made: a LocalMachine may be without its Machine.
func (m Machines) Remains(ctx context.Context) (map[string]Remains, error) {
	out := map[string]Remains{}
	for _, kind := range []string{"LocalMachine", "Machine"} { // a Machine is made last, and takes its LocalMachine along
		items, err := m.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		for i := range items {
			out[items[i].GetName()] = Remains{items[i].GetCreationTimestamp().Time, items[i].GetDeletionTimestamp() != nil}
		}
	}
	return out, nil
}

// Delete has a machine go, and tells whether it is gone. The machine of Cluster API that nobody made an object for goes, too.
func (m Machines) Delete(ctx context.Context, name string) (gone bool, _ error) {
	found, err := m.Get(ctx, name)
	if err != nil {
		return false, err
	}
	if found != nil {
		machine := m.object("Machine")
		machine.SetName(name)
		return false, client.IgnoreNotFound(m.Client.Delete(ctx, machine))
	}
	// Cluster API deletes a LocalMachine with its Machine; one whose Machine was never made is ours to delete.
	infra := m.object("LocalMachine")
	err = m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, infra)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading LocalMachine %s: %w", name, err)
	}
	if infra.GetLabels()[claimLabel] != name {
		return true, nil
	}
	return false, client.IgnoreNotFound(m.Client.Delete(ctx, infra))
}

// ProviderID is what the node of a machine will say that it is.
func (m Machines) ProviderID(name string) string {
	return fmt.Sprintf("local://%s/%s", m.Namespace, name)
}

// Name is the machine of a providerID; empty: it is none of ours.
func (m Machines) Name(providerID string) string {
	name, ok := strings.CutPrefix(providerID, "local://"+m.Namespace+"/")
	if !ok {
		return ""
	}
	return name
}
