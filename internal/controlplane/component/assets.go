package component

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// asset is one YAML file, decoded once and copied for each use.
type asset struct {
	file   string // without its folder
	object client.Object
}

// assetScheme has the kinds that adapt functions see as Go types; every other kind stays unstructured.
var assetScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // A broken program: two types for one kind.
		}
	}
	return scheme
})

// parsed are the objects of assets by their text: parsing takes longer than all else that is done to render a component, and the texts
// are the same for every control plane, except for a name here and there.
var parsed = struct {
	sync.Mutex
	objects map[string]client.Object
}{objects: map[string]client.Object{}}

// maxParsed is how many are kept; some hundred are ours, and names in templates come from users.
const maxParsed = 1000

// loadAssets reads every *.yaml in dir, in the order of their names. With data they are templates. A file that does not decode strictly
// is an error.
func loadAssets(fsys fs.FS, dir string, data map[string]string) ([]asset, error) {
	files, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("reading assets: %w", err)
	}
	var assets []asset
	for _, f := range files {
		if f.IsDir() || !strings.HasSuffix(f.Name(), ".yaml") {
			continue
		}
		raw, err := fs.ReadFile(fsys, path.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading asset %s: %w", f.Name(), err)
		}
		if data != nil {
			if raw, err = fill(raw, data); err != nil {
				return nil, fmt.Errorf("filling in asset %s: %w", f.Name(), err)
			}
		}
		obj, err := parse(string(raw))
		if err != nil {
			return nil, fmt.Errorf("decoding asset %s: %w", f.Name(), err)
		}
		assets = append(assets, asset{file: f.Name(), object: obj})
	}
	return assets, nil
}

// fill renders a template.
func fill(raw []byte, data map[string]string) ([]byte, error) {
	t, err := template.New("asset").Option("missingkey=error").Parse(string(raw))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, data)
	return out.Bytes(), err
}

// parse is decode for texts that come again. Nobody may change what it returns: see copyOf.
func parse(text string) (client.Object, error) {
	parsed.Lock()
	obj, ok := parsed.objects[text]
	parsed.Unlock()
	if ok {
		return obj, nil
	}
	obj, err := decode(assetScheme(), []byte(text))
	if err != nil {
		return nil, err
	}
	parsed.Lock()
	defer parsed.Unlock()
	if len(parsed.objects) >= maxParsed {
		clear(parsed.objects)
	}
	parsed.objects[text] = obj
	return obj, nil
}

func decode(scheme *runtime.Scheme, raw []byte) (client.Object, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(raw, &meta); err != nil {
		return nil, err
	}
	gvk := meta.GroupVersionKind()
	if !scheme.Recognizes(gvk) {
		u := &unstructured.Unstructured{}
		return u, yaml.Unmarshal(raw, &u.Object)
	}
	typed, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	obj, ok := typed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object of the API", gvk)
	}
	if err := yaml.UnmarshalStrict(raw, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// copyOf is a copy that can be changed.
func (a asset) copyOf() client.Object { return a.object.DeepCopyObject().(client.Object) }
