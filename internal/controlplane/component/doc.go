// Package component is the framework for every component of a hosted control plane.
//
// A component is one workload (Deployment, StatefulSet, CronJob or Job) that has the name of the component, and the
// manifests beside it. A folder of YAML contains what is constant, adapt functions in Go what varies, and the framework what
// all components share: images of the release, replicas, scheduling, security, restarts when configuration
// changes, the order of upgrades, and the ControlPlaneComponent object that reports on it.
//
//	assets ─▶ adapt ─▶ defaults ─▶ Rendered ─▶ Plan ─▶ Executor ─▶ ControlPlaneComponent status
//	└──────── Component.Plan: no writes ───────────┘   └────────── all writes ─────────────┘
//
// A Plan is data: the objects that are wanted and those that are not, what the component waits for, and what to report. Planning
// uses only its WorkloadContext, whose Reader is the only access to the cluster, and gives the same plan for the same context. A
// preview is the plan without the executor.
//
// # Order
//
// A component waits for those it depends on, and all but a few depend on kube-apiserver: each must be Available, completely
// rolled out, and at the release that is being rolled out. An upgrade therefore goes to etcd first, then kube-apiserver, then everything else at
// once, which is the order that Kubernetes' version skew policy requires.
//
// There is one refinement. A workload that does not exist yet cannot be skewed, so a component that tolerates the absence
// of its dependencies is created at once (StartBeforeDependencies): its images are pulled and its programs loaded while the
// others start. It still reports WaitingForDependencies, and is not changed any more until they are available.
//
// # Two kinds of releases
//
// Components of Kubernetes releases (../) and of OpenShift payloads (../openshift) use the same builder. The defaults differ: those of payloads
// (payloadDefaults) give the objects that the published operators make, and what is injected beside a container is a command of the
// control-plane-operator's image.
package component
