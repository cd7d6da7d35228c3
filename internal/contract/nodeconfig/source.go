package nodeconfig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/clip"
)

// Bounds of what is read. A payload has to fit through a Secret of 1 MiB, compressed.
const (
	// MaxSize is the sum of all sources, in bytes.
	MaxSize = 4 << 20
	// MaxItems is how many documents all sources may have.
	MaxItems = 500
	// maxEntries is how many files, directories, links, units and users all MachineConfigs may have, each.
	maxEntries = 5000
	// maxProblems is how many problems an error lists; it ends up in a condition.
	maxProblems = 10
)

// Kinds that a source may hold.
const (
	KindMachineConfig            = "MachineConfig"
	KindKubeletConfig            = "KubeletConfig"
	KindContainerRuntimeConfig   = "ContainerRuntimeConfig"
	KindImageDigestMirrorSet     = "ImageDigestMirrorSet"
	KindImageContentSourcePolicy = "ImageContentSourcePolicy"
	KindClusterImagePolicy       = "ClusterImagePolicy"
)

// apiVersions are the accepted ones by kind.
var apiVersions = map[string][]string{
	KindMachineConfig:            {"machineconfiguration.openshift.io/v1"},
	KindKubeletConfig:            {"machineconfiguration.openshift.io/v1"},
	KindContainerRuntimeConfig:   {"machineconfiguration.openshift.io/v1"},
	KindImageDigestMirrorSet:     {"config.openshift.io/v1"},
	KindImageContentSourcePolicy: {"operator.openshift.io/v1alpha1"},
	KindClusterImagePolicy:       {"config.openshift.io/v1", "config.openshift.io/v1alpha1"},
}

// Source is a text with YAML documents and the name by which errors call it.
type Source struct {
	// Name as a user knows it, for example "ConfigMap tuning". Empty for a text that several ConfigMaps were joined to: errors
	// then name the objects only.
	Name string
	// Data are YAML documents with "---" between them.
	Data string
}

// item is one document.
type item struct {
	source string
	number int // of the document in its source, from 1
	kind   string
	name   string
	raw    []byte // YAML
}

// String names the item in errors.
func (i item) String() string {
	what := fmt.Sprintf("document %d", i.number)
	switch {
	case i.kind != "" && i.name != "":
		what = fmt.Sprintf("%s %q", i.kind, i.name)
	case i.kind != "":
		what = fmt.Sprintf("%s in document %d", i.kind, i.number)
	}
	if i.source == "" {
		return what
	}
	return i.source + ", " + what
}

// problems collects errors with a bound on their number.
type problems struct {
	errs []error
	more int
}

func (p *problems) add(err error) {
	switch {
	case err == nil:
	case len(p.errs) < maxProblems:
		p.errs = append(p.errs, err)
	default:
		p.more++
	}
}

func (p *problems) at(i item, err error) {
	if err != nil {
		p.add(fmt.Errorf("%s: %w", i, err))
	}
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.errs, fmt.Errorf("and %d more", p.more))...)
	}
	return errors.Join(p.errs...)
}

// split cuts the sources into items. Empty documents don't count.
func split(sources []Source, found *problems) []item {
	var items []item
	size := 0
	for _, s := range sources {
		if size += len(s.Data); size > MaxSize {
			found.add(fmt.Errorf("%s: the configuration is larger than %d MiB in all; take something out", named(s), MaxSize>>20))
			return nil
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(s.Data)))
		for number := 1; ; number++ {
			doc, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				found.add(fmt.Errorf("%s, document %d: splitting YAML: %w", named(s), number, err))
				break
			}
			if len(bytes.TrimSpace(doc)) == 0 {
				continue
			}
			i := item{source: s.Name, number: number, raw: doc}
			ok, err := i.identify()
			found.at(i, err)
			if !ok {
				continue
			}
			if items = append(items, i); len(items) > MaxItems {
				found.add(fmt.Errorf("%s: more than %d documents in all", named(s), MaxItems))
				return nil
			}
		}
	}
	return items
}

func named(s Source) string {
	if s.Name == "" {
		return "configuration"
	}
	return s.Name
}

// identify reads kind and name. It reports false for documents that are to be skipped: those with an error, and those that hold
// comments only.
func (i *item) identify() (bool, error) {
	var document any
	if err := yaml.Unmarshal(i.raw, &document); err != nil {
		return false, fmt.Errorf("it is not YAML: %w", brief(err))
	}
	if document == nil {
		return false, nil
	}
	if _, ok := document.(map[string]any); !ok {
		return false, errors.New("it is not an object: write a manifest with apiVersion, kind, metadata and spec")
	}
	head := metav1.PartialObjectMetadata{}
	if err := yaml.Unmarshal(i.raw, &head); err != nil {
		return false, fmt.Errorf("reading apiVersion, kind and metadata: %w", brief(err))
	}
	known, ok := apiVersions[head.Kind]
	if !ok {
		return false, fmt.Errorf("unsupported config type: kind %q; write one of %s", shorten(head.Kind), strings.Join(sortedKeys(apiVersions), ", "))
	}
	i.kind, i.name = head.Kind, shorten(head.Name)
	if !contains(known, head.APIVersion) {
		return false, fmt.Errorf("unsupported config type: apiVersion %q; a %s has %s", shorten(head.APIVersion), i.kind, strings.Join(known, " or "))
	}
	if i.name == "" {
		return false, errors.New("metadata.name is missing")
	}
	return true, nil
}

// decode reads the item strictly: a mistyped field would be ignored otherwise, and its author would never know.
func (i item) decode(into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(i.raw)
	if err != nil {
		return brief(err)
	}
	return strictJSON(asJSON, into)
}

func strictJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.New(shorten(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// maxText of what a user wrote is repeated in an error.
const maxText = 200

func shorten(s string) string { return clip.Over(s, maxText, "…") }

// brief keeps errors of parsers, which repeat what they read, within bounds.
func brief(err error) error { return errors.New(shorten(err.Error())) }
