package pki

// NamesOf are the Secrets and ConfigMaps that this package keeps for any control plane with these shards of etcd, whatever else is in its specification:
// nobody else may have objects of these names.
func NamesOf(infraID string, shards []string) (secrets, configMaps []string) {
	s := Spec{
		Namespace: "any", Name: "any", InfraID: infraID, APIHost: "api.example.com", CustomAPIHost: "custom.example.com", AdvertiseAddress: "172.20.0.1",
		IgnitionServer: true, EtcdShards: shards, Payload: &Payload{OAuth: true, IngressAuthority: true, OAuthHost: "oauth.example.com", MetricsForwarding: true, MetricsHost: "metrics.example.com"},
	}
	secrets, configMaps = s.secretNames(), s.configMapNames()
	s.Payload = nil // for kubeconfigs, which components of payloads bring themselves
	return append(secrets, s.secretNames()...), configMaps
}
