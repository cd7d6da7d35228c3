// Package bootstrap lets the operator of packages install itself from a package: "package-operator-manager -self-bootstrap=IMAGE".
//
// It puts the kinds and a ClusterPackage named package-operator into the cluster, and then works as the operator would, for cluster-scoped
// packages alone, until the Deployment that the package brings runs and takes over. It can be interrupted anywhere and run again, and does
// nothing where everything is there. On a cluster behind OpenShift's proxy it starts itself again with that proxy's settings.
//
// Two repairs of definitions that very old installations have, singular names of slices and a missing field of ObjectSets, are not made: the
// package's own definitions replace them.
package bootstrap
