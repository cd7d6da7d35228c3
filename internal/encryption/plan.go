package encryption

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Observed is everything that the next step of a rotation may look at.
type Observed struct {
	// Status is status.secretEncryption as it is.
	Status hyperv1.SecretEncryptionStatus
	// Spec is the active key of the spec; nil when its Secret holds none, and then SpecProblem says what to do.
	Spec        *Ref
	SpecProblem string
	// Backup is the backup key of the spec, which may stay in the configuration; zero: none.
	Backup Ref
	// Vault is that of the spec.
	Vault hyperv1.AzureKeyVaultType
	// Live are the keys that kube-apiserver is configured with, the writing one first.
	Live []Key
	// Converged is true when servers run, and every one of them has exactly the live configuration.
	Converged bool
	// TargetReadable is false when the Secret that the target names does not hold its bytes any more.
	TargetReadable bool
}

// Step is what to do next, and what to report.
type Step struct {
	// Status is what status.secretEncryption must become before anything else is done.
	Status hyperv1.SecretEncryptionStatus
	// Rewrite asks for everything stored to be written again with the target. When all of it was, Complete is next.
	Rewrite bool
	// UpToDate, Reason and Message are condition EtcdDataEncryptionUpToDate.
	UpToDate        bool
	Reason, Message string
}

// maxHistory is the bound of the API.
const maxHistory = 5

// Next decides on one step. It is told again after each, and asks for nothing twice: a status that is already right comes
// back as it is.
func Next(obs Observed, now time.Time) Step {
	switch {
	case len(obs.Live) == 0:
		return waiting(obs.Status, "kube-apiserver has no encryption configuration yet")
	case isSet(obs.Status.TargetKey):
		return follow(obs, now)
	case obs.Spec == nil:
		return Step{Status: obs.Status, Reason: hyperv1.ReEncryptionFailedReason, Message: obs.SpecProblem}
	case !isSet(obs.Status.ActiveKey):
		return adopt(obs, now)
	}
	active, spec, writes := obs.hash(obs.Status.ActiveKey), obs.hash(*obs.Spec), obs.Live[0].Hash()
	switch {
	case writes != active:
		// Nobody says how that came about (a status that was lost, or restored), so that anything may be stored.
		return adopt(obs, now)
	case active == spec:
		step := completed(obs.Status)
		step.Status.ActiveKey = *obs.Spec.DeepCopy() // The same bytes may be in another Secret now.
		return step
	case slices.ContainsFunc(obs.Live, func(k Key) bool {
		h := k.Hash()
		return h != active && h != spec && h != obs.hash(obs.Backup)
	}):
		// One rotation ends completely before the next begins, or keys would pile up.
		return waiting(obs.Status, "the keys of the last rotation are still being taken from kube-apiserver")
	}
	return begin(obs, obs.Status, obs.Status.ActiveKey, now)
}

// hash is Key.Hash of the key that is named.
func (obs Observed) hash(r Ref) string { return HashOf(r, obs.Vault) }

// adopt begins when no status says what is stored, or one that cannot be right. Secrets may have been stored before there was
// a key, or with any of those that are live, so that everything is written again. In a new cluster that is next to nothing.
func adopt(obs Observed, now time.Time) Step {
	from, spec := obs.Status.ActiveKey, obs.hash(*obs.Spec)
	if obs.hash(from) == spec {
		from = Ref{}
	}
	for _, key := range obs.Live {
		if isSet(from) {
			break
		}
		switch {
		case key.plain() || key.Hash() == spec:
		case key.Hash() == obs.hash(obs.Backup):
			from = obs.Backup
		case key.Form != InCloud && obs.Spec.AESCBC != nil:
			// No Secret may have this key; the live configuration does, and keeps it until everything was written again.
			from = aescbc(&hyperv1.AESCBCKeyStatus{Secret: obs.Spec.AESCBC.Secret, DataHash: key.Hash()})
		}
	}
	return unsure(begin(obs, obs.Status, from, now))
}

// begin makes for the key of the spec. What is stored counts as encrypted with from; zero: not encrypted.
func begin(obs Observed, status hyperv1.SecretEncryptionStatus, from Ref, now time.Time) Step {
	status = *status.DeepCopy()
	status.ActiveKey, status.TargetKey = *from.DeepCopy(), *obs.Spec.DeepCopy()
	provider := obs.Spec.Provider
	if isSet(from) {
		provider = from.Provider
	}
	entry := hyperv1.EncryptionMigrationHistory{
		// What is not encrypted has a fingerprint that no key can have.
		From:  hyperv1.EncryptionKeyReference{Provider: provider, Fingerprint: fingerprint(from, obs.Vault)},
		To:    hyperv1.EncryptionKeyReference{Provider: obs.Spec.Provider, Fingerprint: fingerprint(*obs.Spec, obs.Vault)},
		State: hyperv1.EncryptionMigrationReadOnlyDeploy, StartedTime: seconds(now),
	}
	status.History = append([]hyperv1.EncryptionMigrationHistory{entry}, status.History...)
	status.History = status.History[:min(len(status.History), maxHistory)]
	return readOnly(status)
}

// unsure has a change that begins count as one from what is not encrypted: nobody knows what stored data is encrypted with.
func unsure(step Step) Step {
	step.Status.History[0].From.Fingerprint = unencrypted
	return step
}

// follow goes with what the live configuration does with the target.
func follow(obs Observed, now time.Time) Step {
	status, target := *obs.Status.DeepCopy(), obs.hash(obs.Status.TargetKey)
	at := index(obs.Live, target)
	switch {
	case at < 0 && !obs.TargetReadable:
		if obs.Spec == nil {
			return Step{Status: obs.Status, Reason: hyperv1.ReEncryptionFailedReason, Message: obs.SpecProblem}
		}
		// No server ever got it, so nothing is encrypted with it, and it is not to be had any more.
		return interrupt(obs, now)
	case givenUp(obs):
		return giveUp(obs, at, now)
	case at != 0:
		setState(&status, hyperv1.EncryptionMigrationReadOnlyDeploy)
		return readOnly(status)
	case obs.Converged:
		setState(&status, hyperv1.EncryptionMigrationMigrating)
		return Step{
			Status: status, Rewrite: true, Reason: hyperv1.ReEncryptionInProgressReason,
			Message: "Secrets are being written again with " + text(status.TargetKey),
		}
	case state(status) == hyperv1.EncryptionMigrationMigrating:
		return waiting(status, "Secrets are written again once every kube-apiserver runs with the present encryption keys")
	}
	setState(&status, hyperv1.EncryptionMigrationWritePromote)
	return Step{Status: status, Reason: hyperv1.EncryptionWritePromotionInProgressReason, Message: "kube-apiserver is being rolled out to write with the new key"}
}

// givenUp says whether the spec names another key than the target, which has not written.
func givenUp(obs Observed) bool {
	target := obs.hash(obs.Status.TargetKey)
	return target != "" && len(obs.Live) > 0 && index(obs.Live, target) != 0 && obs.Spec != nil && obs.hash(*obs.Spec) != target && neverWrote(obs)
}

// giveUp has a target taken away that the spec does not name any more, before a server writes with it. It is said first, and the target stays named: who makes
// the configuration may be about to have it write. Once that process has taken it away it can't come to write any more, so that nothing is encrypted with it.
func giveUp(obs Observed, at int, now time.Time) Step {
	backup := obs.hash(obs.Status.TargetKey) == obs.hash(obs.Backup) // is read with for as long as it is named there
	if state(obs.Status) == hyperv1.EncryptionMigrationInterrupted && (at < 0 || backup) {
		return interrupt(obs, now)
	}
	status := *obs.Status.DeepCopy()
	setState(&status, hyperv1.EncryptionMigrationInterrupted)
	return Step{
		Status: status, Reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason,
		Message: fmt.Sprintf("%s is being taken from kube-apiserver: nothing was written with it, and spec.secretEncryption names %s", text(status.TargetKey), text(*obs.Spec)),
	}
}

// interrupt ends a change whose target wrote nothing, and goes on with what the spec names.
func interrupt(obs Observed, now time.Time) Step {
	status := *obs.Status.DeepCopy()
	end(&status, hyperv1.EncryptionMigrationInterrupted, now)
	if !settled(obs) {
		return unsure(begin(obs, status, status.ActiveKey, now)) // Everything is still to be written again, be it with the key that writes.
	}
	status.TargetKey = Ref{}
	obs.Status = status
	return Next(obs, now)
}

// neverWrote says that a target which does not write now did not before either: the change began with another key for everything stored, or no key writes yet.
func neverWrote(obs Observed) bool {
	return settled(obs) || !isSet(obs.Status.ActiveKey) && obs.Live[0].plain()
}

// settled says whether the change began from the active key, with everything stored written with it. Otherwise keys were adopted, and any of them may have
// written, even the target.
func settled(obs Observed) bool {
	active, history := obs.Status.ActiveKey, obs.Status.History
	return isSet(active) && len(history) > 0 && history[0].From.Fingerprint == fingerprint(active, obs.Vault)
}

// Complete is the step after everything stored was written again with the target.
func Complete(status hyperv1.SecretEncryptionStatus, now time.Time) Step {
	status = *status.DeepCopy()
	status.ActiveKey, status.TargetKey = status.TargetKey, hyperv1.SecretEncryptionKeyStatus{}
	end(&status, hyperv1.EncryptionMigrationCompleted, now)
	return completed(status)
}

func completed(status hyperv1.SecretEncryptionStatus) Step {
	return Step{Status: *status.DeepCopy(), UpToDate: true, Reason: hyperv1.ReEncryptionCompletedReason, Message: hyperv1.AllIsWellMessage}
}

func readOnly(status hyperv1.SecretEncryptionStatus) Step {
	message := "kube-apiserver is being rolled out to read with the new key"
	if target := status.TargetKey; target.AWS != nil || target.Azure != nil {
		message = fmt.Sprintf("kube-apiserver is being rolled out to read with %s, and gets ready only if that key can be used: if it can't, name the key of before in spec.secretEncryption.kms again", text(target))
	}
	return Step{Status: status, Reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason, Message: message}
}

func waiting(status hyperv1.SecretEncryptionStatus, message string) Step {
	return Step{Status: status, Reason: hyperv1.ReEncryptionWaitingForKASConvergenceReason, Message: message}
}

// Promotion says how far the target of a change is on its way to writing.
type Promotion int

const (
	// PromotionDue: the target is to write once every server reads with it.
	PromotionDue Promotion = iota
	// PromotionDone: every server was seen writing with it.
	PromotionDone
	// PromotionOff: the spec names another key, so that the target is to go, unless it writes already.
	PromotionOff
)

// Promotion is Promoted for who makes the configuration. It need not wait until the status says that a target is given up: who says so is a client of
// kube-apiserver, and where none runs, the next one may not get ready for that very target.
func (obs Observed) Promotion() Promotion {
	promoted := Promoted(obs.Status)
	if promoted == PromotionDue && givenUp(obs) {
		return PromotionOff
	}
	return promoted
}

// Promoted is what the status says of the target.
func Promoted(status hyperv1.SecretEncryptionStatus) Promotion {
	switch {
	case !isSet(status.TargetKey):
	case state(status) == hyperv1.EncryptionMigrationMigrating:
		return PromotionDone
	case state(status) == hyperv1.EncryptionMigrationInterrupted:
		return PromotionOff
	}
	return PromotionDue
}

func state(status hyperv1.SecretEncryptionStatus) hyperv1.EncryptionMigrationState {
	if len(status.History) == 0 {
		return ""
	}
	return status.History[0].State
}

func setState(status *hyperv1.SecretEncryptionStatus, s hyperv1.EncryptionMigrationState) {
	if len(status.History) > 0 {
		status.History[0].State = s
	}
}

func end(status *hyperv1.SecretEncryptionStatus, s hyperv1.EncryptionMigrationState, now time.Time) {
	if len(status.History) > 0 {
		status.History[0].State, status.History[0].CompletionTime = s, seconds(now)
	}
}

// seconds is what the API stores of a time.
func seconds(now time.Time) metav1.Time { return metav1.NewTime(now.UTC().Truncate(time.Second)) }

// aescbc names a key of a Secret.
func aescbc(key *hyperv1.AESCBCKeyStatus) Ref {
	return Ref{Provider: hyperv1.SecretEncryptionProviderAESCBC, AESCBC: key}
}

// AESCBCRef names the key that a Secret holds.
func AESCBCRef(secret string, key Key) Ref {
	return aescbc(&hyperv1.AESCBCKeyStatus{Secret: hyperv1.EncryptionSecretReference{Name: secret}, DataHash: key.Hash()})
}
