// Package validate finds the mistakes in a HostedCluster that its schema can't: pure functions of the spec and of what it references. Their results
// become condition ValidConfiguration, and close the gate of that name. It also reports which fields are set and have no effect.
package validate
