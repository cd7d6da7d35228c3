package conversion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/capigroup/translate"
)

const (
	// lookupTimeout bounds the question for one definition. The API server gives a whole review 30 s.
	lookupTimeout = 5 * time.Second
	// knownFor is how long the version of a kind is remembered; definitions change with installations.
	knownFor = time.Minute
	// unknownFor is how long it is remembered that a kind has none, so that a list of thousands does not ask thousands of times.
	unknownFor = 3 * time.Second
	// maxKnown bounds what is remembered: references are whatever users write.
	maxKnown = 1000
)

// contractLabels say which of a definition's versions fulfil a contract, latest contract first. The keys are the same on private definitions.
var contractLabels = []string{"cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"}

// versions finds the version that a reference of v1beta1 names: v1beta2 has only groups.
type versions struct {
	crds  client.Reader
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]answer // by name of the definition
}

type answer struct {
	version string
	err     error
	until   time.Time
}

func newVersions(crds client.Reader, now clock.PassiveClock) *versions {
	return &versions{crds: crds, clock: now, known: map[string]answer{}}
}

// of is "group/version" for a kind, both in standard names. private says that its definition is stored in the other group.
func (v *versions) of(ctx context.Context, gk schema.GroupKind, private bool) (string, error) {
	name := crdName(gk)
	if private {
		name = translate.CRDName(name)
	}
	now := v.clock.Now()
	v.mu.Lock()
	got, ok := v.known[name]
	v.mu.Unlock()
	if !ok || now.After(got.until) {
		got = v.read(ctx, name, now)
		v.mu.Lock()
		if len(v.known) >= maxKnown {
			clear(v.known)
		}
		v.known[name] = got
		v.mu.Unlock()
	}
	if got.err != nil {
		return "", fmt.Errorf("finding the version of %s in the labels of CustomResourceDefinition %s: %w", gk, name, got.err)
	}
	return gk.Group + "/" + got.version, nil
}

func (v *versions) read(ctx context.Context, name string, now time.Time) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout) // the answer is remembered for others, whatever becomes of this request
	defer cancel()
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := v.crds.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return answer{err: err, until: now.Add(unknownFor)}
	}
	latest := latestVersion(crd.Labels)
	if latest == "" {
		return answer{err: fmt.Errorf("it has none of the labels %s", strings.Join(contractLabels, ", ")), until: now.Add(unknownFor)}
	}
	return answer{version: latest, until: now.Add(knownFor)}
}

// latestVersion is the latest version that fulfils the latest contract.
func latestVersion(labels map[string]string) string {
	for _, contract := range contractLabels {
		if all := strings.Split(labels[contract], "_"); labels[contract] != "" {
			return slices.MaxFunc(all, version.CompareKubeAwareVersionStrings)
		}
	}
	return ""
}
