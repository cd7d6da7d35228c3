// Package awsmachines tests machines of platform AWS with the programs that make them: the stock managers of Cluster API and of its provider
// for AWS, unmodified, against an emulated AWS (test/awsemulator). make e2e-aws builds and runs them.
package awsmachines
