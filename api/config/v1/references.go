package v1

// SecretNameReference names a Secret; the field that holds it says in which namespace, and what it must hold.
type SecretNameReference struct {
	// name is the name of the Secret.
	//
	// +required
	Name string `json:"name"`
}

// ConfigMapNameReference names a ConfigMap; the field that holds it says in which namespace, and what it must hold.
type ConfigMapNameReference struct {
	// name is the name of the ConfigMap.
	//
	// +required
	Name string `json:"name"`
}
