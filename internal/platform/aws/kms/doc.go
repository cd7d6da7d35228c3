// Package kms finds out whether the key by which a hosted cluster on AWS encrypts its secrets can be used: with a token of the hosted cluster it takes on
// the role, and encrypts a few bytes. Condition ValidAWSKMSConfig of the HostedControlPlane says the result.
package kms
