package component

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServiceAccountKubeconfig asks for a kubeconfig that acts as a ServiceAccount of the hosted cluster, by a client
// certificate. It is kept in Secret <component>-service-account-kubeconfig (kubeconfig, ca.crt, tls.crt, tls.key).
type ServiceAccountKubeconfig struct {
	// Name and Namespace are those of the ServiceAccount.
	Name, Namespace string
	// MountPath is where the containers find the Secret.
	MountPath string
	// ContainerName limits that to one container. Empty means all.
	ContainerName string
}

const (
	kubeconfigVolume = "service-account-kubeconfig"

	rootCA = "root-ca" // ConfigMap, key caKey
	caKey  = "ca.crt"
)

func kubeconfigSecret(component string) string { return component + "-service-account-kubeconfig" }

// wanted says whether the Secret is made: not when the user keeps the certificates of the cluster by himself. It is mounted all the same.
func (k *ServiceAccountKubeconfig) wanted(ctx WorkloadContext) bool {
	if k == nil {
		return false
	}
	_, disabled := ctx.HCP.Annotations[disablePKIAnnotation]
	return !disabled
}

// subject is who a ServiceAccount is to the API server.
func (k *ServiceAccountKubeconfig) subject() Subject {
	return Subject{
		CommonName:    "system:serviceaccount:" + k.Namespace + ":" + k.Name,
		Organizations: []string{"system:serviceaccounts", "system:serviceaccounts:" + k.Namespace},
	}
}

func (k *ServiceAccountKubeconfig) render(ctx WorkloadContext, component string) (*corev1.Secret, error) {
	if ctx.Unsigned {
		return k.secret(ctx, component, nil), nil
	}
	if ctx.Signer == nil {
		return nil, fmt.Errorf("no signer for the certificate of %s/%s", k.Namespace, k.Name)
	}
	name := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: kubeconfigSecret(component)}
	existing := &corev1.Secret{}
	if err := ctx.Reader.Get(ctx.Context, name, existing); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Secret %s: %w", name.Name, err)
	}
	bundle := &corev1.ConfigMap{}
	if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: rootCA}, bundle); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", rootCA, err)
	}
	ca := []byte(bundle.Data[caKey])
	cert, key, err := ctx.Signer.ClientCertificate(ctx.Context, ctx.HCP, k.subject(), existing.Data)
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate of %s/%s: %w", k.Namespace, k.Name, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: InClusterURL(ctx.HCP), CertificateAuthorityData: ca}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["admin"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "admin", Namespace: "default"}
	config.CurrentContext = "admin"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s/%s: %w", k.Namespace, k.Name, err)
	}
	return k.secret(ctx, component, map[string][]byte{
		"kubeconfig": raw, caKey: ca, corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key,
	}), nil
}

func (*ServiceAccountKubeconfig) secret(ctx WorkloadContext, component string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: kubeconfigSecret(component), Namespace: ctx.HCP.Namespace},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// mount gives the containers the Secret.
func (k *ServiceAccountKubeconfig) mount(component string, pod *corev1.PodSpec) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: kubeconfigVolume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: kubeconfigSecret(component), DefaultMode: ptr.To(secretMode)},
	}})
	for i := range pod.Containers {
		if k.ContainerName == "" || pod.Containers[i].Name == k.ContainerName {
			pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts,
				corev1.VolumeMount{Name: kubeconfigVolume, MountPath: k.MountPath})
		}
	}
}
