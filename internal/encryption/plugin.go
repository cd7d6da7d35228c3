package encryption

import (
	"fmt"
	"strings"
	"time"
)

const (
	// PluginAnnotation of a HostedCluster has the keys of spec.secretEncryption.aescbc be held by a plugin of KMS v2 beside kube-apiserver instead of by its
	// configuration; the one value is PluginLocal. For releases of Kubernetes; copied to the HostedControlPlane.
	PluginAnnotation = "hypershift.openshift.io/secret-encryption-plugin"
	// PluginLocal is the plugin that has its keys from Secrets.
	PluginLocal = "local-kms"

	// KeysAvailable is a condition: whether the plugins that hold encryption keys answer kube-apiserver. While one does not, what was read before can be
	// read, and nothing that is encrypted with its key can be written. It is absent where no plugin holds keys.
	KeysAvailable = "SecretEncryptionKeysAvailable"
	// KeysAwayReason means that a plugin which holds encryption keys does not answer.
	KeysAwayReason = "KeyManagementAway"
)

// What kube-apiserver and the plugin beside it agree on. Each key has a socket of its own and a file of its own, both named after the key, so that a
// change of key needs no more than another name in the configuration.
const (
	// PluginSocketDir is where kube-apiserver finds the sockets.
	PluginSocketDir = "/var/run/kms"
	// PluginKeyDir is where the plugin finds the files of keys: ConfigSecret, which kube-apiserver has only ConfigKey of.
	PluginKeyDir = "/etc/kms"

	// pluginPrefix begins the names of keys that our plugin has. Stored values remember them: they must not change.
	pluginPrefix = "local-kms-"
	keySuffix    = ".key"
	// pluginTimeout bounds one request to the plugin, which is next door and needs microseconds.
	pluginTimeout = 3 * time.Second
)

// KeyFile is the name of the file with a key, which is also its key in ConfigSecret.
func KeyFile(name string) string { return name + keySuffix }

// Socket is where the plugin serves a key.
func Socket(dir, name string) string { return dir + "/" + name + ".sock" }

// Files are the files of the keys that a plugin has.
func Files(keys []Key) map[string][]byte {
	files := map[string][]byte{}
	for _, key := range keys {
		if key.Form == InPlugin {
			files[KeyFile(key.Name)] = key.Data
		}
	}
	return files
}

// IsOurs tells whether a key of this name is held by our plugin.
func IsOurs(name string) bool { return strings.HasPrefix(name, pluginPrefix) }

// HealthChecks is the name of kube-apiserver's health check of all plugins together, in readyz and healthz. Servers of before 1.36 have one of each instead,
// see HealthCheck, and some of these have it in livez, too.
const HealthChecks = "kms-providers"

// HealthCheck is the name of the health check of one plugin. They count from zero, in the order of the configuration.
func HealthCheck(plugin int) string { return fmt.Sprintf("kms-provider-%d", plugin) }

// Plugins is how many keys our plugin holds.
func Plugins(keys []Key) int { return len(Files(keys)) }
