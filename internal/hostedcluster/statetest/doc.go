// Package statetest is what tests of decisions about HostedClusters begin from.
package statetest
