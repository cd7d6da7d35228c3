package connect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DryRun is the value of --dry-run. It is a flag's value: an unknown one is refused when flags are parsed.
type DryRun string

// The values of --dry-run.
const (
	NoDryRun DryRun = ""
	// DryRunClient sends no write.
	DryRunClient DryRun = "client"
	// DryRunServer sends writes for the API server to check and not to store.
	DryRunServer DryRun = "server"
)

var _ pflag.Value = (*DryRun)(nil)

// String implements pflag.Value.
func (d *DryRun) String() string { return string(*d) }

// Type implements pflag.Value.
func (d *DryRun) Type() string { return "client|server" }

// Set implements pflag.Value. true and false are taken for client and none: the flag was a switch once.
func (d *DryRun) Set(s string) error {
	switch s {
	case string(DryRunClient), "true":
		*d = DryRunClient
	case string(DryRunServer):
		*d = DryRunServer
	case "none", "false":
		*d = NoDryRun
	default:
		return fmt.Errorf("unknown value %q: use client, server or none", s)
	}
	return nil
}

// AddFlag declares --dry-run. Without a value it is client.
func (d *DryRun) AddFlag(cmd *cobra.Command) {
	const name = "dry-run"
	flag := cmd.Flags().VarPF(d, name, "", "Only say what would be done: =client sends no change, =server has the API server check changes and store none")
	flag.NoOptDefVal = string(DryRunClient)
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{string(DryRunClient), string(DryRunServer)}, cobra.ShellCompDirectiveNoFileComp))
}

// Suffix is what a message about something done has behind it, " (dry run)" or nothing.
func (d DryRun) Suffix() string {
	if d == NoDryRun {
		return ""
	}
	return " (dry run)"
}

func (d DryRun) wrap(c client.Client) client.Client {
	switch d {
	case DryRunClient:
		return &silent{Client: c}
	case DryRunServer:
		return &checked{Client: client.NewDryRunClient(c)}
	}
	return c
}

// DryRunOf tells whether what a client of ours writes is stored.
func DryRunOf(c client.Client) DryRun {
	switch c.(type) {
	case *silent:
		return DryRunClient
	case *checked:
		return DryRunServer
	}
	return NoDryRun
}

// checked has the API server check what it writes, and store nothing.
type checked struct{ client.Client }

// silent sends no write. What can't be right is an error all the same: creating what exists, changing what doesn't.
type silent struct{ client.Client }

// exists reads an object without changing obj.
func (s *silent) exists(ctx context.Context, obj client.Object) error {
	return s.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
}

// Create implements client.Writer.
func (s *silent) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	err := s.exists(ctx, obj)
	if err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: obj.GetObjectKind().GroupVersionKind().Kind}, obj.GetName())
	}
	return client.IgnoreNotFound(err)
}

// Update implements client.Writer.
func (s *silent) Update(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return s.exists(ctx, obj)
}

// Patch implements client.Writer.
func (s *silent) Patch(ctx context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return s.exists(ctx, obj)
}

// Apply implements client.Writer.
func (s *silent) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

// Delete implements client.Writer.
func (s *silent) Delete(ctx context.Context, obj client.Object, _ ...client.DeleteOption) error {
	return s.exists(ctx, obj)
}

// DeleteAllOf implements client.Writer.
func (s *silent) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return nil
}

// Status implements client.StatusClient.
func (s *silent) Status() client.SubResourceWriter { return client.NewDryRunClient(s.Client).Status() }

// SubResource implements client.SubResourceClientConstructor.
func (s *silent) SubResource(name string) client.SubResourceClient {
	return client.NewDryRunClient(s.Client).SubResource(name)
}

// applyDry says what an apply would do. Of a client that sends no write it is a guess: whether a field that the server defaults or a webhook sets
// would change is known to the server alone.
func applyDry(ctx context.Context, c client.Client, u *unstructured.Unstructured) (Outcome, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading %s: %w", Describe(u), err)
	}
	created := apierrors.IsNotFound(err)
	wanted := u.DeepCopy()
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		if created && apierrors.IsNotFound(err) && u.GetNamespace() != "" {
			return "", fmt.Errorf("checking %s: %w; a dry run doesn't make its namespace, so make that first, or use --dry-run=client", Describe(wanted), err)
		}
		return "", fmt.Errorf("checking %s: %w", Describe(wanted), err)
	}
	switch {
	case created:
		return WouldCreate, nil
	case DryRunOf(c) == DryRunServer && equality.Semantic.DeepEqual(content(live), content(u)), DryRunOf(c) == DryRunClient && covers(live.Object, wanted.Object):
		return Unchanged, nil
	}
	return WouldChange, nil
}

// content is an object without what every write changes.
func content(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	return c.Object
}

// covers tells whether have has everything that want says. A list has to have as many elements.
func covers(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := have.(map[string]any)
		if !ok {
			return len(want) == 0 && have == nil
		}
		for k, v := range want {
			if !covers(fields[k], v) {
				return false
			}
		}
		return true
	case []any:
		elements, ok := have.([]any)
		if !ok || len(elements) != len(want) {
			return len(want) == 0 && have == nil
		}
		for i := range want {
			if !covers(elements[i], want[i]) {
				return false
			}
		}
		return true
	}
	return equality.Semantic.DeepEqual(have, want)
}
