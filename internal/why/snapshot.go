package why

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// Snapshot is what was read, of one hosted cluster or of one package as a rule. Everything is optional: rules that need what is not there see nothing.
// Machines and what belongs to them are in the standard types, whichever group they are stored in.
type Snapshot struct {
	// Now is when it was read, for what has lasted too long.
	Now time.Time

	HostedClusters      []hyperv1.HostedCluster
	HostedControlPlanes []hyperv1.HostedControlPlane
	NodePools           []hyperv1.NodePool
	Components          []hyperv1.ControlPlaneComponent

	MachineDeployments []clusterv1.MachineDeployment
	MachineSets        []clusterv1.MachineSet
	Machines           []clusterv1.Machine

	// Of control planes, of the operators, and where packages put their objects.
	Namespaces   []corev1.Namespace
	Deployments  []appsv1.Deployment
	StatefulSets []appsv1.StatefulSet
	Pods         []corev1.Pod
	Claims       []corev1.PersistentVolumeClaim
	// Warnings are events of type Warning, of a HostedCluster those of type Normal as well. The last warning about an object counts.
	Warnings []corev1.Event
	// Leases are those of the operators.
	Leases []coordinationv1.Lease
	// ManagementNodes are nodes that control planes run on.
	ManagementNodes []corev1.Node

	// Hosted is what a hosted cluster said, by "namespace/name" of its HostedCluster. Treat it as hostile.
	Hosted map[string]HostedSide

	// Those without a namespace are ClusterPackages, ClusterObjectDeployments and so on.
	Packages              []packagesv1.Package
	ObjectDeployments     []packagesv1.ObjectDeployment
	ObjectSets            []packagesv1.ObjectSet
	ObjectSetPhases       []packagesv1.ObjectSetPhase
	HostedClusterPackages []packagesv1.HostedClusterPackage

	// OperatorNamespace is that of the hypershift-operator, and PackageOperatorNamespace that of the package operator; empty: not read.
	OperatorNamespace, PackageOperatorNamespace string

	// Unread says by kind what could not be read, and why. The rules do without.
	Unread map[string]string
}

// HostedSide is what was read inside of a hosted cluster.
type HostedSide struct {
	Nodes    []corev1.Node
	Requests []certificatesv1.CertificateSigningRequest
	Budgets  []policyv1.PodDisruptionBudget
	// Unreachable is why nothing could be read; empty: it answered, or was not asked.
	Unreachable string
}
