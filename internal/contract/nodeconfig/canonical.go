package nodeconfig

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// MaxEncoded is how large the configuration of a pool may be after compression, in bytes: it has to fit into a Secret, which holds a
// megabyte, beside the payload that is made of it.
const MaxEncoded = 400 << 10

const (
	separator    = "\n---\n"
	roleLabel    = "machineconfiguration.openshift.io/role"
	workerRole   = "worker"
	builtInLabel = "machineconfiguration.openshift.io/mco-built-in"
)

// Canonical is the same text for the same manifests, whatever their order, and the order of their keys. Sources must be valid.
func Canonical(sources []Source) (string, error) {
	var docs []string
	for _, s := range sources {
		reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(s.Data)))
		for {
			raw, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return "", fmt.Errorf("%s: splitting YAML: %w", s.Name, err)
			}
			doc, err := canonicalDocument(raw)
			if err != nil {
				return "", fmt.Errorf("%s: %w", s.Name, err)
			}
			if doc != "" {
				docs = append(docs, doc)
			}
		}
	}
	slices.Sort(docs)
	return strings.Join(slices.Compact(docs), separator), nil
}

// canonicalDocument encodes a manifest with sorted keys and aims it at workers. Comments alone give nothing.
func canonicalDocument(raw []byte) (string, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return "", errors.New("a document is no YAML object")
	}
	if len(doc) == 0 {
		return "", nil
	}
	switch doc["kind"] {
	case KindMachineConfig:
		child(child(doc, "metadata"), "labels")[roleLabel] = workerRole
	case KindKubeletConfig, KindContainerRuntimeConfig:
		child(doc, "spec")["machineConfigPoolSelector"] = map[string]any{"matchLabels": map[string]any{builtInLabel: ""}}
	}
	out, err := yaml.Marshal(doc)
	return string(bytes.TrimSpace(out)), err
}

// child is the object under key, made when there is none.
func child(parent map[string]any, key string) map[string]any {
	if c, ok := parent[key].(map[string]any); ok {
		return c
	}
	c := map[string]any{}
	parent[key] = c
	return c
}

// Join puts canonical texts together.
func Join(texts ...string) string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	return strings.Join(texts, separator)
}

// Encode is the form in which the configuration travels: gzip, then base64. It is an error when that is larger than MaxEncoded.
func Encode(text string) ([]byte, error) {
	var buf bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &buf)
	compressor := gzip.NewWriter(encoder)
	if _, err := io.WriteString(compressor, text); err != nil {
		return nil, err
	}
	if err := errors.Join(compressor.Close(), encoder.Close()); err != nil {
		return nil, err
	}
	if buf.Len() > MaxEncoded {
		return nil, fmt.Errorf("the configuration has %d KiB after compression, and may have %d: take something out of spec.config", buf.Len()>>10, MaxEncoded>>10)
	}
	return buf.Bytes(), nil
}
