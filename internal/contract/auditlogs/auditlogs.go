// Package auditlogs is what the hypershift-operator and control-plane-operators agree on about audit logs that outlive their Pods: the hypershift-operator writes
// an annotation on the HostedControlPlane, and the control-plane-operator gives kube-apiserver volumes by it.
package auditlogs

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// SettingsAnnotation on a HostedControlPlane has Settings as JSON. Without it, logs go with their Pods.
	SettingsAnnotation = "hypershift.openshift.io/audit-log-persistence"
	// ClaimLabel is on the claims of audit logs; its value is the component that writes them.
	ClaimLabel = "hypershift.openshift.io/audit-logs"
	// Volume is the name of the volume in Pods of kube-apiserver. The claim of a Pod is named after both, see Claim.
	Volume = "logs"

	maxSettings = 4 << 10
)

// Settings are what a control plane needs to know.
type Settings struct {
	// Size of each volume, as a quantity.
	Size string `json:"size"`
	// StorageClass of the volumes; empty: the default of the management cluster.
	StorageClass string `json:"storageClass,omitempty"`
	// MaxSize is how many megabytes a file has before it is rotated, and MaxBackup how many old files are kept beside it.
	MaxSize   int32 `json:"maxSize"`
	MaxBackup int32 `json:"maxBackup"`
}

// Encode makes the annotation's value.
func (s Settings) Encode() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers can be encoded
	}
	return string(raw)
}

// Parse reads the annotation; nil when there is none. An error names it.
func Parse(annotations map[string]string) (*Settings, error) {
	text := annotations[SettingsAnnotation]
	if text == "" {
		return nil, nil
	}
	s := &Settings{}
	if len(text) > maxSettings {
		return nil, fmt.Errorf("annotation %s is longer than %d bytes", SettingsAnnotation, maxSettings)
	}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", SettingsAnnotation, err)
	}
	if size, err := resource.ParseQuantity(s.Size); err != nil || size.Sign() <= 0 || s.MaxSize < 1 || s.MaxBackup < 1 {
		return nil, fmt.Errorf("annotation %s is %q: size must be a positive quantity, maxSize and maxBackup at least 1", SettingsAnnotation, text)
	}
	return s, nil
}

// Source is the volume: each Pod has a claim of its own, made with it. What keeps the claim beyond the Pod is the hypershift-operator.
func (s Settings) Source(component string) corev1.VolumeSource {
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s.Size)}},
	}
	if s.StorageClass != "" {
		claim.StorageClassName = &s.StorageClass
	}
	return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ClaimLabel: component}}, Spec: claim,
	}}}
}

// Claim is the name of a Pod's claim, as Kubernetes makes it of the names of Pod and volume.
func Claim(pod string) string { return pod + "-" + Volume }
