package component

import (
	"fmt"
	"io/fs"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Component is a part of a hosted control plane.
type Component interface {
	// Name is also the name of the workload and of the ControlPlaneComponent.
	Name() string
	// Plan says what brings the component to what ctx asks for, as far as its dependencies allow, and what is to be reported of it. It
	// writes nothing. An error means that it is not even known whether there is anything to do; what goes wrong later is in the plan.
	Plan(ctx WorkloadContext) (Plan, error)
}

// Options are the traits of a component that decide how it is scheduled and what it may reach.
type Options struct {
	// RequestServing components answer users of the hosted cluster.
	RequestServing bool
	// MultiZoneSpread keeps replicas on different nodes and in different zones.
	MultiZoneSpread bool
	// NeedsManagementKASAccess gives the pods a token for the management API server and a way to it.
	NeedsManagementKASAccess bool
}

// WorkloadComponent is a component made by a Builder.
type WorkloadComponent struct {
	name    string
	options Options

	workload  asset
	manifests []asset
	adapters  map[string]*manifestAdapter

	adapt        func(WorkloadContext, client.Object) error
	predicate    Predicate
	needed       Predicate // nil: always; see SleepUntil
	operands     func(WorkloadContext) error
	dependencies []string
	startsEarly  bool
	startsAfter  []string // with startsEarly: what must be available all the same

	prober       *AvailabilityProber
	konnectivity *KonnectivityProxy
	tokenMinter  *TokenMinter
	kubeconfig   *ServiceAccountKubeconfig
	capi         *CAPIClient

	reloaded sets.Set[string] // volumes whose files the program reads again by itself
}

// Predicate decides whether something is wanted. An error leaves everything as it is.
type Predicate func(WorkloadContext) (bool, error)

// Name is the name of the component.
func (c *WorkloadComponent) Name() string { return c.name }

// Builder puts a component together. W is the Go type of its workload.
type Builder[W Workload] struct {
	c      *WorkloadComponent
	assets fs.FS
	dir    string
	data   map[string]string // nil: the assets are no templates
}

// NewDeploymentComponent starts a component whose workload is the Deployment in assets/deployment.yaml.
func NewDeploymentComponent(name string, assets fs.FS, options Options) *Builder[*appsv1.Deployment] {
	return newBuilder[*appsv1.Deployment](name, assets, options)
}

// NewStatefulSetComponent starts a component whose workload is the StatefulSet in assets/statefulset.yaml.
func NewStatefulSetComponent(name string, assets fs.FS, options Options) *Builder[*appsv1.StatefulSet] {
	return newBuilder[*appsv1.StatefulSet](name, assets, options)
}

// NewCronJobComponent starts a component whose workload is the CronJob in assets/cronjob.yaml.
func NewCronJobComponent(name string, assets fs.FS, options Options) *Builder[*batchv1.CronJob] {
	return newBuilder[*batchv1.CronJob](name, assets, options)
}

// NewJobComponent starts a component whose workload is the Job in assets/job.yaml.
func NewJobComponent(name string, assets fs.FS, options Options) *Builder[*batchv1.Job] {
	return newBuilder[*batchv1.Job](name, assets, options)
}

func newBuilder[W Workload](name string, assets fs.FS, options Options) *Builder[W] {
	return &Builder[W]{
		c: &WorkloadComponent{
			name: name, options: options,
			adapters: map[string]*manifestAdapter{}, reloaded: sets.New[string](),
		},
		assets: assets, dir: "assets",
	}
}

// WithAssetDir takes the manifests from another folder than assets.
func (b *Builder[W]) WithAssetDir(dir string) *Builder[W] { b.dir = dir; return b }

// WithTemplateData makes the assets text templates that are rendered with data before they are decoded, so that one folder serves
// several components: {{.name}} is data["name"]. It is for names, which are the same for every control plane; what depends on one
// belongs into adapt functions. A key that is not in data is an error.
func (b *Builder[W]) WithTemplateData(data map[string]string) *Builder[W] { b.data = data; return b }

// WithAdaptFunction changes the workload after it was loaded and before the defaults.
func (b *Builder[W]) WithAdaptFunction(adapt func(WorkloadContext, W) error) *Builder[W] {
	b.c.adapt = func(ctx WorkloadContext, obj client.Object) error { return adapt(ctx, obj.(W)) }
	return b
}

// WithPredicate says when the component exists. Where it does not, its workload, all manifests and its
// ControlPlaneComponent are deleted. Adapt functions are not called then.
func (b *Builder[W]) WithPredicate(p Predicate) *Builder[W] { b.c.predicate = p; return b }

// WithManifestAdapter says how one file beside the workload is treated.
func (b *Builder[W]) WithManifestAdapter(file string, options ...ManifestOption) *Builder[W] {
	a := b.c.adapters[file]
	if a == nil {
		a = &manifestAdapter{}
		b.c.adapters[file] = a
	}
	for _, option := range options {
		option(a)
	}
	return b
}

// WithDependencies adds to what the component waits for; kube-apiserver need not be named.
func (b *Builder[W]) WithDependencies(names ...string) *Builder[W] {
	b.c.dependencies = append(b.c.dependencies, names...)
	return b
}

// StartBeforeDependencies creates the component although its dependencies are not rolled out yet, as soon as those named in
// after are available. Once it exists it waits for all of them with every change, so that the order of an upgrade is kept.
// Name in after what would only compete for the processors while the component cannot get anywhere without it.
func (b *Builder[W]) StartBeforeDependencies(after ...string) *Builder[W] {
	b.c.startsEarly, b.c.startsAfter = true, after
	return b
}

// InjectAvailabilityProber adds an init container that waits for the hosted API server.
func (b *Builder[W]) InjectAvailabilityProber(p AvailabilityProber) *Builder[W] {
	b.c.prober = &p
	return b
}

// InjectKonnectivityContainer adds a proxy into the network of the hosted cluster.
func (b *Builder[W]) InjectKonnectivityContainer(k KonnectivityProxy) *Builder[W] {
	b.c.konnectivity = &k
	return b
}

// InjectTokenMinterContainer adds a container that keeps a token of a ServiceAccount of the hosted cluster in a file.
func (b *Builder[W]) InjectTokenMinterContainer(t TokenMinter) *Builder[W] {
	b.c.tokenMinter = &t
	return b
}

// InjectServiceAccountKubeconfig gives the component a kubeconfig that acts as a ServiceAccount of the hosted cluster.
func (b *Builder[W]) InjectServiceAccountKubeconfig(k ServiceAccountKubeconfig) *Builder[W] {
	b.c.kubeconfig = &k
	return b
}

// SpeaksClusterAPI says that the component reads or writes objects of Cluster API.
func (b *Builder[W]) SpeaksClusterAPI(p CAPIClient) *Builder[W] {
	b.c.capi = &p
	return b
}

// ReloadsFilesOf names volumes whose files the program reads again when they change. Their content does not count for the
// configuration hash, so that it does not restart the pods.
func (b *Builder[W]) ReloadsFilesOf(volumes ...string) *Builder[W] {
	b.c.reloaded.Insert(volumes...)
	return b
}

// WithCustomOperandsRolloutCheckFunc adds a condition to a complete rollout: check returns what is still missing as an
// error, which becomes the message of RolloutComplete=False, reason WaitingForOperands. It is called only when the workload
// itself is complete.
func (b *Builder[W]) WithCustomOperandsRolloutCheckFunc(check func(WorkloadContext) error) *Builder[W] {
	b.c.operands = check
	return b
}

// Build loads the assets. It panics when the component is broken as written, which any test that lists the components finds.
func (b *Builder[W]) Build() *WorkloadComponent {
	if b.c.name == "" {
		panic("component without a name")
	}
	assets, err := loadAssets(b.assets, b.dir, b.data)
	if err != nil {
		panic(fmt.Sprintf("component %s: %v", b.c.name, err))
	}
	for _, a := range assets {
		if !workloadFiles[a.file] {
			b.c.manifests = append(b.c.manifests, a)
			continue
		}
		if _, ok := a.object.(W); !ok || b.c.workload.object != nil {
			panic(fmt.Sprintf("component %s: unexpected workload %s", b.c.name, a.file))
		}
		b.c.workload = a
	}
	if b.c.workload.object == nil {
		panic(fmt.Sprintf("component %s: no workload in %s", b.c.name, b.dir))
	}
	for file := range b.c.adapters {
		if !slices.ContainsFunc(b.c.manifests, func(a asset) bool { return a.file == file }) {
			panic(fmt.Sprintf("component %s: adapter for %s, which is no file of it", b.c.name, file))
		}
	}
	return b.c
}
