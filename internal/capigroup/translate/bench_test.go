//go:build bench

package translate

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// machine is one as the API server writes it, with two managers and conditions.
func machine(i int) string {
	return fmt.Sprintf(`{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Machine","metadata":{"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"LocalMachineTemplate.infrastructure.cluster.x-k8s.io","cluster.x-k8s.io/cloned-from-name":"pool-a1b2c3"},"creationTimestamp":"2026-11-21T09:00:00Z","finalizers":["machine.cluster.x-k8s.io"],"generation":3,"labels":{"cluster.x-k8s.io/cluster-name":"demo","cluster.x-k8s.io/set-name":"pool-x","machine-template-hash":"3231234"},"managedFields":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cluster.x-k8s.io/cloned-from-groupkind":{},"f:cluster.x-k8s.io/cloned-from-name":{}},"f:finalizers":{".":{},"v:\"machine.cluster.x-k8s.io\"":{}},"f:labels":{".":{},"f:cluster.x-k8s.io/cluster-name":{},"f:cluster.x-k8s.io/set-name":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"3f1b9a55-0000-4000-8000-%012d\"}":{}}},"f:spec":{".":{},"f:bootstrap":{".":{},"f:configRef":{},"f:dataSecretName":{}},"f:clusterName":{},"f:infrastructureRef":{},"f:version":{}}},"manager":"capi-machineset","operation":"Apply","time":"2026-11-21T09:00:00Z"},{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:addresses":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{},"f:status":{}}},"f:nodeRef":{},"f:phase":{}}},"manager":"manager","operation":"Update","subresource":"status","time":"2026-11-21T09:01:00Z"}],"name":"pool-x-%05d","namespace":"clusters-demo","ownerReferences":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","blockOwnerDeletion":true,"controller":true,"kind":"MachineSet","name":"pool-x","uid":"3f1b9a55-0000-4000-8000-000000000001"}],"resourceVersion":"1234567","uid":"9f1b9a55-0000-4000-8000-%012d"},"spec":{"bootstrap":{"dataSecretName":"user-data-pool-a1b2c3"},"clusterName":"demo","infrastructureRef":{"apiGroup":"infrastructure.cluster.hypershift.openshift.io","kind":"LocalMachine","name":"pool-x-%05d"},"providerID":"local://clusters-demo/pool-x-%05d","readinessGates":[],"version":"v1.36.3"},"status":{"addresses":[{"address":"10.244.0.17","type":"InternalIP"},{"address":"pool-x-%05d","type":"Hostname"}],"conditions":[{"lastTransitionTime":"2026-11-21T09:01:00Z","message":"","observedGeneration":3,"reason":"Ready","status":"True","type":"Ready"},{"lastTransitionTime":"2026-11-21T09:01:00Z","message":"","observedGeneration":3,"reason":"Available","status":"True","type":"Available"},{"lastTransitionTime":"2026-11-21T09:01:00Z","message":"Node is healthy and has been for a while","observedGeneration":3,"reason":"NodeHealthy","status":"True","type":"NodeHealthy"},{"lastTransitionTime":"2026-11-21T09:00:30Z","message":"","observedGeneration":3,"reason":"InfrastructureReady","status":"True","type":"InfrastructureReady"}],"initialization":{"bootstrapDataSecretCreated":true,"infrastructureProvisioned":true},"nodeInfo":{"architecture":"amd64","containerRuntimeVersion":"containerd://1.6.20","kernelVersion":"6.18.0","kubeletVersion":"v1.36.3","operatingSystem":"linux","osImage":"Debian GNU/Linux 12"},"nodeRef":{"name":"pool-x-%05d"},"observedGeneration":3,"phase":"Running"}}`, i, i, i, i, i, i, i)
}

func machines(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","items":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(machine(i))
	}
	b.WriteString(`],"kind":"MachineList","metadata":{"resourceVersion":"99"}}`)
	return b.Bytes()
}

// cpu is the time that this process has computed.
func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkTranslate is the translation alone: MB/s of input on one core, and allocations per body.
func BenchmarkTranslate(b *testing.B) {
	metadataOnly := bytes.ReplaceAll(machines(1000), []byte(`"kind":"Machine",`), []byte(`"kind":"PartialObjectMetadata",`))
	for name, tc := range map[string]struct {
		path string
		body []byte
	}{
		"Machine":       {capi + "machines/m", []byte(machine(1))},
		"Machines-5000": {capi + "machines", machines(5000)},
		"Metadata-1000": {core + "configmaps", metadataOnly},
		"Secret-1MiB":   {core + "secrets/s", fmt.Appendf(nil, `{"apiVersion":"v1","data":{"a":"%s"},"kind":"Secret"}`, bytes.Repeat([]byte("QUJD"), 1<<18))},
	} {
		b.Run(name, func(b *testing.B) {
			p := in(b, "GET", tc.path).Answer(true)
			x := New(p)
			out := make([]byte, 0, 64<<10)
			b.SetBytes(int64(len(tc.body)))
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				x.Reset(p)
				for rest := tc.body; len(rest) > 0; {
					n := min(len(rest), 32<<10)
					var err error
					if out, err = x.Append(out[:0], rest[:n]); err != nil {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
			}
			// On a machine that is shared, time on the clock says little.
			b.ReportMetric(float64(b.N)*float64(len(tc.body))/1e6/(cpu(b)-before).Seconds(), "MB/cpu-s")
		})
	}
}
