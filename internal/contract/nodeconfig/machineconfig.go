package nodeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_2"
	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	newest "github.com/coreos/ignition/v2/config/v3_5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PayloadVersion is the Ignition version of payloads. Older configurations are translated to it, newer ones are if they use nothing
// that it lacks.
const PayloadVersion = "3.2.0"

// machineConfig is the kind as far as it is known here.
type machineConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Config                         json.RawMessage `json:"config,omitempty"`
		OSImageURL                     string          `json:"osImageURL,omitempty"`
		BaseOSExtensionsContainerImage string          `json:"baseOSExtensionsContainerImage,omitempty"`
		KernelArguments                []string        `json:"kernelArguments,omitempty"`
		KernelType                     string          `json:"kernelType,omitempty"`
		Extensions                     []string        `json:"extensions,omitempty"`
		FIPS                           bool            `json:"fips,omitempty"`
	} `json:"spec"`
}

// machineConfig adds the item to what is merged.
func (m *merger) machineConfig(i item, target Target) error {
	mc := machineConfig{}
	if err := i.decode(&mc); err != nil {
		return err
	}
	cfg, err := parseIgnition(mc.Spec.Config)
	if err != nil || !target.Kubernetes {
		return err
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"osImageURL", mc.Spec.OSImageURL != ""},
		{"baseOSExtensionsContainerImage", mc.Spec.BaseOSExtensionsContainerImage != ""},
		{"kernelArguments", len(mc.Spec.KernelArguments) > 0},
		{"kernelType", mc.Spec.KernelType != "" && mc.Spec.KernelType != "default"},
		{"extensions", len(mc.Spec.Extensions) > 0},
		{"fips", mc.Spec.FIPS},
	} {
		if field.set {
			return fmt.Errorf("spec.%s is not supported with Kubernetes releases: it needs an operating system that the release brings", field.name)
		}
	}
	if err := supported(cfg); err != nil {
		return err
	}
	if target.InPlace {
		if err := supportedInPlace(cfg); err != nil {
			return err
		}
	}
	return m.add(i, cfg)
}

// parseIgnition reads an Ignition configuration of any version 3 as PayloadVersion. Nothing gives an empty configuration.
func parseIgnition(raw []byte) (ignition.Config, error) {
	empty := ignition.Config{Ignition: ignition.Ignition{Version: PayloadVersion}}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) || bytes.Equal(raw, []byte("{}")) {
		return empty, nil
	}
	cfg, report, err := newest.ParseCompatibleVersion(raw)
	if err != nil {
		return empty, fmt.Errorf("spec.config is not a valid Ignition configuration (of version 3.0 to 3.5): %s", join(err, report.String()))
	}
	if report.IsFatal() {
		return empty, fmt.Errorf("spec.config: %s", shorten(oneLine(report.String())))
	}
	cfg.Ignition.Version = PayloadVersion
	text, err := json.Marshal(cfg)
	if err != nil {
		return empty, fmt.Errorf("spec.config: %w", brief(err))
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return empty, fmt.Errorf("spec.config: %w", brief(err))
	}
	if text, err = json.Marshal(prune(tree)); err != nil {
		return empty, fmt.Errorf("spec.config: %w", brief(err))
	}
	out := ignition.Config{}
	if err := strictJSON(text, &out); err != nil {
		return empty, fmt.Errorf("spec.config uses what Ignition %s does not know: %w", PayloadVersion, err)
	}
	if _, report, err := v3_2.Parse(text); err != nil || report.IsFatal() {
		return empty, fmt.Errorf("spec.config is not valid as Ignition %s: %s", PayloadVersion, join(err, report.String()))
	}
	return out, nil
}

// prune drops empty objects and lists from objects: newer versions have more of them, which say nothing.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			value = prune(value)
			if empty(value) {
				delete(v, key)
				continue
			}
			v[key] = value
		}
		return v
	case []any:
		for n := range v {
			v[n] = prune(v[n])
		}
		return v
	}
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func join(err error, report string) string {
	text := oneLine(report)
	if err != nil {
		text = strings.TrimSuffix(err.Error()+": "+text, ": ")
	}
	return shorten(text)
}

// supported refuses the parts of Ignition that payloads do not carry.
func supported(cfg ignition.Config) error {
	switch {
	case len(cfg.Ignition.Config.Merge) > 0 || !isZero(cfg.Ignition.Config.Replace):
		return errors.New("spec.config.ignition.config is not supported: put the content itself into the MachineConfig")
	case !isZero(cfg.Ignition.Proxy), !isZero(cfg.Ignition.Security), !isZero(cfg.Ignition.Timeouts):
		return errors.New("spec.config.ignition may only hold version: proxy, trust and timeouts come from the HostedCluster")
	case len(cfg.Storage.Disks)+len(cfg.Storage.Raid)+len(cfg.Storage.Luks)+len(cfg.Storage.Filesystems) > 0:
		return errors.New("spec.config.storage may only hold files, directories and links: disks, raid, luks and filesystems are not supported")
	case len(cfg.Passwd.Groups) > 0:
		return errors.New("spec.config.passwd.groups is not supported")
	}
	for _, user := range cfg.Passwd.Users {
		if user.Name != CoreUser || !reflect.DeepEqual(bare(user), ignition.PasswdUser{Name: user.Name}) {
			return fmt.Errorf("spec.config.passwd.users: only sshAuthorizedKeys of user %q are supported", CoreUser)
		}
	}
	for n := range cfg.Storage.Files {
		if err := supportedFile(&cfg.Storage.Files[n]); err != nil {
			return err
		}
	}
	return nil
}

// CoreUser is the user that may log in with a key.
const CoreUser = "core"

func bare(user ignition.PasswdUser) ignition.PasswdUser {
	user.SSHAuthorizedKeys = nil
	return user
}

// supportedFile refuses files whose content lies elsewhere: the machine would fetch it while it boots, and a payload's hash would not
// say what a machine runs.
func supportedFile(f *ignition.File) error {
	for _, r := range append([]ignition.Resource{f.Contents}, f.Append...) {
		if r.Source != nil && *r.Source != "" && !strings.HasPrefix(*r.Source, "data:") {
			return fmt.Errorf("file %s: its source must be a data URL", shorten(f.Path))
		}
		if len(r.HTTPHeaders) > 0 {
			return fmt.Errorf("file %s: httpHeaders make no sense with a data URL", shorten(f.Path))
		}
	}
	return nil
}

// supportedInPlace refuses what is appended to a file that the machine brings: every change would append to it once more, or write the file without what was in
// it at first. With contents the whole file is known.
func supportedInPlace(cfg ignition.Config) error {
	for _, f := range cfg.Storage.Files {
		if len(f.Append) > 0 && f.Contents.Source == nil {
			return fmt.Errorf("file %s has append and no contents, which is not supported where machines are changed in place: "+
				"give it contents, or use a NodePool with upgradeType Replace", shorten(f.Path))
		}
	}
	return nil
}

// isZero reports whether nothing is set.
func isZero[T any](v T) bool { return reflect.ValueOf(v).IsZero() }
