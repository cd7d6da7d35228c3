// Package nodeconfig is what configures machines: what users put into spec.config of a NodePool (MachineConfigs, KubeletConfigs,
// ContainerRuntimeConfigs and image mirrors, as YAML documents in ConfigMaps), and the one canonical text that is made of it and travels to the
// ignition server.
//
// [Validate], [Canonical] and [Encode] are for the controller that reports ValidMachineConfig and writes the text, [Parse] for the ignition server
// that makes payloads. Both sides take the same decisions: what passes one passes the other. All are pure, and bounded in what they read.
package nodeconfig
