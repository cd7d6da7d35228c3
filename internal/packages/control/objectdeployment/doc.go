// Package objectdeployment keeps the revisions of ObjectDeployments and ClusterObjectDeployments.
//
// Every template has a hash, and a revision is an ObjectSet named after it. A new template makes a new ObjectSet, which takes objects
// over from the ones before; they are archived as soon as it is available, or when nothing of theirs is left that it could
// take over. A revision that never becomes available leaves the one before serving.
package objectdeployment
