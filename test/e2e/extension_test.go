//go:build e2e && live

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLive checks a demo cluster that runs already, from "hypershift local up --state-dir /tmp/hcp-e2e": what is between its control
// plane and its workers. It leaves the cluster as it was.
func TestLive(t *testing.T) {
	t.Run("When control plane and workers reach each other the HostedCluster should say so", reachEachOther)
	t.Run("When the API server calls webhooks and APIs on workers it should reach them", callsWorkers)
	t.Run("When a volume is claimed it should be had and written to", useVolume)
}

// reachEachOther expects that the control plane and the workers are known to.
func reachEachOther(t *testing.T) {
	for _, condition := range []string{"DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable"} {
		eventually(t, 5*time.Minute, condition, func() error {
			got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", fmt.Sprintf("jsonpath={.status.conditions[?(@.type=='%s')].status}", condition))
			if err != nil || got != "True" {
				return fmt.Errorf("%s of the HostedCluster is %q, want True (%v)", condition, got, err)
			}
			return nil
		})
	}
}

// callsWorkers makes the hosted API call pods: a webhook that fails closed and an aggregated API, both on workers that cannot be
// dialled from the control plane.
func callsWorkers(t *testing.T) {
	k := hosted()
	cert, key := servingCertificate(t, "extension.extension.svc")
	encode := base64.StdEncoding.EncodeToString
	k.applyYAML(t, fmt.Sprintf(extension, encode(cert), encode(key)))
	eventually(t, appStart, "the pods", func() error {
		got, err := k.try(t, "get", "deployment", "-n", "extension", "extension", "-o", "jsonpath={.status.availableReplicas}")
		if err != nil || got != "2" {
			return fmt.Errorf("%q of 2 replicas are available (%v)", got, err)
		}
		return nil
	})
	k.applyYAML(t, fmt.Sprintf(extensionCalls, encode(cert)))

	t.Run("When an aggregated API is asked a pod should answer", func(t *testing.T) {
		eventually(t, 2*time.Minute, "an answer of the aggregated API", func() error {
			out, err := k.try(t, "get", "--raw", "/apis/greet.example.test/v1/hello")
			if err != nil || !strings.HasPrefix(out, "Hello from extension-") {
				return fmt.Errorf("the answer is %q (%v)", out, err)
			}
			return nil
		})
		eventually(t, 2*time.Minute, "the API's availability", func() error {
			got, err := k.try(t, "get", "apiservice", "v1.greet.example.test", "-o", "jsonpath={.status.conditions[?(@.type=='Available')].status}")
			if err != nil || got != "True" {
				return fmt.Errorf("Available is %q (%v)", got, err)
			}
			return nil
		})
	})
	t.Run("When an object is written a webhook in a pod should decide", func(t *testing.T) {
		eventually(t, 2*time.Minute, "a refusal", func() error {
			out, err := k.try(t, "create", "-n", "extension", "-f", writeYAML(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: bad-, labels: {refuse: 'yes'}}\n"))
			if err == nil || !strings.Contains(out, "refused by extension-") {
				return fmt.Errorf("the object was not refused by the webhook: %s", out)
			}
			return nil
		})
		k.run(t, "create", "-n", "extension", "-f", writeYAML(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n"))
	})
	k.run(t, "delete", "validatingwebhookconfiguration/extension", "apiservice/v1.greet.example.test")
	k.run(t, "delete", "namespace", "extension", "--wait=false")
}

// useVolume claims a volume of the default storage class, and writes to it as a user who isn't root.
func useVolume(t *testing.T) {
	k := hosted()
	k.applyYAML(t, volume)
	eventually(t, appStart, "what was written", func() error {
		out, err := k.try(t, "logs", "-n", "volume", "writer")
		if err != nil || strings.TrimSpace(out) != "kept" {
			return fmt.Errorf("the pod says %q (%v)", out, err)
		}
		return nil
	})
	name := k.run(t, "get", "pvc", "-n", "volume", "data", "-o", "jsonpath={.spec.volumeName}")
	k.run(t, "delete", "namespace", "volume", "--wait=false")
	eventually(t, 3*time.Minute, "the volume's end", func() error {
		if out, err := k.try(t, "get", "pv", name); err == nil {
			return fmt.Errorf("it is there: %s", out)
		}
		return nil
	})
}

// writeYAML gives the name of a file with the manifest.
func writeYAML(t *testing.T, manifest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const extension = `
apiVersion: v1
kind: Namespace
metadata: {name: extension, labels: {guarded: "yes"}}
---
apiVersion: v1
kind: Secret
metadata: {name: serving, namespace: extension}
data: {tls.crt: %s, tls.key: %s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: extension, namespace: extension}
spec:
  replicas: 2
  selector: {matchLabels: {app: extension}}
  template:
    metadata: {labels: {app: extension}}
    spec:
      containers:
      - name: extension
        image: 10.244.0.1:5000/hypershift/webapp:1.0.0
        command: [/webapp, hook, /serving/tls.crt, /serving/tls.key]
        readinessProbe: {httpGet: {path: /healthz, port: 8443, scheme: HTTPS}, periodSeconds: 2}
        volumeMounts: [{name: serving, mountPath: /serving}]
      volumes: [{name: serving, secret: {secretName: serving}}]
---
apiVersion: v1
kind: Service
metadata: {name: extension, namespace: extension}
spec:
  selector: {app: extension}
  ports: [{port: 443, targetPort: 8443}]
`

const extensionCalls = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.greet.example.test}
spec:
  group: greet.example.test
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: %[1]s
  service: {namespace: extension, name: extension}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: extension}
webhooks:
- name: extension.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 10
  clientConfig: {caBundle: %[1]s, service: {namespace: extension, name: extension, path: /validate}}
  namespaceSelector: {matchLabels: {guarded: "yes"}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
`

const volume = `
apiVersion: v1
kind: Namespace
metadata: {name: volume}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: volume}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 16Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer, namespace: volume}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 1234, runAsNonRoot: true, fsGroup: 4321}
  containers:
  - name: writer
    image: 10.244.0.1:5000/hypershift/node:1.36.3
    command: [bash, -c, "echo kept > /data/file; cat /data/file; sleep infinity"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`
