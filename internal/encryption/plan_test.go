package encryption

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestNext(t *testing.T) {
	status := func(active, target string, states ...hyperv1.EncryptionMigrationState) (s hyperv1.SecretEncryptionStatus) {
		if active != "" {
			s.ActiveKey = *named(active)
		}
		if target != "" {
			s.TargetKey = *named(target)
		}
		for _, state := range states {
			from := hyperv1.EncryptionKeyReference{Fingerprint: fingerprint(s.ActiveKey, "")}
			s.History = append(s.History, hyperv1.EncryptionMigrationHistory{State: state, From: from})
		}
		return s
	}
	adopted := func(s hyperv1.SecretEncryptionStatus) hyperv1.SecretEncryptionStatus {
		s.History[0].From.Fingerprint = unencrypted
		return s
	}
	const ro, wp, mi, done, stopped = hyperv1.EncryptionMigrationReadOnlyDeploy, hyperv1.EncryptionMigrationWritePromote,
		hyperv1.EncryptionMigrationMigrating, hyperv1.EncryptionMigrationCompleted, hyperv1.EncryptionMigrationInterrupted
	for name, tc := range map[string]struct {
		obs            Observed
		spec           string
		active, target string // of the next status
		states         []hyperv1.EncryptionMigrationState
		reason         string
		rewrite        bool
	}{
		"When there is no configuration yet it should wait":                                    {spec: "a", reason: hyperv1.ReEncryptionWaitingForKASConvergenceReason},
		"When nobody says what is stored it should write everything again":                     {spec: "a", obs: Observed{Live: keys("a")}, target: "a", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When servers don't encrypt yet it should begin":                                       {spec: "a", obs: Observed{Live: keys(".a")}, target: "a", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When servers don't encrypt yet it should wait for them":                               {spec: "a", obs: Observed{Status: status("", "a", ro), Live: keys(".a"), Converged: true}, target: "a", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When all servers encrypt it should write everything again":                            {spec: "a", obs: Observed{Status: status("", "a", wp), Live: keys("a"), Converged: true}, target: "a", states: states(mi), reason: hyperv1.ReEncryptionInProgressReason, rewrite: true},
		"When there is a backup key from before it should write everything again":              {spec: "b", obs: Observed{Live: keys("ba"), Backup: *named("a")}, active: "a", target: "b", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When a key of a cloud has another backup it should write all again":                   {spec: "2", obs: Observed{Live: keys("21"), Backup: *named("1")}, active: "1", target: "2", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When a key of a cloud changed and nobody names it it should say nothing":              {spec: "2", obs: Observed{Live: keys("1")}, target: "2", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When keys move into a cloud it should write all again":                                {spec: "1", obs: Observed{Status: status("a", "", done), Live: keys("a")}, active: "a", target: "1", states: states(ro, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the key changed before anybody recorded one it should rotate":                    {spec: "b", obs: Observed{Live: keys("a")}, active: "a", target: "b", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the spec has another key it should begin":                                        {spec: "b", obs: Observed{Status: status("a", "", done), Live: keys("a")}, active: "a", target: "b", states: states(ro, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When five changes are on record it should forget the oldest":                          {spec: "b", obs: Observed{Status: status("a", "", done, done, done, done, stopped), Live: keys("a")}, active: "a", target: "b", states: states(ro, done, done, done, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When old keys are still in use it should wait before it begins":                       {spec: "c", obs: Observed{Status: status("b", "", done), Live: keys("ba")}, active: "b", states: states(done), reason: hyperv1.ReEncryptionWaitingForKASConvergenceReason},
		"When another key writes than the status knows it should rotate":                       {spec: "a", obs: Observed{Status: status("a", "", done), Live: keys("ba")}, active: "b", target: "a", states: states(ro, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the spec's Secret holds no key it should say so":                                 {obs: Observed{Status: status("a", ""), Live: keys("a")}, active: "a", reason: hyperv1.ReEncryptionFailedReason},
		"When the target is read by servers it should wait for its promotion":                  {spec: "b", obs: Observed{Status: status("a", "b", ro), Live: keys("ab"), Converged: true}, active: "a", target: "b", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the target writes on some servers it should wait for all":                        {spec: "b", obs: Observed{Status: status("a", "b", ro), Live: keys("ba")}, active: "a", target: "b", states: states(wp), reason: hyperv1.EncryptionWritePromotionInProgressReason},
		"When the target writes everywhere it should write everything again":                   {spec: "b", obs: Observed{Status: status("a", "b", wp), Live: keys("ba"), Converged: true}, active: "a", target: "b", states: states(mi), reason: hyperv1.ReEncryptionInProgressReason, rewrite: true},
		"When servers are replaced while it writes it should pause":                            {spec: "b", obs: Observed{Status: status("a", "b", mi), Live: keys("ba")}, active: "a", target: "b", states: states(mi), reason: hyperv1.ReEncryptionWaitingForKASConvergenceReason},
		"When the spec changes again it should go on with the target":                          {spec: "c", obs: Observed{Status: status("a", "b", wp), Live: keys("ba"), Converged: true}, active: "a", target: "b", states: states(mi), reason: hyperv1.ReEncryptionInProgressReason, rewrite: true},
		"When the spec goes back before the target writes it should give the target up":        {spec: "1", obs: Observed{Status: status("1", "2", ro, done), Live: keys("12"), TargetReadable: true}, active: "1", target: "2", states: states(stopped, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the spec goes back before servers have the target it should give it up":          {spec: "1", obs: Observed{Status: status("1", "2", ro, done), Live: keys("1"), TargetReadable: true}, active: "1", target: "2", states: states(stopped, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When a target that was given up is still configured it should wait":                   {spec: "1", obs: Observed{Status: status("1", "2", stopped, done), Live: keys("12"), TargetReadable: true}, active: "1", target: "2", states: states(stopped, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When a target that was given up is gone it should be done":                            {spec: "1", obs: Observed{Status: status("1", "2", stopped, done), Live: keys("1"), TargetReadable: true}, active: "1", states: states(stopped, done), reason: hyperv1.ReEncryptionCompletedReason},
		"When a target that was given up is gone it should begin with what the spec names":     {spec: "a", obs: Observed{Status: status("1", "2", stopped, done), Live: keys("1"), TargetReadable: true}, active: "1", target: "a", states: states(ro, stopped, done), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When a target that was given up stays as the backup key it should be done":            {spec: "1", obs: Observed{Status: status("1", "2", stopped, done), Live: keys("12"), Backup: *named("2"), TargetReadable: true}, active: "1", states: states(stopped, done), reason: hyperv1.ReEncryptionCompletedReason},
		"When nobody knows what wrote before the spec changed it should go on with the target": {spec: "1", obs: Observed{Status: adopted(status("1", "2", ro)), Live: keys("12"), TargetReadable: true}, active: "1", target: "2", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the first key does not write yet and the spec changes it should give it up":      {spec: "2", obs: Observed{Status: status("", "1", ro), Live: keys(".1"), TargetReadable: true}, target: "1", states: states(stopped), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the first key was given up before it wrote it should begin with another":         {spec: "2", obs: Observed{Status: status("", "1", stopped), Live: keys("."), TargetReadable: true}, target: "2", states: states(ro, stopped), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the spec names a target again that was given up it should go on with it":         {spec: "2", obs: Observed{Status: status("1", "2", stopped), Live: keys("1"), TargetReadable: true}, active: "1", target: "2", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When a target came to write while it was given up it should go on with it":            {spec: "1", obs: Observed{Status: status("1", "2", stopped), Live: keys("21"), TargetReadable: true}, active: "1", target: "2", states: states(wp), reason: hyperv1.EncryptionWritePromotionInProgressReason},
		"When the spec's Secret holds no key while a target is only read it should go on":      {obs: Observed{Status: status("a", "b", ro), Live: keys("ab"), TargetReadable: true}, active: "a", target: "b", states: states(ro), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the target is to be had nowhere and the spec went back it should be done":        {spec: "a", obs: Observed{Status: status("a", "b", ro, done), Live: keys("a")}, active: "a", states: states(stopped, done), reason: hyperv1.ReEncryptionCompletedReason},
		"When the target is to be had nowhere and keys were adopted it should write all again": {spec: "a", obs: Observed{Status: adopted(status("a", "b", ro)), Live: keys("a")}, active: "a", target: "a", states: states(ro, stopped), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
		"When the target is to be had nowhere it should take another":                          {spec: "c", obs: Observed{Status: status("a", "b", ro), Live: keys("a")}, active: "a", target: "c", states: states(ro, stopped), reason: hyperv1.EncryptionReadOnlyRolloutInProgressReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.spec != "" {
				tc.obs.Spec = named(tc.spec)
			}
			step := Next(tc.obs, noon)
			g.Expect(statusLetter(step.Status.ActiveKey)).To(Equal(tc.active))
			g.Expect(statusLetter(step.Status.TargetKey)).To(Equal(tc.target))
			var got []hyperv1.EncryptionMigrationState
			for _, h := range step.Status.History {
				got = append(got, h.State)
			}
			g.Expect(got).To(Equal(tc.states))
			g.Expect(step.Reason).To(Equal(tc.reason))
			g.Expect(step.Rewrite).To(Equal(tc.rewrite))
			g.Expect(step.UpToDate).To(Equal(tc.reason == hyperv1.ReEncryptionCompletedReason))
		})
	}
}

func states(list ...hyperv1.EncryptionMigrationState) []hyperv1.EncryptionMigrationState { return list }
