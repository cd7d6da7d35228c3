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

// AdminKubeconfigName is the name of the published Secret with the kubeconfig of an administrator.
func AdminKubeconfigName(hcName string) string { return hcName + "-admin-kubeconfig" }

// CustomKubeconfigName is that of the kubeconfig for the name that the user chose for the API server.
func CustomKubeconfigName(hcName string) string { return hcName + "-custom-admin-kubeconfig" }

// KubeadminPasswordName is that of the first administrator's password.
func KubeadminPasswordName(hcName string) string { return hcName + "-kubeadmin-password" }
