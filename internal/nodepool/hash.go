package nodepool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/nodepool/rollout"
)

// global are the settings of the HostedCluster that machines read. A field that is not set leaves no trace, so that fields added later change no
// hash. Nothing may be here that does not change what a machine boots with, or it would be replaced for nothing.
type global struct {
	Proxy          *configv1.ProxySpec          `json:"proxy,omitempty"`
	ContentSources []hyperv1.ImageContentSource `json:"imageContentSources,omitempty"`
	SSHKey         string                       `json:"sshKey,omitempty"`
}

// formerGlobal is what older operators had in the place of global.
type formerGlobal struct {
	Proxy          *configv1.ProxySpec          `json:"proxy,omitempty"`
	Image          *configv1.ImageSpec          `json:"image,omitempty"`
	TLSProfile     any                          `json:"tlsSecurityProfile,omitempty"`
	ContentSources []hyperv1.ImageContentSource `json:"imageContentSources,omitempty"`
	SSHKey         string                       `json:"sshKey,omitempty"`
	FIPS           bool                         `json:"fips,omitempty"`
}

func inputsOf(obs *observed, config string) (rollout.Inputs, error) {
	g := global{ContentSources: obs.hc.Spec.ImageContentSources, SSHKey: obs.hc.Spec.SSHKey.Name}
	if c := obs.hc.Spec.Configuration; c != nil && c.Proxy != nil {
		read := c.Proxy.DeepCopy()
		read.ReadinessEndpoints = nil
		if read.HTTPProxy+read.HTTPSProxy+read.NoProxy+read.TrustedCA.Name != "" {
			g.Proxy = read
		}
	}
	settings, err := canonical(g)
	in := rollout.Inputs{Version: obs.release.Version, Config: config, PullSecret: obs.hc.Spec.PullSecret.Name, Global: settings}
	if ref := obs.hc.Spec.AdditionalTrustBundle; ref != nil {
		in.TrustBundle = ref.Name
	}
	return in, err
}

// formerInputs are those that an older operator hashes for the same objects.
func formerInputs(obs *observed, in rollout.Inputs) (rollout.Inputs, error) {
	g := formerGlobal{ContentSources: obs.hc.Spec.ImageContentSources, SSHKey: obs.hc.Spec.SSHKey.Name, FIPS: obs.hc.Spec.FIPS}
	if c := obs.hc.Spec.Configuration; c != nil {
		g.Proxy, g.Image = c.Proxy, c.Image
		if c.APIServer != nil && c.APIServer.TLSSecurityProfile != nil {
			g.TLSProfile = c.APIServer.TLSSecurityProfile
		}
	}
	var err error
	in.Global, err = canonical(g)
	in.OSStream = obs.pool.Spec.OSImageStream.Name
	return in, err
}

func canonical(settings any) (string, error) {
	raw, err := json.Marshal(settings)
	if err != nil || string(raw) == "{}" {
		return "", err
	}
	return string(raw), nil
}

// nameTarget finds the hashes of what machines are to be. Machines of an older operator have hashes of more than they read. While nothing that they
// read has changed, they keep those: the pair of both is noted on the NodePool, and from then on what they do not read may change.
func (p *pass) nameTarget(in, old rollout.Inputs) {
	aliases := readAliases(p.obs.pool.Annotations[hyperv1.NodePoolConfigAliasAnnotation])
	name := func(hash, former string, known bool) string {
		if alias, ok := aliases[hash]; ok {
			return alias
		}
		if former != hash && known {
			aliases[hash] = former
			return former
		}
		return hash
	}
	p.target.hash = name(in.Hash(), old.Hash(), p.hasHash(old.Hash()))
	p.target.configHash = name(in.ConfigHash(), old.ConfigHash(), p.obs.pool.Annotations[hyperv1.NodePoolCurrentConfigAnnotation] == old.ConfigHash() || p.target.hash == old.Hash())
	used := map[string]string{}
	for _, hash := range []string{in.Hash(), in.ConfigHash()} {
		if alias, ok := aliases[hash]; ok {
			used[hash] = alias
		}
	}
	if text := writeAliases(used); text != "" && text != p.obs.pool.Annotations[hyperv1.NodePoolConfigAliasAnnotation] {
		p.annotations = map[string]string{hyperv1.NodePoolConfigAliasAnnotation: text}
	}
}

// hasHash tells whether machines of the pool bear a hash, or are about to.
func (p *pass) hasHash(hash string) bool {
	return p.obs.pool.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] == hash ||
		slices.ContainsFunc(p.obs.secrets, func(s corev1.Secret) bool {
			have, ok := token.HashOf(p.obs.pool.Name, s.Name)
			return ok && have == hash
		})
}

func readAliases(text string) map[string]string {
	aliases := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if hash, alias, ok := strings.Cut(pair, "="); ok {
			aliases[hash] = alias
		}
	}
	return aliases
}

func writeAliases(aliases map[string]string) string {
	var pairs []string
	for hash, alias := range aliases {
		pairs = append(pairs, fmt.Sprintf("%s=%s", hash, alias))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
