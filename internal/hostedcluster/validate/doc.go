// Package validate finds the mistakes in a HostedCluster that its schema can't: pure functions of the spec and of what it mentions. What they say
// becomes condition ValidConfiguration, and closes the gate of that name. It also tells which fields are set and have no effect.
package validate
