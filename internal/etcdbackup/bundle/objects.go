package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Objects are what a hosted cluster is made again from, beside the data of its etcd.
type Objects struct {
	HostedCluster *hyperv1.HostedCluster `json:"hostedCluster"`
	NodePools     []hyperv1.NodePool     `json:"nodePools,omitempty"`
	// Secrets and ConfigMaps are those of the HostedCluster's namespace that it and its NodePools name.
	Secrets    []corev1.Secret    `json:"secrets,omitempty"`
	ConfigMaps []corev1.ConfigMap `json:"configMaps,omitempty"`
	// Authorities are the Secrets of the control plane that nobody could make again: certificate authorities, the key of service accounts.
	Authorities []corev1.Secret `json:"authorities,omitempty"`
	// Machines are the objects of Cluster API, as a record of which machines there were.
	Machines []unstructured.Unstructured `json:"machines,omitempty"`
	// NoMachines: there were some, and there was no room for them.
	NoMachines bool `json:"noMachines,omitempty"`
}

// ErrTooLarge says that a backup can't hold the objects.
var ErrTooLarge = errors.New("the objects of the cluster are too large for a backup")

// WithoutMachines are the objects that nothing can do without.
func (o Objects) WithoutMachines() Objects {
	o.Machines, o.NoMachines = nil, true
	return o
}

// Seal encodes, packs and seals the objects. What would not fit into a Secret, or what no restore would unpack, is ErrTooLarge.
func (o Objects) Seal(k Key, random io.Reader) ([]byte, error) {
	plain, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding the objects: %w", err)
	}
	if len(plain) > maxPlainObjects {
		return nil, fmt.Errorf("%w: they have %d bytes, and at most %d can be restored: %s", ErrTooLarge, len(plain), maxPlainObjects, makeRoom)
	}
	packed, err := Pack(plain)
	if err != nil {
		return nil, fmt.Errorf("packing the objects: %w", err)
	}
	r, err := k.Seal(bytes.NewReader(packed), random)
	if err != nil {
		return nil, err
	}
	sealed, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("sealing the objects: %w", err)
	}
	if len(sealed) > MaxObjects {
		return nil, fmt.Errorf("%w: they have %d bytes when they are packed, and at most %d are stored: %s", ErrTooLarge, len(sealed), MaxObjects, makeRoom)
	}
	return sealed, nil
}

const makeRoom = "make the ConfigMaps and Secrets that the HostedCluster and its NodePools name smaller or fewer"

// DecodeObjects reads what ReadObjects has opened.
func DecodeObjects(packed []byte) (Objects, error) {
	plain, err := Unpack(packed)
	if err != nil {
		return Objects{}, err
	}
	o := Objects{}
	if err := json.Unmarshal(plain, &o); err != nil {
		return o, fmt.Errorf("decoding the objects: %w", err)
	}
	if o.HostedCluster == nil {
		return o, fmt.Errorf("the objects of the backup have no HostedCluster")
	}
	return o, nil
}
