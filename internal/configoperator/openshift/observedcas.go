package openshift

import (
	"k8s.io/client-go/util/cert"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// observedAuthorities copy those of the hosted cluster to the control plane, which trusts them: what signs certificates of Services, and of Routes.
func observedAuthorities(in Input) ([]Action, error) {
	var actions []Action
	for _, o := range []struct {
		from, to, key string
		when          bool
	}{
		{serviceCA, "service-serving-ca", "service-ca.crt", true},
		{ingressCA, "observed-default-ingress-cert", "ca.crt", in.has(hyperv1.IngressCapability)},
	} {
		if !o.when {
			continue
		}
		bundle := text(in.Hosted.Objects["ConfigMap "+managedConfig+"/"+o.from], "data", names.CABundleKey)
		if !isBundle(bundle) {
			continue // what was copied before stays: the control plane would lose its trust by a slip of the hosted cluster
		}
		cm := configMap(in.HCP.Namespace, o.to, map[string]string{o.key: bundle})
		owned(cm, in)
		actions = append(actions, Action{Do: Apply, Object: cm, Management: true})
	}
	return actions, nil
}

// isBundle says whether a text is at least one certificate, and no more than a bundle has.
func isBundle(text string) bool {
	if len(text) == 0 || len(text) > maxObserved {
		return false
	}
	certificates, err := cert.ParseCertsPEM([]byte(text))
	return err == nil && len(certificates) > 0
}
