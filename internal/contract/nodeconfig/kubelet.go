package nodeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
)

// Kubelet is what a KubeletConfig says.
type Kubelet struct {
	// Name of the KubeletConfig.
	Name string
	// Fields of the KubeletConfiguration to set, by their JSON names. Objects replace objects whole.
	Fields map[string]json.RawMessage
	// LogLevel is the kubelet's -v, nil for the default.
	LogLevel *int32
}

type kubeletConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		AutoSizingReserved        *bool                 `json:"autoSizingReserved,omitempty"`
		LogLevel                  *int32                `json:"logLevel,omitempty"`
		MachineConfigPoolSelector *metav1.LabelSelector `json:"machineConfigPoolSelector,omitempty"`
		KubeletConfig             json.RawMessage       `json:"kubeletConfig,omitempty"`
		TLSSecurityProfile        json.RawMessage       `json:"tlsSecurityProfile,omitempty"`
	} `json:"spec"`
	Status json.RawMessage `json:"status,omitempty"`
}

// maxLogLevel is the kubelet's most talkative level that says anything more.
const maxLogLevel = 10

// ownedKubeletFields decide how a machine joins; with another value it would not, or would join as somebody else.
var ownedKubeletFields = []string{
	"address", "authentication", "authorization", "cgroupDriver", "clusterDNS", "clusterDomain", "containerRuntimeEndpoint",
	"enableServer", "imageServiceEndpoint", "port", "providerID", "readOnlyPort", "registerNode", "registerWithTaints",
	"rotateCertificates", "serverTLSBootstrap", "staticPodPath", "staticPodURL", "staticPodURLHeader", "tlsCertFile",
	"tlsPrivateKeyFile", "volumePluginDir",
}

func (c *Config) kubelet(i item, target Target) error {
	kc := kubeletConfig{}
	if err := i.decode(&kc); err != nil {
		return err
	}
	if c.Kubelet != nil {
		return conflict(item{kind: KindKubeletConfig, name: c.Kubelet.Name}, "is another KubeletConfig: write one")
	}
	c.Kubelet = &Kubelet{Name: i.name, LogLevel: kc.Spec.LogLevel, Fields: map[string]json.RawMessage{}}
	if level := kc.Spec.LogLevel; level != nil && (*level < 0 || *level > maxLogLevel) {
		return fmt.Errorf("spec.logLevel is %d: write 0 to %d", *level, maxLogLevel)
	}
	if raw := bytes.TrimSpace(kc.Spec.KubeletConfig); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		typed := kubeletv1.KubeletConfiguration{}
		if err := strictJSON(raw, &typed); err != nil {
			return fmt.Errorf("spec.kubeletConfig is not a KubeletConfiguration: %w", err)
		}
		if err := json.Unmarshal(raw, &c.Kubelet.Fields); err != nil {
			return fmt.Errorf("spec.kubeletConfig: %w", brief(err))
		}
		if err := checkKubelet(c.Kubelet.Fields, &typed); err != nil {
			return fmt.Errorf("spec.kubeletConfig.%w", err)
		}
	}
	if !target.Kubernetes {
		return nil
	}
	switch {
	case kc.Spec.AutoSizingReserved != nil && *kc.Spec.AutoSizingReserved:
		return errors.New("spec.autoSizingReserved is not supported with Kubernetes releases: set spec.kubeletConfig.systemReserved")
	case !isNull(kc.Spec.TLSSecurityProfile):
		return errors.New("spec.tlsSecurityProfile is not supported with Kubernetes releases: set spec.kubeletConfig.tlsMinVersion and tlsCipherSuites")
	}
	delete(c.Kubelet.Fields, "apiVersion")
	delete(c.Kubelet.Fields, "kind")
	for _, name := range ownedKubeletFields {
		if _, ok := c.Kubelet.Fields[name]; ok {
			return fmt.Errorf("spec.kubeletConfig.%s cannot be set: machines need the value that they get to join; remove it", name)
		}
	}
	return nil
}

// checkKubelet refuses values with which the kubelet would not start, as far as they are easy to tell. A kubelet that does not start
// would only show as a node that never comes.
func checkKubelet(fields map[string]json.RawMessage, k *kubeletv1.KubeletConfiguration) error {
	if k.Kind != "" && k.Kind != "KubeletConfiguration" {
		return fmt.Errorf("kind is %q: write KubeletConfiguration, or leave it out", shorten(k.Kind))
	}
	if want := kubeletv1.SchemeGroupVersion.String(); k.APIVersion != "" && k.APIVersion != want {
		return fmt.Errorf("apiVersion is %q: write %s, or leave it out", shorten(k.APIVersion), want)
	}
	if _, ok := fields["maxPods"]; ok && k.MaxPods < 0 {
		return fmt.Errorf("maxPods is %d: it must not be negative", k.MaxPods)
	}
	for name, p := range map[string]*int32{"imageGCHighThresholdPercent": k.ImageGCHighThresholdPercent, "imageGCLowThresholdPercent": k.ImageGCLowThresholdPercent} {
		if p != nil && (*p < 0 || *p > 100) {
			return fmt.Errorf("%s is %d: write 0 to 100", name, *p)
		}
	}
	for _, name := range []string{"systemReserved", "kubeReserved"} {
		reserved := map[string]map[string]string{"systemReserved": k.SystemReserved, "kubeReserved": k.KubeReserved}[name]
		for _, key := range sortedKeys(reserved) {
			if _, err := resource.ParseQuantity(reserved[key]); err != nil {
				return fmt.Errorf("%s.%s is %q, which is no quantity such as 500m or 1Gi", name, shorten(key), shorten(reserved[key]))
			}
		}
	}
	return nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
