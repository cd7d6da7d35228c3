package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/bounded"
)

// Outcome is what an apply did.
type Outcome string

// The outcomes of Apply.
const (
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	// WouldCreate and WouldChange are those of a dry run.
	WouldCreate Outcome = "would create"
	WouldChange Outcome = "would change"
)

// Apply makes the live object have every field of obj, by server-side apply as FieldOwner, and says what that did.
// An apply that changes nothing writes nothing on the server, so no hash is kept. obj isn't changed.
func Apply(ctx context.Context, c client.Client, obj client.Object) (Outcome, error) {
	u, err := Unstructured(c.Scheme(), obj)
	if err != nil {
		return "", err
	}
	if DryRunOf(c) != NoDryRun {
		return applyDry(ctx, c, u)
	}
	before := &metav1.PartialObjectMetadata{}
	before.SetGroupVersionKind(u.GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), before)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading %s: %w", Describe(u), err)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("applying %s: %w", Describe(u), err)
	}
	switch before.GetResourceVersion() {
	case "":
		return Created, nil
	case u.GetResourceVersion():
		return Unchanged, nil
	}
	return Changed, nil
}

// DescribeIn is Describe for an object that doesn't carry its kind.
func DescribeIn(scheme *runtime.Scheme, obj client.Object) string {
	named := obj.DeepCopyObject().(client.Object)
	if gvk, err := apiutil.GVKForObject(obj, scheme); err == nil {
		named.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return Describe(named)
}

// RedactSecret replaces the values of a Secret, so that it can be shown; the keys stay. Other objects are left alone.
func RedactSecret(u *unstructured.Unstructured, with string) {
	if u.GetKind() != "Secret" || u.GroupVersionKind().Group != "" {
		return
	}
	data, _, _ := unstructured.NestedMap(u.Object, "data")
	shown := map[string]any{}
	for key := range data {
		shown[key] = with
	}
	delete(u.Object, "data")
	// stringData, so that the rendered object stays a valid manifest.
	for key := range nestedMap(u, "stringData") {
		shown[key] = with
	}
	if len(shown) > 0 {
		u.Object["stringData"] = shown
	}
}

func nestedMap(u *unstructured.Unstructured, field string) map[string]any {
	m, _ := u.Object[field].(map[string]any)
	return m
}

// maxInputFile bounds files that the user names: a Secret holds 1 MiB at most.
const maxInputFile = 1 << 20

// ReadFile reads a file that a flag names, bounded.
func ReadFile(path string) ([]byte, error) { return bounded.ReadFile(path, maxInputFile) }

// ReadPullSecret reads registry credentials and checks their form. The content never appears in an error.
func ReadPullSecret(path string) ([]byte, error) {
	raw, err := ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--pull-secret: %w", err)
	}
	if err := CheckPullSecret(raw); err != nil {
		return nil, fmt.Errorf("--pull-secret %s: %w", path, err)
	}
	return raw, nil
}

// CheckPullSecret says what is wrong with the content of a .dockerconfigjson.
func CheckPullSecret(raw []byte) error {
	var content struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal(raw, &content) != nil || content.Auths == nil {
		return errors.New(`must be JSON of the form {"auths":{"registry.example.com":{"auth":"…"}}}`)
	}
	return nil
}
