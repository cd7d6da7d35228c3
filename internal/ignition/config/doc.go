// Package config reads what users put into spec.config of a NodePool: MachineConfigs, KubeletConfigs, ContainerRuntimeConfigs and
// image mirrors, as YAML documents in ConfigMaps.
//
// [Validate] is for the controller that reports ValidMachineConfig, [Parse] for the ignition server that makes payloads. Both take
// the same decisions: what passes one passes the other. Both are pure, and bounded in what they read.
package config
