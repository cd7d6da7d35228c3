// Package capi knows the objects of Cluster API that a hosted cluster has on the management cluster: its Cluster and the platform's
// infrastructure, when they count as initialized, and where they are stored, in the standard groups or in HyperShift's own.
package capi
