// Package v1alpha1 holds the types of the API group package-operator.run.
//
// A Package names an image with manifests. It becomes an ObjectDeployment, which keeps one ObjectSet for each revision; an
// ObjectSet rolls its objects out phase by phase and hands phases that have a class to an ObjectSetPhase. What does not fit
// into one object is kept in ObjectSlices. An ObjectTemplate makes one object from values of others.
//
// Every kind exists namespaced and, with the prefix Cluster, cluster-scoped. The two Go types of a pair have the same fields, so
// that a pointer to one converts to a pointer to the other; code is written once, for the namespaced one.
//
// Names and order of the fields below ObjectSetTemplate are part of the hash that names ObjectSets: changing one makes a new
// revision of everything that is installed.
//
// +kubebuilder:object:generate=true
// +groupName=package-operator.run
package v1alpha1
