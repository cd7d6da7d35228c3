package nodepool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/nodepool/machines"
)

// retirement is how long the token of a configuration is good after the last machine could have been made from it: one that was made just
// before still boots.
const retirement = 2 * time.Hour

// secretPatch are single keys and annotations of a token Secret to set; nil removes one. The Secret has other writers, too.
type secretPatch struct {
	name        string
	data        map[string][]byte
	annotations map[string]*string
}

func (s secretPatch) empty() bool { return len(s.data) == 0 && len(s.annotations) == 0 }

// body is the merge patch.
func (s secretPatch) body() ([]byte, error) {
	patch := map[string]any{}
	if len(s.data) > 0 {
		patch["data"] = s.data // bytes become base64, nil becomes null
	}
	if len(s.annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": s.annotations}
	}
	return json.Marshal(patch)
}

// tokenSecret is that of a hash, nil when there is none.
func (p *pass) tokenSecret(hash string) *corev1.Secret {
	return p.secret(token.Name(p.obs.pool.Name, hash))
}

func (p *pass) secret(name string) *corev1.Secret {
	for i := range p.obs.secrets {
		if s := &p.obs.secrets[i]; s.Name == name && s.DeletionTimestamp.IsZero() {
			return s
		}
	}
	return nil
}

// content is what the token Secret of the target says.
func (p *pass) content() token.Content {
	obs, spec := p.obs, p.spec()
	_, restored := obs.hc.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation]
	c := token.Content{
		Namespace: obs.namespace, Pool: obs.pool.Name, Hash: p.target.hash, PoolKey: keyOf(obs.pool), UpgradeType: spec.Management.UpgradeType,
		Release: obs.release.Image, Version: obs.release.Version, Config: []byte(p.target.encoded),
		PullSecretHash: token.ContentHash(obs.pullSecret), TrustBundleHash: token.ContentHash(obs.trustBundle),
		NodeLabels: spec.NodeLabels, Taints: machines.Taints(spec.Taints), Reached: restored,
	}
	if !obs.release.Kubernetes {
		c.OSStream = spec.OSImageStream.Name // the other machines boot the image of their platform
	}
	c.ClusterConfigHash = token.ConfigurationHash(obs.hc.Spec.Configuration)
	return c
}

// secrets makes the two Secrets of the target, and keeps those of all configurations that machines can still be made from.
func (p *pass) secrets() bool {
	content := p.content()
	digest := token.ContentHash([]byte(p.target.config))
	if p.tokenSecret(p.target.hash) == nil {
		p.createToken = token.New(content, p.token, p.now)
		p.createToken.Labels = ownLabels()
		p.createToken.Annotations[contentAnnotation] = digest
	}
	for _, hash := range slices.Sorted(maps.Keys(p.liveHashes())) {
		secret, value := p.tokenSecret(hash), p.token
		if secret == nil && hash != p.target.hash {
			continue // the ignition server has removed it; nothing new can be said for an old configuration
		}
		if secret != nil {
			value = string(secret.Data[token.TokenKey])
			p.refresh(secret, content, hash == p.target.hash, digest)
		}
		if !p.userData(hash, value) {
			return false
		}
	}
	return true
}

// refresh lets a token Secret follow the world.
func (p *pass) refresh(secret *corev1.Secret, content token.Content, current bool, digest string) {
	patch := secretPatch{name: secret.Name, data: map[string][]byte{}, annotations: map[string]*string{}}
	want := token.Refreshed(content)
	want[token.PullSecretHashKey], want[token.TrustBundleHashKey] = []byte(content.PullSecretHash), []byte(content.TrustBundleHash)
	for _, key := range []string{token.ClusterConfigKey, token.CloudConfigKey, token.PullSecretHashKey, token.TrustBundleHashKey, token.NodeLabelsKey, token.NodeTaintsKey} {
		have, found := secret.Data[key]
		value, wanted := want[key]
		switch {
		case wanted && (!found || !bytes.Equal(have, value)):
			patch.data[key] = nonNil(value)
		case !wanted && found:
			patch.data[key] = nil
		}
	}
	if current && secret.Annotations[contentAnnotation] != digest {
		patch.data[token.ConfigKey] = content.Config
		patch.annotations[contentAnnotation] = &digest
	}
	if _, expiring := secret.Annotations[hyperv1.TokenSecretExpirationTimestampAnnotation]; expiring {
		patch.annotations[hyperv1.TokenSecretExpirationTimestampAnnotation] = nil
	}
	if !patch.empty() {
		p.patches = append(p.patches, patch)
	}
}

// nonNil keeps an empty value from being taken for none.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// userData makes what machines of a hash boot with.
func (p *pass) userData(hash, value string) bool {
	obs := p.obs
	u := token.UserData{
		Namespace: obs.namespace, Pool: obs.pool.Name, Hash: hash, PoolKey: keyOf(obs.pool),
		Endpoint: obs.hc.Status.IgnitionEndpoint, CA: obs.ignitionCA, Token: value,
	}
	if c := obs.hc.Spec.Configuration; c != nil && c.Proxy != nil {
		u.HTTPProxy, u.HTTPSProxy = c.Proxy.HTTPProxy, c.Proxy.HTTPSProxy
		u.NoProxy = noProxy(obs.hc)
	}
	secret, err := u.Secret()
	if err != nil {
		p.err = fmt.Errorf("making user data: %w", err)
		return false
	}
	secret.Labels = ownLabels()
	p.apply = append(p.apply, secret)
	return true
}

// liveHashes are those that machines can be made from: the target, and what MachineSets refer to.
func (p *pass) liveHashes() map[string]bool {
	live := map[string]bool{p.target.hash: true}
	for _, t := range p.liveTemplates() {
		if t.Spec.Bootstrap.DataSecretName == nil {
			continue
		}
		if hash, ok := token.HashOf(p.obs.pool.Name, *t.Spec.Bootstrap.DataSecretName); ok {
			live[hash] = true
		}
	}
	return live
}

// retire ends what no machine can be made from any more: user data at once, tokens after a time for machines that are just booting.
func (p *pass) retire() {
	live := p.liveHashes()
	for i := range p.obs.secrets {
		s := &p.obs.secrets[i]
		hash, ok := token.HashOf(p.obs.pool.Name, s.Name)
		if !ok || live[hash] || !s.DeletionTimestamp.IsZero() {
			continue
		}
		if s.Annotations[hyperv1.TokenSecretAnnotation] != "true" {
			if !p.obs.platform.Traits().KeepUserData {
				p.delete = append(p.delete, s)
			}
			continue
		}
		if _, expiring := s.Annotations[hyperv1.TokenSecretExpirationTimestampAnnotation]; !expiring {
			at := p.now.Add(retirement).UTC().Format(time.RFC3339)
			p.patches = append(p.patches, secretPatch{name: s.Name, annotations: map[string]*string{hyperv1.TokenSecretExpirationTimestampAnnotation: &at}})
		}
	}
}

// reached tells that a machine has fetched the configuration of the target. Machines that are changed in place have done so once for all.
func (p *pass) reached() bool {
	if s := p.tokenSecret(p.target.hash); s != nil && s.Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] == token.ReachedValue {
		return true
	}
	c := findCondition(p.obs.pool.Status.Conditions, hyperv1.NodePoolReachedIgnitionEndpoint)
	return p.inPlace() && c != nil && c.Status == corev1.ConditionTrue
}

// payload reports what the ignition server says of the target.
func (p *pass) payload() {
	const generated, reached = hyperv1.NodePoolValidGeneratedPayloadConditionType, hyperv1.NodePoolReachedIgnitionEndpoint
	if p.target.hash == "" {
		return
	}
	secret := p.tokenSecret(p.target.hash)
	if secret == nil {
		missing := fmt.Sprintf("Secret %s does not exist yet", token.Name(p.obs.pool.Name, p.target.hash))
		p.set(bad(generated, hyperv1.NodePoolNotFoundReason, missing))
		if p.reached() {
			p.set(good(reached))
		} else {
			p.set(bad(reached, hyperv1.NodePoolNotFoundReason, missing))
		}
		return
	}
	switch reason, message := string(secret.Data[token.ReasonKey]), string(secret.Data[token.MessageKey]); reason {
	case "":
		p.set(condition(generated, corev1.ConditionUnknown, hyperv1.StatusUnknownReason, "the ignition server has not generated the configuration of machines yet"))
	case hyperv1.AsExpectedReason:
		p.set(condition(generated, corev1.ConditionTrue, hyperv1.AsExpectedReason, "Payload generated successfully"))
	default:
		p.set(bad(generated, reason, message))
	}
	if p.reached() {
		p.set(good(reached))
		return
	}
	p.set(bad(reached, hyperv1.NodePoolIgnitionNotReachedReason, "no machine has fetched this configuration yet"))
}

// noProxy are the destinations that machines reach directly: the user's, and the cluster's own networks.
func noProxy(hc *hyperv1.HostedCluster) []string {
	var list []string
	for host := range splitComma(hc.Spec.Configuration.Proxy.NoProxy) {
		list = append(list, host)
	}
	for _, n := range hc.Spec.Networking.ClusterNetwork {
		list = append(list, string(n.CIDR))
	}
	for _, n := range hc.Spec.Networking.ServiceNetwork {
		list = append(list, string(n.CIDR))
	}
	return list
}
