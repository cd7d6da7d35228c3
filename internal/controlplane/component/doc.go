// Package component is the framework that every component of a hosted control plane is built with.
//
// A component is one workload (Deployment, StatefulSet, CronJob or Job) that has the name of the component, and the
// manifests beside it. A folder of YAML holds what is constant, adapt functions in Go what varies, and the framework what
// all components have in common: images of the release, replicas, scheduling, security, restarts when configuration
// changes, the order of upgrades, and the ControlPlaneComponent object that reports on it.
//
//	assets ─▶ adapt ─▶ defaults ─▶ Rendered ─▶ Plan ─▶ Executor ─▶ ControlPlaneComponent status
//	└──────── Component.Plan: no writes ───────────┘   └────────── all writes ─────────────┘
//
// A Plan is data: the objects that are wanted and those that are not, what the component waits for, and what is to be reported. Planning
// looks at nothing but its WorkloadContext, whose Reader is the only window to the cluster, and gives an equal plan for the same context. A
// preview is the plan without the executor.
//
// # Order
//
// A component waits for those it depends on, and all but a few depend on kube-apiserver: each must be Available, completely
// rolled out, and at the release that is being rolled out. So an upgrade goes etcd, kube-apiserver, everything else at
// once, which is the order that Kubernetes' version skew policy asks for.
//
// There is one refinement. A workload that does not exist yet cannot be skewed, so a component that can bear the absence
// of its dependencies is created at once (StartBeforeDependencies), its images are pulled and its programs loaded while the
// others start. It reports WaitingForDependencies all the same, and nothing of it changes any more until they are there.
//
// # Two kinds of releases
//
// Components of Kubernetes releases (../) and of OpenShift payloads (../openshift) are made with the same builder. The defaults differ: those of payloads
// (payloadDefaults) give the objects that the published operators make, and what is injected beside a container is a command of the
// control-plane-operator's image.
package component
