package nodeconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Runtime is what a ContainerRuntimeConfig says, as containerd and the kubelet can do it.
type Runtime struct {
	// Name of the ContainerRuntimeConfig.
	Name string
	// LogLevel of containerd; empty for the default.
	LogLevel string
	// PidsLimit of a pod; nil for the default, -1 for none.
	PidsLimit *int64
	// LogSizeMax of a container's log file; nil for the default.
	LogSizeMax *resource.Quantity
}

type containerRuntimeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		MachineConfigPoolSelector *metav1.LabelSelector `json:"machineConfigPoolSelector,omitempty"`
		ContainerRuntimeConfig    *struct {
			PidsLimit      *int64             `json:"pidsLimit,omitempty"`
			LogLevel       string             `json:"logLevel,omitempty"`
			LogSizeMax     *resource.Quantity `json:"logSizeMax,omitempty"`
			OverlaySize    *resource.Quantity `json:"overlaySize,omitempty"`
			DefaultRuntime string             `json:"defaultRuntime,omitempty"`
		} `json:"containerRuntimeConfig,omitempty"`
	} `json:"spec"`
	Status any `json:"status,omitempty"`
}

// logLevels that the kind knows; containerd knows them too.
var logLevels = []string{"fatal", "panic", "error", "warn", "info", "debug", "trace"}

// minLogSize is what the kind asks for.
var minLogSize = resource.MustParse("8Ki")

func (c *Config) runtime(i item, target Target) error {
	crc := containerRuntimeConfig{}
	if err := i.decode(&crc); err != nil {
		return err
	}
	if c.Runtime != nil {
		return conflict(item{kind: KindContainerRuntimeConfig, name: c.Runtime.Name}, "is another ContainerRuntimeConfig: write one")
	}
	c.Runtime = &Runtime{Name: i.name}
	r := crc.Spec.ContainerRuntimeConfig
	if r == nil {
		return nil
	}
	c.Runtime.LogLevel, c.Runtime.PidsLimit, c.Runtime.LogSizeMax = r.LogLevel, r.PidsLimit, r.LogSizeMax
	const at = "spec.containerRuntimeConfig."
	switch {
	case r.LogLevel != "" && !slices.Contains(logLevels, r.LogLevel):
		return fmt.Errorf(at+"logLevel is %q: write one of %s", shorten(r.LogLevel), strings.Join(logLevels, ", "))
	case r.PidsLimit != nil && *r.PidsLimit != -1 && *r.PidsLimit < 20:
		return fmt.Errorf(at+"pidsLimit is %d: write at least 20, or -1 for no limit", *r.PidsLimit)
	case r.LogSizeMax != nil && r.LogSizeMax.Sign() > 0 && r.LogSizeMax.Cmp(minLogSize) < 0:
		return fmt.Errorf(at+"logSizeMax is %s: write at least %s", r.LogSizeMax, &minLogSize)
	case r.DefaultRuntime != "" && r.DefaultRuntime != "runc" && r.DefaultRuntime != "crun":
		return fmt.Errorf(at+"defaultRuntime is %q: write runc or crun", shorten(r.DefaultRuntime))
	}
	if !target.Kubernetes {
		return nil
	}
	switch {
	case r.OverlaySize != nil && !r.OverlaySize.IsZero():
		return errors.New(at + "overlaySize is not supported with Kubernetes releases: limit ephemeral-storage of the pods instead")
	case r.DefaultRuntime == "crun":
		return errors.New(at + "defaultRuntime crun is not supported with Kubernetes releases: machines have runc")
	}
	if r.LogSizeMax != nil && r.LogSizeMax.Sign() <= 0 {
		c.Runtime.LogSizeMax = nil // means the default
	}
	return nil
}
