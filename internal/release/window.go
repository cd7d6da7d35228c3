package release

import "fmt"

// window is the range of minors of one flavour that this operator hosts, both ends included.
type window struct{ min, max string }

var (
	// kubernetesWindow is what the control-plane manifests are written for and tested with.
	kubernetesWindow = window{min: "1.34", max: "1.36"}
	// openShiftWindow and openShiftWindowIBMCloud: the specification's constants; equal today and kept apart because they move apart.
	openShiftWindow         = window{min: "4.14", max: "5.1"}
	openShiftWindowIBMCloud = window{min: "4.14", max: "5.1"}
)

// oldestHostable is the first OpenShift minor that could be hosted at all.
const oldestHostable = 8

// Network types and platforms that change the rules.
const (
	networkOpenShiftSDN  = "OpenShiftSDN"
	networkOVNKubernetes = "OVNKubernetes"
	platformPowerVS      = "PowerVS"
	platformIBMCloud     = "IBMCloud"
	lastSDNMinor         = 10 // the last OpenShift minor with OpenShiftSDN for new hosted clusters, and without OVNKubernetes
)

// VersionCheck is what CheckVersion decides on.
type VersionCheck struct {
	Target  string // version to run
	Current string // version that runs, empty for a new cluster or when it is Target already
	// NetworkType and Platform are spec.networking.networkType and spec.platform.type.
	NetworkType string
	Platform    string
	// Skip is annotation hypershift.openshift.io/skip-release-image-validation: a version only has to parse.
	Skip bool
}

// CheckVersion returns nil when a hosted cluster may run Target, or else an error that names the rule and the way out.
func CheckVersion(c VersionCheck) error {
	target, err := ParseVersion(c.Target)
	if err != nil {
		return err
	}
	if c.Skip {
		return nil
	}
	var current *Version
	if c.Current != "" {
		v, err := ParseVersion(c.Current)
		if err != nil {
			return err
		}
		current = &v
	}
	if current != nil && current.Kubernetes() != target.Kubernetes() {
		return fmt.Errorf("a cluster of version %s can't become one of version %s: Kubernetes and OpenShift releases don't follow each other; create another hosted cluster", current, target)
	}
	rules := openShiftRules
	if target.Kubernetes() {
		rules = kubernetesRules
	}
	for _, rule := range rules {
		if err := rule(target, current, c); err != nil {
			return err
		}
	}
	return nil
}

// rule is one reason to refuse target; current is nil for a new cluster.
type rule func(target Version, current *Version, c VersionCheck) error

var kubernetesRules = []rule{noMinorDowngrade, noSkippedMinor, notTooNew, notTooOld}

var openShiftRules = []rule{knownMajor, hostableAtAll, noMinorDowngrade, noUpgradeOnSDN, networkFitsNewCluster, notTooNew, notTooOld}

func knownMajor(target Version, _ *Version, _ VersionCheck) error {
	if major := target.v.Major(); major != 4 && major != 5 {
		return fmt.Errorf("release version %s is of an unknown major version: use Kubernetes 1, or OpenShift 4 or 5", target)
	}
	return nil
}

func hostableAtAll(target Version, _ *Version, _ VersionCheck) error {
	if target.ordinal() < oldestHostable {
		return fmt.Errorf("release version %s is older than 4.%d, the first that can be hosted: use a later release", target, oldestHostable)
	}
	return nil
}

func noMinorDowngrade(target Version, current *Version, _ VersionCheck) error {
	if current != nil && target.ordinal() < current.ordinal() {
		return fmt.Errorf("downgrading from %s to %s is not supported: set spec.release.image back to a %s release or a later one", current, target, current.MinorString())
	}
	return nil
}

// noSkippedMinor: kube-apiserver may be one minor ahead of the others, and stored objects migrate minor by minor.
func noSkippedMinor(target Version, current *Version, _ VersionCheck) error {
	if current != nil && target.ordinal() > current.ordinal()+1 {
		return fmt.Errorf("upgrading from %s to %s skips a minor version: upgrade to a %d.%d release first", current, target, current.v.Major(), current.v.Minor()+1)
	}
	return nil
}

func noUpgradeOnSDN(target Version, current *Version, c VersionCheck) error {
	if current != nil && c.NetworkType == networkOpenShiftSDN && target.ordinal() > current.ordinal() {
		return fmt.Errorf("upgrading from %s to %s is not supported with network type %s: create a hosted cluster with %s instead", current, target, networkOpenShiftSDN, networkOVNKubernetes)
	}
	return nil
}

func networkFitsNewCluster(target Version, current *Version, c VersionCheck) error {
	if current != nil {
		return nil
	}
	if c.NetworkType == networkOpenShiftSDN && target.ordinal() > lastSDNMinor && c.Platform != platformPowerVS {
		return fmt.Errorf("network type %s is not supported with release version %s: set spec.networking.networkType to %s or Other", networkOpenShiftSDN, target, networkOVNKubernetes)
	}
	if c.NetworkType == networkOVNKubernetes && target.ordinal() <= lastSDNMinor {
		return fmt.Errorf("network type %s is not supported with release version %s: use a release later than 4.%d", networkOVNKubernetes, target, lastSDNMinor)
	}
	return nil
}

func notTooNew(target Version, _ *Version, c VersionCheck) error {
	w := windowFor(target, c.Platform)
	if target.ordinal() > mustMinor(w.max).ordinal() {
		return fmt.Errorf("release version %s is newer than this operator supports (%s to %s): use an older release or upgrade the operator", target, w.min, w.max)
	}
	return nil
}

func notTooOld(target Version, _ *Version, c VersionCheck) error {
	w := windowFor(target, c.Platform)
	if target.ordinal() < mustMinor(w.min).ordinal() {
		return fmt.Errorf("release version %s is older than this operator supports (%s to %s): use a later release", target, w.min, w.max)
	}
	return nil
}

func windowFor(target Version, platform string) window {
	switch {
	case target.Kubernetes():
		return kubernetesWindow
	case platform == platformIBMCloud:
		return openShiftWindowIBMCloud
	default:
		return openShiftWindow
	}
}

// Supported lists the OpenShift minors of the window, newest first.
func Supported() []string { return openShiftWindow.list() }

// SupportedKubernetes lists the Kubernetes minors of the window, newest first.
func SupportedKubernetes() []string { return kubernetesWindow.list() }

func (w window) list() []string {
	lowest, highest := mustMinor(w.min), mustMinor(w.max)
	var minors []string
	for o := highest.ordinal(); o >= lowest.ordinal(); o-- {
		switch {
		case lowest.Kubernetes():
			minors = append(minors, fmt.Sprintf("1.%d", o))
		case o >= lastOpenShift4Minor && highest.v.Major() == 5:
			minors = append(minors, fmt.Sprintf("5.%d", o-lastOpenShift4Minor))
			if o == lastOpenShift4Minor { // 5.0 and 4.23 are the same step
				minors = append(minors, fmt.Sprintf("4.%d", o))
			}
		default:
			minors = append(minors, fmt.Sprintf("4.%d", o))
		}
	}
	return minors
}

// mustMinor parses a constant of this file.
func mustMinor(s string) Version {
	v, err := ParseVersion(s + ".0")
	if err != nil {
		panic(err)
	}
	return v
}
