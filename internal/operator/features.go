package operator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	configv1 "hcp.internal/api/config/v1"
)

// Feature is a gate of the operator.
type Feature string

// The gates that the published operator knows. All are alpha: off, but with feature set TechPreviewNoUpgrade.
const (
	AROHCPManagedIdentities Feature = "AROHCPManagedIdentities"
	OpenStack               Feature = "OpenStack"
	GCPPlatform             Feature = "GCPPlatform"
	HCPEtcdBackup           Feature = "HCPEtcdBackup"
	KarpenterOperator       Feature = "KarpenterOperator"
	EtcdSharding            Feature = "EtcdSharding"
	OSStreams               Feature = "OSStreams"
)

// Gates are all of them.
var Gates = []Feature{AROHCPManagedIdentities, OpenStack, GCPPlatform, HCPEtcdBackup, KarpenterOperator, EtcdSharding, OSStreams}

// inert are the gates that change nothing here: what they are about needs none.
var inert = map[Feature]string{
	AROHCPManagedIdentities: "managed identities on Azure",
	OpenStack:               "platform OpenStack",
	GCPPlatform:             "platform GCP",
	KarpenterOperator:       "spec.autoNode",
	EtcdSharding:            "shards of etcd",
	OSStreams:               "streams of boot images",
}

// Inert names the single gates that change nothing, and says why; sorted.
func Inert(single map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(single)) {
		if what, ok := inert[Feature(name)]; ok {
			list = append(list, fmt.Sprintf("feature gate %s changes nothing, on or off: no gate of this version is about %s", name, what))
		}
	}
	return list
}

// featureSets are those that the operator can be told.
var featureSets = []string{"", string(configv1.TechPreviewNoUpgrade), "DevPreviewNoUpgrade", "OKD"}

// Features are gates that are on or off. The zero value has all off.
type Features struct {
	// Set is the feature set that single gates differ from.
	Set string
	on  map[Feature]bool
}

// NewFeatures has the gates of a feature set, and single ones as NAME=true|false says. What it doesn't know is an error that lists what it knows.
func NewFeatures(set string, single map[string]string) (Features, error) {
	f := Features{Set: set, on: map[Feature]bool{}}
	var errs []error
	if !slices.Contains(featureSets, set) {
		errs = append(errs, fmt.Errorf("feature set %q is unknown: leave $HYPERSHIFT_FEATURESET empty, or set it to one of %s", set, strings.Join(featureSets[1:], ", ")))
	}
	for _, g := range Gates {
		f.on[g] = set == string(configv1.TechPreviewNoUpgrade)
	}
	for _, name := range slices.Sorted(maps.Keys(single)) {
		value, err := strconv.ParseBool(single[name])
		switch {
		case !slices.Contains(Gates, Feature(name)):
			errs = append(errs, fmt.Errorf("--feature-gates: %s is unknown: known are %s", name, strings.Join(gateNames(), ", ")))
		case err != nil:
			errs = append(errs, fmt.Errorf("--feature-gates: %s=%q: write true or false", name, single[name]))
		default:
			f.on[Feature(name)] = value
		}
	}
	return f, errors.Join(errs...)
}

func gateNames() (list []string) {
	for _, g := range Gates {
		list = append(list, string(g))
	}
	return list
}

// Enabled says whether a gate is on.
func (f Features) Enabled(g Feature) bool { return f.on[g] }

// Register adds the metric that tells which are on.
func (f Features) Register(r prometheus.Registerer) error {
	enabled := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_feature_enabled", Help: "1 for each feature gate of the operator that is on, 0 for those that are off."}, []string{"name", "stage"})
	for _, g := range Gates {
		value := 0.0
		if f.on[g] {
			value = 1
		}
		enabled.WithLabelValues(string(g), "ALPHA").Set(value)
	}
	if err := r.Register(enabled); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) { // by another operator of a test
		return fmt.Errorf("registering metrics of feature gates: %w", err)
	}
	return nil
}
