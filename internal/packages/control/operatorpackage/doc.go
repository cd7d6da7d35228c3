// Package operatorpackage is the package operator as a package: its kinds and its Deployment, and as components what belongs to hosted clusters.
//
//	package-operator           ClusterPackage: the operator of a management cluster
//	├── remote-phase           Package beside a control plane: the connector to its hosted cluster
//	└── hosted-cluster         Package beside a control plane: an operator for packages of the hosted cluster's own
package operatorpackage
