// Package provider is Cluster API's infrastructure provider of platform Local: a LocalMachine is a privileged pod.
//
//	LocalMachine  ──(owner, cluster, user data are there)──▶  pod is created  ──▶  providerID, addresses, Ready
//	                                                            │ ends with an error: the kubelet starts it again (reboot)
//	                                                            │ ends well: powered off, stays off
//	                                                            ▼ is deleted or failed: the machine is gone, and is not made again
//
// A machine that is gone is only reported. Whether it is replaced is for its owner or a MachineHealthCheck to say.
package provider
