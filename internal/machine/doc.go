// Package machine is the inside of a worker of platform Local: the first process of a privileged pod that behaves as a virtual
// machine does. It mounts what a kernel and an init system would, reads the user data, fetches and applies the Ignition config
// once (package ignite), and then runs units (package unit) until it is told to power off (package boot).
package machine
