//go:build e2e && openshift

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hcp.internal/platform/test/standin/payload"
	standin "hcp.internal/platform/test/standin/run"
)

const (
	ocp              = "ocp"
	ocpNamespace     = "clusters-ocp"
	ocpAddress       = "10.244.0.1" // the management cluster's only node
	standins         = "10.244.0.1:5000/standin"
	payloadBefore    = "4.22.0"
	payloadAfter     = "4.22.1"
	bundle           = "1.36.3"
	bundleRelease    = "10.244.0.1:5000/hypershift/release:" + bundle
	controlPlaneUp   = 15 * time.Minute
	controlPlaneTurn = 12 * time.Minute
)

// TestOpenShift is the life of a hosted cluster whose release is a payload with stand-ins for what can't be had here.
func TestOpenShift(t *testing.T) {
	noCluster(t)
	inOrder(t, []step{
		{"When up runs without a demo it should end with operators", func(t *testing.T) {
			run(t, 25*time.Minute, "hypershift", "local", "up", "--skip-demo", "--state-dir", stateDir)
		}},
		{"When payloads are built they should be pushed", pushPayloads},
		{"When a hosted cluster has a payload it should become available and its version complete", payloadRuns},
		{"When its programs have looked at what they were given they should have found nothing wrong", programsReport},
		{"When the payload is applied what is kept out of it should be missing", manifestsKeptOut},
		{"When aggregated APIs are asked they should answer", aggregatedAPIs},
		{"When a setting changes exactly those who read it should roll out", settingChanges},
		{"When the key of encryption changes everything should be written again", payloadKeyChange},
		{"When the release changes etcd, then the API, and then the rest should follow", payloadUpgrade},
		{"When an identity provider's Secret is missing it should be told and nothing else change", providerWithoutSecret},
		{"When a payload lacks a component it should be told and the rest go on", payloadWithoutComponent},
		{"When nothing changes nothing should be written", staysQuietOpenShift},
		{"When the hosted cluster is deleted nothing of it should be left", payloadDestroyed},
	})
}

func pushPayload(t *testing.T, version string, without ...string) string {
	t.Helper()
	s, err := payload.FromCheckout(t.Context(), root(t), standins, version, bundle, bundleRelease)
	if err != nil {
		t.Fatal(err)
	}
	s.Without = without
	ref, err := payload.Push(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func pushPayloads(t *testing.T) {
	for _, version := range []string{payloadBefore, payloadAfter} {
		t.Log(pushPayload(t, version))
	}
}

// requests are what the largest containers ask for on a machine with two processors; published annotations, in millicores and MiB.
var requests = map[string][2]int{
	"etcd.etcd": {50, 100}, "etcd.etcd-metrics": {5, 30}, "etcd.healthz": {5, 20}, "kube-apiserver.kube-apiserver": {100, 400},
	"kube-apiserver.init-bootstrap-render": {5, 20}, "kube-apiserver.init-auth-bootstrap-render": {5, 20},
	"kube-controller-manager.kube-controller-manager": {30, 100}, "kube-scheduler.kube-scheduler": {10, 50},
	"openshift-apiserver.openshift-apiserver": {10, 30}, "openshift-oauth-apiserver.openshift-oauth-apiserver": {10, 30},
	"openshift-controller-manager.openshift-controller-manager": {10, 30},
	"cluster-policy-controller.cluster-policy-controller":       {5, 30}, "packageserver.packageserver": {5, 30}, "olm-operator.olm-operator": {5, 30},
	"catalog-operator.catalog-operator": {5, 30}, "kube-storage-version-migrator.migrator": {5, 30}, "hosted-cluster-config-operator.hosted-cluster-config-operator": {30, 80},
}

func payloadRuns(t *testing.T) {
	pull := filepath.Join(stateDir, "pull-secret.json")
	auth := base64.StdEncoding.EncodeToString([]byte("user:password"))
	if err := os.WriteFile(pull, []byte(`{"auths":{"10.244.0.1:5000":{"auth":"`+auth+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"create", "cluster", "none", "--name", ocp, "--base-domain", "example.test", "--release-image", standins + "/release:" + payloadBefore, "--pull-secret", pull,
		"--olm-catalog-placement", "guest", "--olm-disable-default-sources", "--external-api-server-address", ocpAddress, "--node-pool-replicas=-1", kubeconfigFlag(),
	}
	for container, r := range requests {
		args = append(args, "--annotations", fmt.Sprintf("resource-request-override.hypershift.openshift.io/%s=cpu=%dm,memory=%dMi", container, r[0], r[1]))
	}
	start := time.Now()
	run(t, 2*time.Minute, "hypershift", args...)
	awaitVersion(t, payloadBefore, controlPlaneUp)
	t.Logf("from nothing to a complete version took %s", time.Since(start).Round(time.Second))
	hostedKubectl(t, ocp)
}

func ocpField(t *testing.T, path string) (string, error) {
	t.Helper()
	out, err := management().try(t, "get", "hostedcluster", "-n", "clusters", ocp, "-o", "jsonpath="+path)
	return strings.TrimSpace(out), err
}

func awaitVersion(t *testing.T, version string, patience time.Duration) {
	t.Helper()
	eventually(t, patience, "version "+version, func() error {
		got, err := ocpField(t, `{.status.version.history[0].version} {.status.version.history[0].state} {.status.conditions[?(@.type=="Available")].status} {.status.conditions[?(@.type=="Progressing")].status}`)
		if want := version + " Completed True False"; err != nil || got != want {
			return errors.Join(fmt.Errorf("version, state, Available and Progressing are %q, want %q", got, want), err)
		}
		return nil
	})
}

func ocpHosted() kubectl { return kubectl{filepath.Join(stateDir, ocp+".kubeconfig")} }

// programsReport reads what each container of a stand-in printed. A restart is a check that failed.
func programsReport(t *testing.T) {
	out := management().run(t, "get", "pods", "-n", ocpNamespace, "-o", "json")
	var pods struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Phase             string
				ContainerStatuses []struct {
					Name, Image  string
					RestartCount int
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &pods); err != nil {
		t.Fatal(err)
	}
	reports := 0
	for _, pod := range pods.Items {
		if pod.Status.Phase != "Running" {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			text := management().run(t, "logs", "-n", ocpNamespace, pod.Metadata.Name, "-c", c.Name, "--tail=200")
			for line := range strings.Lines(text) {
				r := standin.Report{}
				if json.Unmarshal([]byte(line), &r) != nil || r.Standin == "" {
					continue
				}
				reports++
				t.Logf("%s of image %s %s looked at %d things; %d restarts", r.Standin, r.Image, r.Version, len(r.Checked), c.RestartCount)
			}
			if c.RestartCount > 3 { // some begin before what they need answers
				t.Errorf("container %s of %s was started again %d times", c.Name, pod.Metadata.Name, c.RestartCount)
			}
		}
	}
	if reports < 15 {
		t.Errorf("%d programs report, which is too few", reports)
	}
}

func manifestsKeptOut(t *testing.T) {
	k := ocpHosted()
	if out, err := k.try(t, "get", "configmap", "-n", "default", "must-not-be-applied"); err == nil {
		t.Errorf("a manifest that is kept out was applied: %s", out)
	}
	for name, want := range map[string]bool{"standin-version": true, "standin-console": true, "standin-baremetal": false} {
		if out, err := k.try(t, "get", "configmap", "-n", "openshift-config-managed", name); (err == nil) != want {
			t.Errorf("ConfigMap %s: there is %t, want %t: %s", name, err == nil, want, out)
		}
	}
}

func aggregatedAPIs(t *testing.T) {
	k := ocpHosted()
	for _, group := range []string{"route", "image", "oauth", "user"} {
		k.run(t, "wait", "--for=condition=Available", "apiservice/v1."+group+".openshift.io", "--timeout=60s")
	}
	k.run(t, "wait", "--for=condition=Available", "apiservice/v1.packages.operators.coreos.com", "--timeout=60s")
	k.run(t, "get", "routes.route.openshift.io", "-A")
}

// change is a patch of the HostedCluster and those who read what it changes.
type change struct {
	what, patch string
	readers     []string
}

var changes = []change{
	{
		"the message of project requests", `{"spec":{"configuration":{"image":{"externalRegistryHostnames":["registry.example.test"]}}}}`,
		[]string{"kube-apiserver", "openshift-apiserver", "openshift-controller-manager"},
	},
	{"the default node selector", `{"spec":{"configuration":{"scheduler":{"defaultNodeSelector":"type=user"}}}}`, []string{"kube-apiserver"}},
	{"the age of tokens", `{"spec":{"configuration":{"oauth":{"tokenConfig":{"accessTokenMaxAgeSeconds":3600}}}}}`, []string{"oauth-openshift"}},
}

func settingChanges(t *testing.T) {
	for _, c := range changes {
		t.Run("When it is "+c.what+" it should be read by "+strings.Join(c.readers, ", "), func(t *testing.T) {
			r := watchRollouts(t, ocpNamespace)
			management().run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=merge", "-p", c.patch)
			eventually(t, controlPlaneTurn, "rollouts of "+c.what, func() error {
				if late := r.pending(); len(late) > 0 || len(r.names()) < len(c.readers) {
					return fmt.Errorf("%v changed, %v haven't rolled out", r.names(), late)
				}
				return nil
			})
			awaitVersion(t, payloadBefore, controlPlaneTurn)
			r.end()
			if got := r.names(); !slices.Equal(got, c.readers) {
				t.Errorf("%v rolled out, want %v", got, c.readers)
			}
		})
	}
}

func payloadUpgrade(t *testing.T) {
	r := watchRollouts(t, ocpNamespace)
	start := time.Now()
	management().run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=merge", "-p", `{"spec":{"release":{"image":"`+standins+`/release:`+payloadAfter+`"}}}`)
	awaitVersion(t, payloadAfter, controlPlaneUp)
	t.Logf("the upgrade took %s", time.Since(start).Round(time.Second))
	r.end()
	if late := r.pending(); len(late) > 0 {
		t.Errorf("the version is complete and %v have not rolled out", late)
	}
	r.expectBefore(t, "etcd", "kube-apiserver")
	r.expectBefore(t, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "openshift-apiserver", "cluster-version-operator", "cluster-network-operator")
	r.expectBefore(t, "openshift-apiserver", "cluster-version-operator", "openshift-controller-manager")
	history, err := ocpField(t, `{range .status.version.history[*]}{.version}={.state} {end}`)
	if want := payloadAfter + "=Completed " + payloadBefore + "=Completed"; err != nil || history != want {
		t.Errorf("history is %q, want %q", history, want)
	}
	if got := ocpHosted().run(t, "get", "configmap", "-n", "openshift-config-managed", "standin-version", "-o", "jsonpath={.data.version}"); got != payloadAfter {
		t.Errorf("the hosted cluster has the manifests of %s, want those of %s", got, payloadAfter)
	}
}

func payloadKeyChange(t *testing.T) {
	m := management()
	m.applyYAML(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: second-key, namespace: clusters}\ndata: {key: "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))+"}\n")
	active := func() string {
		return m.run(t, "get", "hostedcontrolplane", "-n", ocpNamespace, ocp, "-o", "jsonpath={.status.secretEncryption.activeKey}")
	}
	ocpHosted().run(t, "create", "secret", "generic", "-n", "default", "hidden", "--from-literal=token=kept")
	before := active()
	m.run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=merge", "-p",
		`{"spec":{"secretEncryption":{"aescbc":{"activeKey":{"name":"second-key"},"backupKey":{"name":"ocp-etcd-encryption-key"}}}}}`)
	eventually(t, controlPlaneTurn, "everything to be encrypted with the new key", func() error {
		got, err := ocpField(t, `{.status.conditions[?(@.type=="EtcdDataEncryptionUpToDate")].status}`)
		if now := active(); err != nil || got != "True" || now == before {
			return errors.Join(fmt.Errorf("EtcdDataEncryptionUpToDate is %q and the active key %q", got, now), err)
		}
		return nil
	})
	if got := ocpHosted().run(t, "get", "secret", "-n", "default", "hidden", "-o", "jsonpath={.data.token}"); got != base64.StdEncoding.EncodeToString([]byte("kept")) {
		t.Errorf("the Secret from before is %q", got)
	}
}

// condition waits for a condition of the HostedControlPlane and returns its message.
func condition(t *testing.T, kind, want string) string {
	t.Helper()
	message := ""
	eventually(t, 3*time.Minute, kind+"="+want, func() error {
		out, err := management().try(t, "get", "hostedcontrolplane", "-n", ocpNamespace, ocp, "-o",
			fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].status} {.status.conditions[?(@.type==%q)].message}`, kind, kind))
		status, text, _ := strings.Cut(out, " ")
		message = text
		if err != nil || status != want {
			return errors.Join(fmt.Errorf("%s is %q: %s", kind, status, text), err)
		}
		return nil
	})
	return message
}

func providerWithoutSecret(t *testing.T) {
	r := watchRollouts(t, ocpNamespace)
	management().run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=merge", "-p",
		`{"spec":{"configuration":{"oauth":{"identityProviders":[{"name":"people","mappingMethod":"claim","type":"HTPasswd","htpasswd":{"fileData":{"name":"missing"}}}]}}}}`)
	eventually(t, 3*time.Minute, "a condition that names the Secret", func() error {
		out, err := ocpField(t, `{range .status.conditions[*]}{.type}={.status} {.message}{"\n"}{end}`)
		if err != nil || !strings.Contains(out, "missing") {
			return errors.Join(errors.New("no condition names it"), err)
		}
		return nil
	})
	r.end()
	if got := r.names(); len(got) > 0 {
		t.Errorf("%v changed for a provider that can't be used", got)
	}
	management().run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=json", "-p", `[{"op":"remove","path":"/spec/configuration/oauth/identityProviders"}]`)
}

func payloadWithoutComponent(t *testing.T) {
	image := pushPayload(t, "4.22.2", "cluster-dns-operator")
	management().run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=merge", "-p", `{"spec":{"release":{"image":"`+image+`"}}}`)
	if message := condition(t, "ValidReleaseInfo", "False"); !strings.Contains(message, "cluster-dns-operator") {
		t.Errorf("the condition says %q and not which component is missing", message)
	}
}

func staysQuietOpenShift(t *testing.T) {
	whole := pushPayload(t, "4.22.3")
	management().run(t, "patch", "hostedcluster", "-n", "clusters", ocp, "--type=merge", "-p", `{"spec":{"release":{"image":"`+whole+`"}}}`)
	awaitVersion(t, "4.22.3", controlPlaneUp)
	// API servers that were replaced go on for minutes, so that nobody who still calls them notices.
	eventually(t, controlPlaneTurn, "pods that are Ready, and none that ends", func() error {
		out, err := management().try(t, "get", "pods", "-n", ocpNamespace, "--field-selector=status.phase!=Succeeded", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		if err != nil {
			return fmt.Errorf("listing pods: %w: %s", err, out)
		}
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			if name, state, _ := strings.Cut(line, " "); state != " True" {
				return fmt.Errorf("pod %s ends, or isn't Ready: %q", name, state)
			}
		}
		return nil
	})
	observeQuiet(t)
}

// payloadDestroyed also has the cloud resources of the hosted cluster removed, of which there are none: before anything is looked for, the version operator has to end.
func payloadDestroyed(t *testing.T) {
	ctx, over := context.WithCancel(t.Context())
	defer over()
	var told strings.Builder
	watch := exec.CommandContext(ctx, filepath.Join(root(t), "bin", "kubectl"), "--kubeconfig", management().kubeconfig, "get", "hostedcontrolplane", "-n", ocpNamespace, ocp, "--watch", "-o",
		`jsonpath={.status.conditions[?(@.type=="CVOScaledDown")].status} {.status.conditions[?(@.type=="CloudResourcesDestroyed")].reason}{"\n"}`)
	watch.Stdout = &told
	if err := watch.Start(); err != nil {
		t.Fatalf("watching the control plane: %v", err)
	}
	run(t, 10*time.Minute, "hypershift", "destroy", "cluster", "none", "--name", ocp, "--destroy-cloud-resources", kubeconfigFlag())
	over()
	_ = watch.Wait() // it was ended
	down, gone := strings.Index(told.String(), "True "), strings.Index(told.String(), "CloudResourcesDestroyed")
	if down < 0 || gone < down {
		t.Errorf("CVOScaledDown and then CloudResourcesDestroyed were not told; what was:\n%s", told.String())
	}
	expectGone(t, ocp)
}
