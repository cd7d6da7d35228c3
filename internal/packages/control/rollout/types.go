package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// Unlimited is a Settings.MaxUnavailable that bounds nothing.
const Unlimited = -1

// Unknown names the group of clusters that no other group takes.
const Unknown = "unknown"

// Settings are what a HostedClusterPackage asks for, without what it installs.
type Settings struct {
	// Name of the HostedClusterPackage and of each of its Packages.
	Name       string
	Generation int64
	// MaxUnavailable is how many Packages may be down while one more is changed; Unlimited with strategy instant.
	MaxUnavailable int
	// Tolerated is how many Packages may be down with condition Available still True. It differs from MaxUnavailable with strategy instant.
	Tolerated int
	// Partitioned tells whether clusters are grouped at all.
	Partitioned bool
	// LabelKey of the HostedCluster groups clusters, when Partitioned.
	LabelKey string
	// Static is the order of groups, with "*" for Unknown; nil sorts them by name.
	Static  []string
	Options Options
	// HasGood tells whether there is a version to return to.
	HasGood bool
	// Completed tells that the whole fleet had the template before and was up: there is none to return to, and a Package that fails now is held.
	Completed bool
}

// Cluster is a hosted cluster that the selector matches.
type Cluster struct {
	Name types.NamespacedName
	// Namespace of its control plane, and so of its Package.
	Namespace string
	// Label is the value by which it is grouped; empty when it has none.
	Label string
	// Unready says why no Package is made for the cluster now, as "is not Available"; empty when one is. A Package that it has is still given the
	// template, last in its group: the fix of what broke the cluster has to get there.
	Unready string
	// Closed tells that nothing can be written there: its namespace is missing, or on its way out. It is Unready then.
	Closed bool
	// Asleep tells that somebody let it hibernate, so that it is Closed: nobody waits for it until it wakes, and that its Package is down is no harm.
	Asleep bool
	// Leaving tells that it is being deleted and will not be back: nobody waits for it.
	Leaving bool
}

// Package is what there is for a cluster.
type Package struct {
	UID       types.UID
	Namespace string
	// Current tells that its spec is the template's, Good that it is the one to return to.
	Current, Good bool
	// Unlabelled tells that labels or annotations of the template are missing on it, or differ, or that it still has some that the template had before.
	Unlabelled bool
	// Available, Progressed and Paused are its conditions, if they are about its present generation.
	Available, Progressed, Paused bool
	// Unreported tells that Available is false merely because nothing was reported about its present generation yet: it was available in the one before, and
	// may be so still.
	Unreported bool
	// Environment is the hash of the environment that it waits to be rendered for; empty when it doesn't. It is not Current until it is told to.
	Environment string
	// Held tells that somebody paused this Package and not the template.
	Held bool
	// Returned tells that the template was tried and taken back here.
	Returned bool
	// AppliedAt is when its spec was last changed by us; zero when not known.
	AppliedAt time.Time
	// Fresh tells that this was seen after the last change that we made to it, and that none was made of which we don't know the end: what looks
	// up has been up since. False when not known.
	Fresh bool
	// Deselected tells of an orphan that its hosted cluster is there, and merely not selected any more.
	Deselected bool
	// SettledAt is when it last became available or finished progressing; zero when not known.
	SettledAt time.Time
}

// settled tells that it is up, and that no update of it is under way; one that the template pauses does not go on. While one is, the revision before may well be available still, and take what
// it serves down a moment later; or it may be all that keeps a bad version from being seen.
func (p Package) settled() bool { return p.Available && (p.Progressed || p.Current && p.Paused) }

// down tells that it is known to be unavailable, so that a change of it takes nobody down.
func (p Package) down() bool { return !p.Available && !p.Unreported }

// done tells that there is nothing left to do or to wait for.
func (p Package) done() bool { return p.Current && p.settled() }

// Observed is all that a decision rests on.
type Observed struct {
	Settings Settings
	// Clusters that match the selector, in any order.
	Clusters []Cluster
	// Packages of the rollout's name by namespace: those of Clusters, whoever made them.
	Packages map[string]Package
	// Orphans are Packages that the rollout controls and whose cluster is gone or no longer matches.
	Orphans []Package
	// Refused says, by namespace, why a Package could not be written a moment ago. It is not tried now, and takes up no slot.
	Refused map[string]string
	// Processing are the Packages that were being changed when status was written last.
	Processing []packagesv1.HostedClusterPackageRefStatus
}

// Version is what a Package is given.
type Version string

const (
	// Template is the HostedClusterPackage's template.
	Template Version = "template"
	// LastGood is the template of the last rollout that was completed.
	LastGood Version = "last-good"
)

// Change is a Package that is to be written.
type Change struct {
	Cluster   types.NamespacedName
	Namespace string
	Version   Version
	// Environment is the hash of the environment that it may be rendered for now; empty when it need not be.
	Environment string
	// UID of the Package; empty for one that is to be made.
	UID types.UID
	// Free tells that it takes nothing down, because the Package is known to be down already.
	Free bool
}

// Decision says what happens to a cluster, and why.
type Decision struct {
	Cluster types.NamespacedName
	Group   string
	Action  Action
	Reason  string
}

// Action is what happens to a cluster's Package in this pass.
type Action string

// What can happen to a Package.
const (
	Create Action = "Create" // it has none
	Update Action = "Update" // it gets the template
	Return Action = "Return" // it gets the last good version
	Wait   Action = "Wait"   // it is in flight, or its turn has not come
	Skip   Action = "Skip"   // it can't or must not be touched
	Done   Action = "Done"
)

// Plan is what to do.
type Plan struct {
	Create []Change
	Apply  []Change
	Delete []Package
	// Kept are Packages of clusters that are not selected any more. So many of them are removed only when somebody confirms it.
	Kept []Package
	// Relabel gets labels and annotations of the template. Its spec is the template's, so that nothing is taken down.
	Relabel []Change
	// Processing replaces status.processing. Sorted by namespace.
	Processing []packagesv1.HostedClusterPackageRefStatus
	// Starts tells that Processing has entries which must be stored before anything is applied.
	Starts bool
	// Dropped are entries of the old processing that are thought to be finished, and have to be looked at before others start.
	Dropped []packagesv1.HostedClusterPackageRefStatus
	// Group is the current group; empty when all are done or groups don't matter.
	Group string
	// Budget and Used are the limit and how many Packages count against it before Apply; Budget is Unlimited with strategy instant.
	Budget, Used int
	// After is Used once Apply is carried out.
	After int
	// Soaks tells that the group before the current one is done, and is given time before the next one starts.
	Soaks bool
	// Finished tells that there are Packages in clusters that are awake, and that each of them has the template and is up.
	Finished bool
	// Sleeps tells that nobody is awake to have the template, and that somebody who sleeps waits for it.
	Sleeps bool
	// Decisions in the order of the rollout.
	Decisions []Decision
	// Status without conditions' times.
	Status packagesv1.HostedClusterPackageStatus
	// Again is when time alone may change the plan; 0 for never.
	Again time.Duration
}
