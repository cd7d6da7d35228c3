package rollout

import (
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/yaml"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
)

// maxManifest bounds what is read from standard input.
const maxManifest = 3 << 20

// readManifest reads a HostedClusterPackage, as it is and as the API server would complete it.
func readManifest(file string, stdin io.Reader) (*packagesv1.HostedClusterPackage, []byte, error) {
	var raw []byte
	var err error
	if file == "-" {
		raw, err = io.ReadAll(io.LimitReader(stdin, maxManifest))
	} else {
		raw, err = connect.ReadFile(file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the manifest: %w", err)
	}
	out := &packagesv1.HostedClusterPackage{}
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		return nil, nil, fmt.Errorf("%s: not a HostedClusterPackage: %w", file, err)
	}
	if out.Kind != "HostedClusterPackage" || out.APIVersion != packagesv1.GroupVersion.String() {
		return nil, nil, fmt.Errorf("%s: kind %s of %s: want one HostedClusterPackage of %s", file, out.Kind, out.APIVersion, packagesv1.GroupVersion)
	}
	if out.Name == "" {
		return nil, nil, fmt.Errorf("%s: metadata.name is missing", file)
	}
	if out.Spec.Template.Spec.Image == "" {
		return nil, nil, fmt.Errorf("%s: spec.template.spec.image is missing", file)
	}
	setDefaults(out)
	asJSON, err := yaml.YAMLToJSON(raw)
	return out, asJSON, err
}

// setDefaults does as the API server does.
func setDefaults(p *packagesv1.HostedClusterPackage) {
	if s := &p.Spec.Strategy; s.RollingUpgrade == nil && s.Instant == nil {
		s.Instant = &packagesv1.HostedClusterPackageStrategyInstant{}
	} else if s.RollingUpgrade != nil && s.RollingUpgrade.MaxUnavailable == 0 {
		s.RollingUpgrade.MaxUnavailable = 1
	}
}

// applied is what becomes of a live object when kubectl applies a manifest: what somebody else set stays, as a pause; and so does what the API
// server filled in, as the strategy instant.
func applied(live *packagesv1.HostedClusterPackage, manifest []byte) (*packagesv1.HostedClusterPackage, error) {
	current, err := json.Marshal(live)
	if err != nil {
		return nil, fmt.Errorf("encoding HostedClusterPackage %q: %w", live.Name, err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(live.Annotations[corev1.LastAppliedConfigAnnotation]), manifest, current)
	if err != nil {
		return nil, fmt.Errorf("comparing the manifest with HostedClusterPackage %q: %w", live.Name, err)
	}
	var object, changes map[string]any
	if err := json.Unmarshal(current, &object); err != nil {
		return nil, fmt.Errorf("decoding HostedClusterPackage %q: %w", live.Name, err)
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, fmt.Errorf("decoding the difference: %w", err)
	}
	delete(changes, "status")
	change(object, changes)
	merged, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	out := &packagesv1.HostedClusterPackage{}
	if err := json.Unmarshal(merged, out); err != nil {
		return nil, fmt.Errorf("decoding the result: %w", err)
	}
	setDefaults(out)
	out.Generation++
	return out, nil
}

// change carries out a merge patch.
func change(object, patch map[string]any) {
	for key, to := range patch {
		fields, isMap := to.(map[string]any)
		if to == nil {
			delete(object, key)
			continue
		}
		if !isMap {
			object[key] = to
			continue
		}
		inner, ok := object[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[key] = inner
		}
		change(inner, fields)
	}
}
