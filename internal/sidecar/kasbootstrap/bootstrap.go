// Package kasbootstrap applies the first objects of a hosted cluster: the bindings without which nothing else, our own
// operators included, may do anything there.
package kasbootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

const (
	// fieldOwner owns what is applied here.
	fieldOwner = "kas-bootstrap"
	// interval between attempts while the API server starts.
	interval = 500 * time.Millisecond
	// maxFile bounds one manifest file; an object of the API server has at most 1.5 MiB.
	maxFile = 4 << 20
)

// Object is one manifest.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`

	Status map[string]any `json:"status"`

	raw  []byte // as it is sent
	file string
	// status: what is applied is the status, which the object itself takes none of.
	status bool
}

func (o Object) String() string {
	name := o.Metadata.Name
	if o.Metadata.Namespace != "" {
		name = o.Metadata.Namespace + "/" + name
	}
	return o.Kind + " " + name + " of " + o.file
}

// Load reads every *.yaml of a folder, in the order of file names and, inside a file, of documents.
func Load(dir string) ([]Object, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("listing %s: no *.yaml there; --resources-path must name a folder of manifests", dir)
	}
	slices.Sort(files)
	var objects []Object
	for _, file := range files {
		more, err := loadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func loadFile(path string) ([]Object, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("longer than %d bytes", maxFile)
	}
	return parse(raw, filepath.Base(path))
}

func parse(raw []byte, file string) ([]Object, error) {
	docs := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	defer docs.Close()
	var objects []Object
	buf := make([]byte, len(raw)+1) // room for the longest document there can be
	for {
		n, err := docs.Read(buf)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting documents: %w", err)
		}
		doc, err := yaml.YAMLToJSON(buf[:n])
		if err != nil {
			return nil, fmt.Errorf("parsing document %d: %w", len(objects)+1, err)
		}
		if string(doc) == "null" {
			continue
		}
		o := Object{raw: doc, file: file}
		if err := yaml.Unmarshal(doc, &o); err != nil {
			return nil, fmt.Errorf("parsing document %d: %w", len(objects)+1, err)
		}
		if o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
			return nil, fmt.Errorf("parsing document %d: apiVersion, kind and metadata.name must be set", len(objects)+1)
		}
		objects = append(objects, o)
	}
}

// Bootstrap applies objects.
type Bootstrap struct {
	// Connect returns a client; it is called until it works, because the kubeconfig may come later than the container.
	Connect func() (*kubeapi.Client, error)
	Log     io.Writer
}

// Run applies every object, each until it succeeds. It fails only when ctx ends; the error then names what is missing.
func (b Bootstrap) Run(ctx context.Context, objects []Object) error {
	left, last := objects, ""
	for {
		var err error
		left, err = b.round(ctx, left)
		if len(left) == 0 && err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("applying bootstrap objects, %d of %d are not there yet: %w (last: %s)", len(left), len(objects), ctx.Err(), last)
		}
		if err != nil && err.Error() != last {
			last = err.Error()
			fmt.Fprintf(b.Log, "waiting: %s\n", last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// round tries every object once and returns those that are left, with the first error.
func (b Bootstrap) round(ctx context.Context, objects []Object) ([]Object, error) {
	client, err := b.Connect()
	if err != nil {
		return objects, err
	}
	defer client.Close()
	var left []Object
	var first error
	for i, o := range objects {
		if err := apply(ctx, client, o); err != nil {
			if !errors.As(err, new(*kubeapi.StatusError)) {
				// No answer: the others wouldn't get one either.
				return append(left, objects[i:]...), fmt.Errorf("applying %s: %w", o, err)
			}
			left = append(left, o)
			if first == nil {
				first = fmt.Errorf("applying %s: %w", o, err)
			}
			continue
		}
		fmt.Fprintf(b.Log, "applied %s\n", o)
	}
	return left, first
}

func apply(ctx context.Context, client *kubeapi.Client, o Object) error {
	path, err := client.ObjectPath(ctx, o.APIVersion, o.Kind, o.Metadata.Namespace, o.Metadata.Name)
	if err != nil {
		return err
	}
	if o.status {
		path += "/status"
	}
	return client.Apply(ctx, path, fieldOwner, o.raw)
}

// userFile is the file by which a payload's manifests let the user in who applies the others.
const userFile = "00_kas-bootstrap-container-rolebinding.yaml"

// ofUser are the objects of userFile.
func ofUser(objects []Object) (own []Object) {
	for _, o := range objects {
		if o.file == userFile {
			own = append(own, o)
		}
	}
	return own
}

// statuses are the FeatureGates, by their statuses: operators of the hosted cluster read there which gates are open.
func statuses(objects []Object) (own []Object) {
	for _, o := range objects {
		if o.Kind == "FeatureGate" && o.Status != nil {
			o.status = true
			own = append(own, o)
		}
	}
	return own
}
