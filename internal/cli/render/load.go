package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/hostedcluster"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
)

const (
	// maxInput bounds a file, in bytes: a thousand objects of usual size.
	maxInput = 64 << 20
	// maxFiles bounds a folder of objects.
	maxFiles = 10_000
)

// loaded is the input.
type loaded struct {
	hcp           *hyperv1.HostedControlPlane
	release, user *release.Release
	infra         endpoints.Status
	objects       []client.Object
}

func (o *options) load(stdin io.Reader) (loaded, error) {
	var l loaded
	docs, err := readObjects(o.file, stdin)
	if err != nil {
		return l, fmt.Errorf("--filename: %w", err)
	}
	if l.hcp, err = o.controlPlane(docs); err != nil {
		return l, fmt.Errorf("--filename %s: %w", o.file, err)
	}
	if l.release, err = o.metadata("--release-metadata", o.release); err != nil {
		return l, err
	}
	if o.userRelease != "" {
		if l.user, err = o.metadata("--user-release-metadata", o.userRelease); err != nil {
			return l, err
		}
	}
	if l.infra, err = o.published(l.hcp); err != nil {
		return l, err
	}
	for _, path := range o.objects {
		more, err := readAll(path)
		if err != nil {
			return l, fmt.Errorf("--objects: %w", err)
		}
		for _, u := range more {
			if u.GetNamespace() == "" {
				u.SetNamespace(l.hcp.Namespace)
			}
			decodeStringData(u)
			l.objects = append(l.objects, u)
		}
	}
	return l, nil
}

// controlPlane is the HostedControlPlane among docs, or that of the HostedCluster.
func (o *options) controlPlane(docs []*unstructured.Unstructured) (*hyperv1.HostedControlPlane, error) {
	var hcp, hc *unstructured.Unstructured
	var pools []hyperv1.NodePool
	for _, u := range docs {
		if u.GroupVersionKind().Group != hyperv1.GroupVersion.Group {
			continue // a file that create --render made has Secrets, too
		}
		switch u.GetKind() {
		case "HostedControlPlane":
			if hcp != nil {
				return nil, errors.New("more than one HostedControlPlane: give them one at a time")
			}
			hcp = u
		case "HostedCluster":
			if hc != nil {
				return nil, errors.New("more than one HostedCluster: give them one at a time")
			}
			hc = u
		case "NodePool":
			np := hyperv1.NodePool{}
			if err := o.typed(u, &np); err != nil {
				return nil, err
			}
			pools = append(pools, np)
		}
	}
	switch {
	case hcp != nil && hc != nil:
		return nil, errors.New("both a HostedControlPlane and a HostedCluster: give one of them")
	case hcp != nil:
		out := &hyperv1.HostedControlPlane{}
		return out, o.typed(hcp, out)
	case hc != nil:
		from := &hyperv1.HostedCluster{}
		if err := o.typed(hc, from); err != nil {
			return nil, err
		}
		return hostedcluster.PreviewControlPlane(from, pools), nil
	}
	return nil, fmt.Errorf("no HostedControlPlane or HostedCluster of %s", hyperv1.GroupVersion)
}

// typed fills defaults in, validates, and reads an object of ours.
func (o *options) typed(u *unstructured.Unstructured, into client.Object) error {
	what := u.GetKind() + " " + u.GetName()
	if u.GetName() == "" || u.GetNamespace() == "" {
		return fmt.Errorf("%s: metadata.name and metadata.namespace are required", what)
	}
	if u.GroupVersionKind().Version != hyperv1.GroupVersion.Version {
		return fmt.Errorf("%s: apiVersion %s is not %s", what, u.GetAPIVersion(), hyperv1.GroupVersion)
	}
	if !o.noDefaults {
		if err := admit(context.Background(), u); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (o *options) metadata(flag, path string) (*release.Release, error) {
	raw, err := readFile(path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if raw, err = yaml.YAMLToJSON(raw); err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, path, err)
	}
	r, err := release.ParseMetadata(raw)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, path, err)
	}
	overrides, err := rewrite.ParseOverrides(o.overrides)
	if err != nil {
		return nil, fmt.Errorf("--registry-overrides: %w", err)
	}
	r = r.WithOverrides(overrides)
	r.Placeholders = o.placeholders
	return r, nil
}

// published is where the control plane is reached, as the file says; what it leaves out follows from the rest as in a cluster.
func (o *options) published(hcp *hyperv1.HostedControlPlane) (endpoints.Status, error) {
	var s endpoints.Status
	if o.infra != "" {
		raw, err := readFile(o.infra, nil)
		if err == nil {
			err = yaml.Unmarshal(raw, &s)
		}
		if err != nil {
			return s, fmt.Errorf("--infra-status %s: %w", o.infra, err)
		}
	}
	return endpoints.Complete(hcp, s), nil
}

// context is what components see beside the objects.
func (o *options) context(l loaded) component.WorkloadContext {
	capabilities := capabilitiesOf(o.capabilities)
	scc, _ := capabilities.Accessible(context.Background(), schema.GroupVersionKind{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"})
	image := l.hcp.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation]
	for _, tag := range []string{"hypershift", component.ImageControlPlaneOperator} {
		image = cmp.Or(image, l.release.Images[tag])
	}
	return component.WorkloadContext{
		HCP: l.hcp, Release: l.release, UserRelease: l.user, Infra: l.infra,
		Capabilities: capabilities,
		Management: component.Management{
			NativeSidecars: o.nativeSidecars, DefaultSecurityContextUID: o.uid, SetDefaultSecurityContext: o.uid != 0 || !scc,
		},
		OperatorImage: cmp.Or(image, "control-plane-operator"), CAPIProxyImage: cmp.Or(image, "control-plane-operator"), StoredCAPIGroups: true,
		OmitOwnerReference: o.operator == hypershiftOperator,
		MetricsSet:         o.metricsSet, RegistryOverrides: o.overrides, RegistryMirrors: o.mirrors,
		Unsigned: o.noSigning, EarlyMonitors: o.all, RestrictedPods: &o.restricted,
		Environment: component.EnvironmentFrom(func(name string) string {
			if slices.Contains(countAsInput, name) {
				return os.Getenv(name)
			}
			return ""
		}),
	}
}

// countAsInput are the variables that a preview reads: what the installation is, not the machine that it is previewed on.
var countAsInput = []string{"MANAGED_SERVICE", "ENABLE_SIZE_TAGGING", "ARO_HCP_KEY_VAULT_USER_CLIENT_ID", "RHOBS_MONITORING", "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS"}

// kinds are those that a management cluster serves: all, or by kind.
type kinds struct {
	all  bool
	list map[string]bool
}

func capabilitiesOf(text string) kinds {
	k := kinds{list: map[string]bool{}}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); name {
		case "", "none":
		case "all":
			k.all = true
		default:
			k.list[name] = true
		}
	}
	return k
}

// Accessible implements component.Capabilities.
func (k kinds) Accessible(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
	ours := gvk.Group == hyperv1.GroupVersion.Group
	return ours || k.all || k.list[gvk.Kind], nil
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" || stdin == nil {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(raw) > maxInput {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxInput>>20)
	}
	return raw, nil
}

// readObjects reads the documents of a file, and the items of Lists in it.
func readObjects(path string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	raw, err := readFile(path, stdin)
	if err != nil {
		return nil, err
	}
	var objs []*unstructured.Unstructured
	for i, doc := range documents(raw) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, i+1, err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s, document %d: apiVersion and kind are required", path, i+1)
		}
		u.Object, _ = wholeNumbers(u.Object).(map[string]any)
		if !u.IsList() {
			objs = append(objs, u)
			continue
		}
		if err := u.EachListItem(func(item runtime.Object) error {
			objs = append(objs, item.(*unstructured.Unstructured))
			return nil
		}); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, i+1, err)
		}
	}
	return objs, nil
}

// documents splits YAML at its separators.
func documents(raw []byte) [][]byte {
	var docs [][]byte
	for doc := range bytes.SplitSeq(append([]byte("\n"), bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))...), []byte("\n---")) {
		docs = append(docs, doc)
	}
	return docs
}

// wholeNumbers has integers as int64, as the API server reads them.
func wholeNumbers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k := range t {
			t[k] = wholeNumbers(t[k])
		}
	case []any:
		for i := range t {
			t[i] = wholeNumbers(t[i])
		}
	case float64:
		if t == float64(int64(t)) {
			return int64(t)
		}
	}
	return v
}

// readAll reads a file, or every YAML and JSON file below a folder, sorted.
func readAll(path string) ([]*unstructured.Unstructured, error) {
	var files []string
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(file); !d.IsDir() && (file == path || slices.Contains([]string{".yaml", ".yml", ".json"}, ext)) {
			files = append(files, file)
		}
		if len(files) > maxFiles {
			return fmt.Errorf("%s has more than %d files", path, maxFiles)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []*unstructured.Unstructured
	for _, file := range files {
		objs, err := readObjects(file, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, objs...)
	}
	return all, nil
}

// decodeStringData does what the API server does with stringData.
func decodeStringData(u *unstructured.Unstructured) {
	text, ok, _ := unstructured.NestedStringMap(u.Object, "stringData")
	if !ok || u.GetKind() != "Secret" {
		return
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	if data == nil {
		data = map[string]string{}
	}
	for k, v := range text {
		data[k] = base64Of(v)
	}
	delete(u.Object, "stringData")
	_ = unstructured.SetNestedStringMap(u.Object, data, "data") // only fails for a parent that is no map
}
