// Package machines says which Cluster API objects a NodePool consists of, and what their state means for it.
//
//	upgradeType Replace   MachineDeployment ─▶ MachineSets ─▶ Machines
//	upgradeType InPlace                        MachineSet  ─▶ Machines
//	autoRepair            MachineHealthCheck over the same Machines
//
// The webhooks of Cluster API are not installed, so everything that they would default is written here.
package machines
