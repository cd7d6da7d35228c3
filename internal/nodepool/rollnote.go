package nodepool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/nodepool/rollout"
)

// noteRoll notes on the NodePool what machines are made from when that changes, so that somebody who asks why they were replaced can be told which
// input it was. It says nothing while a rollout is held: machines are still what they were.
func (p *pass) noteRoll() {
	if p.held != "" {
		return
	}
	if p.target.template != "" {
		p.target.inputs["spec.platform, as machine template"] = p.target.template
	}
	before, known := rolls.Parse(p.obs.pool.Annotations[hyperv1.NodePoolRollsAnnotation])
	// The name of the template stands for its content, as the hash does for the rest.
	note, changed := rolls.Next(before, known, p.target.hash+"/"+p.target.template, p.target.inputs, p.now)
	if !changed {
		return
	}
	text, err := note.Text()
	if err != nil {
		p.err = err
		return
	}
	p.notes()[hyperv1.NodePoolRollsAnnotation] = text
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
