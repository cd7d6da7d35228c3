// Package auditlogs has audit logs of hosted API servers outlive their Pods, as AuditLogPersistenceConfig cluster asks for it. It runs in the hypershift-operator
// when contract/auditlogs is to be served, that is when EnvEnabled is true.
//
//	Validator  says of the configuration whether it can be carried out, and how far it is
//	Keeper     keeps the claims of one control plane when their Pods go, and takes snapshots of them after restarts
//
// The volumes themselves are made by the control-plane-operator, which is told by an annotation (see Wanted and package contract/auditlogs). What is to be done with
// claims and snapshots is decided in plan.go.
package auditlogs

// EnvEnabled is the variable that switches it on, when it is true.
const EnvEnabled = "ENABLE_AUDIT_LOG_PERSISTENCE"

// ConfigurationName is that of the only AuditLogPersistenceConfig.
const ConfigurationName = "cluster"

const (
	validatorName = "auditlogpersistence"
	keeperName    = "audit-log-snapshot"
)
