package server

// Command is what to type, and what for.
type Command struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// Commands are what people do next with a hosted cluster. Names of Kubernetes need no quotes in a shell.
func Commands(namespace, name string) []Command {
	of := name + " -n " + namespace
	return []Command{
		{"Get a kubeconfig", "hypershift create kubeconfig " + of + " --output-file " + name + ".kubeconfig"},
		{"Run a command in it", "hypershift connect " + of + " -- kubectl get nodes"},
		{"Describe it", "hypershift describe " + of},
		{"Its past", "hypershift timeline " + of},
		{"Logs of its API server", "hypershift logs kube-apiserver --cluster " + of},
		{"When its certificates end", "hypershift get certificates " + of},
		{"Collect all for support", "hypershift dump cluster --name " + of + " --artifact-dir " + name + "-dump"},
		{"Stop its control plane and workers", "hypershift hibernate " + of},
	}
}
