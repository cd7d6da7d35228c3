package nodepool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/nodepool/rollout"
)

// rollState is what is known of former machines, and what users ask for now.
type rollState struct {
	before rolls.Note
	known  bool
	asked  rolls.Request
	// holds: the target is held, as nobody asked for it.
	holds bool
}

// readRolls reads the note of former passes.
func (p *pass) readRolls() {
	if p.target.template != "" {
		p.target.inputs["spec.platform, as machine template"] = p.target.template
	}
	p.rolls.before, p.rolls.known = rolls.Parse(p.obs.pool.Annotations[hyperv1.NodePoolRollsAnnotation])
	var err error
	if p.rolls.asked, err = requestOf(p.obs); err != nil {
		p.err = err
	}
}

// made stands for what machines are made from. The name of the template stands for its content, as the hash does for the rest.
func (p *pass) made() string { return p.target.hash + "/" + p.target.template }

// unrequested tells whether nobody asked for what machines are to be.
func (p *pass) unrequested() bool {
	return p.rolls.before.Unrequested(p.rolls.known, p.made(), p.rolls.asked, p.obs.pool.Annotations[hyperv1.NodePoolAllowRolloutAnnotation], p.now)
}

// noteRoll notes on the NodePool what machines are made from when that changes, so that somebody who asks why they were replaced can be told which
// input it was, and what users asked for, so that a replacement that follows from nothing of it is held. While another rollout is held it says nothing:
// machines are still what they were.
func (p *pass) noteRoll() {
	if p.rolls.holds {
		p.reportUnrequested()
	} else {
		p.removed = append(p.removed, hyperv1.NodePoolUnrequestedRolloutConditionType)
		if p.held != "" {
			return
		}
	}
	note, changed, held := p.rolls.before, false, p.made()
	if !p.rolls.holds {
		note, changed = rolls.Next(note, p.rolls.known, held, p.target.inputs, p.now)
		held = ""
	}
	note, asked := note.Noting(p.rolls.asked, held, p.now)
	if !changed && !asked {
		return
	}
	text, err := note.Text()
	if err != nil {
		p.err = err
		return
	}
	p.notes()[hyperv1.NodePoolRollsAnnotation] = text
}

// reportUnrequested says what would be replaced, why, and how to let it go.
func (p *pass) reportUnrequested() {
	changes := strings.Join(rolls.Changes(p.rolls.before.Inputs, p.target.inputs), "; ")
	if changes == "" {
		changes = fmt.Sprintf("this operator makes machines in another way from the same settings (%s → %s)", p.rolls.before.Hash, p.made())
	}
	c := condition(hyperv1.NodePoolUnrequestedRolloutConditionType, corev1.ConditionTrue, ReasonHeld, clip.Over(fmt.Sprintf(
		"all machines would be replaced although no spec was changed: %s. Machines stay as they are. To replace them: kubectl annotate --overwrite nodepool %s -n %s %s=%s",
		changes, p.obs.pool.Name, p.obs.pool.Namespace, hyperv1.NodePoolAllowRolloutAnnotation, p.made()), maxHeldMessage, "…"))
	c.Severity = severityError
	p.set(c)
}

// maxHeldMessage bounds the message of condition UnrequestedRollout, in bytes.
const maxHeldMessage = 8 << 10

// requestOf is what users ask for, so far as machines may follow from it: the specs but for what only counts or stops machines, what they refer to, and
// addresses and identifiers of the cluster. The machine configuration that the control plane writes is left out: it is an operator's work.
func requestOf(obs *observed) (rolls.Request, error) {
	pool, hc := obs.pool.Spec.DeepCopy(), obs.hc.Spec.DeepCopy()
	pool.Replicas, pool.AutoScaling, pool.PausedUntil, hc.PausedUntil = nil, nil, nil, nil
	specs, err := json.Marshal([]any{pool, hc})
	if err != nil {
		return rolls.Request{}, fmt.Errorf("encoding what is asked for: %w", err)
	}
	generated := map[string]map[string]string{}
	for i := range obs.generated {
		if m := &obs.generated[i]; m.Labels[hyperv1.NTOGeneratedMachineConfigLabel] != "" {
			generated[m.Name] = m.Data
		}
	}
	content, err := json.Marshal([]any{obs.userConfig, obs.tuningConfig, generated, obs.hc.Status.ControlPlaneEndpoint, obs.hc.Status.Platform,
		ownProxyImage(obs.pool)})
	if err != nil {
		return rolls.Request{}, fmt.Errorf("encoding what is asked for: %w", err)
	}
	return rolls.Request{
		Spec: digestOf(string(specs)), Content: digestOf(string(content)), Generation: fmt.Sprintf("%d.%d", obs.pool.Generation, obs.hc.Generation),
	}, nil
}

// namedInputs are what a hash is computed from, under the names that users know. What may hold credentials, as the address of a proxy may, and what is
// long is there as a digest.
func (p *pass) namedInputs(in rollout.Inputs) map[string]string {
	out := map[string]string{"release": in.Version, "HostedCluster spec.pullSecret": in.PullSecret}
	if in.TrustBundle != "" {
		out["HostedCluster spec.additionalTrustBundle"] = in.TrustBundle
	}
	for _, source := range p.obs.userConfig {
		out["spec.config "+source.Name] = digestOf(source.Data)
	}
	spec := &p.obs.hc.Spec
	if spec.SSHKey.Name != "" {
		out["HostedCluster spec.sshKey"] = spec.SSHKey.Name
	}
	if len(spec.ImageContentSources) > 0 {
		out["HostedCluster spec.imageContentSources"] = digestOf(fmt.Sprintf("%q", spec.ImageContentSources))
	}
	if c := spec.Configuration; c != nil && c.Proxy != nil {
		out["HostedCluster spec.configuration.proxy"] = digestOf(fmt.Sprintf("%q", []string{c.Proxy.HTTPProxy, c.Proxy.HTTPSProxy, c.Proxy.NoProxy, c.Proxy.TrustedCA.Name}))
	}
	if p.payloadRelease() {
		out["machine configuration, with that of the release"] = digestOf(in.Config)
	}
	if in.OSStream != "" {
		out["spec.osImageStream"] = in.OSStream
	}
	return out
}

// digestOf identifies a content.
func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:6])
}
