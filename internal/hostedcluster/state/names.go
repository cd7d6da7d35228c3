package state

// MonitoringLabel lets an observability operator find control-plane namespaces.
const MonitoringLabel = "hypershift.openshift.io/monitoring"

// Labels of the control-plane-operator's image that switch behaviour here.
const (
	LabelCustomKubeconfig = "io.openshift.hypershift.control-plane-operator-supports-kas-custom-kubeconfig"
)

// Keys of Secrets that are published.
const (
	KubeconfigKey = "kubeconfig"
	PasswordKey   = "password"
)

func AdminKubeconfigName(hcName string) string { return hcName + "-admin-kubeconfig" }

func CustomKubeconfigName(hcName string) string { return hcName + "-custom-admin-kubeconfig" }

func KubeadminPasswordName(hcName string) string { return hcName + "-kubeadmin-password" }
