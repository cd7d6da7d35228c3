// Package capiadmission does with objects of Cluster API what Cluster API's own admission webhooks would do, without a webhook.
//
// We run Cluster API without its webhooks: a webhook that does not answer stops every write, and one management cluster may have several
// Cluster APIs. Its controllers count on them all the same. A MachineDeployment without what the defaulting webhook fills in makes two of
// them change one MachineSet back and forth for as long as it exists.
//
// So a Scheme learns what the webhooks do, from the module whose version the managers have: runtime.Scheme.Default fills in, and Validate and
// ValidateUpdate refuse. Package apply asks the Scheme about everything that it writes, so no renderer gets round it.
package capiadmission
