package render

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// madeByOthers are Secrets and ConfigMaps that components mount and that are no part of a component: certificates, copies of what the user named, and
// what operators put there while they run. A name that is neither here nor rendered is probably misspelt.
var madeByOthers = map[string][]string{
	"Secret": strings.Fields(`pull-secret root-ca cluster-signer-ca sa-signing-key metrics-client konnectivity-agent konnectivity-client konnectivity-cluster konnectivity-server
		etcd-client-tls etcd-peer-tls etcd-server-tls kas-server-crt kas-server-private-crt kas-aggregator-crt kas-kubelet-client-crt kcm-server scheduler-server
		openshift-apiserver-cert openshift-oauth-apiserver-cert oauth-server-crt openshift-controller-manager-cert openshift-route-controller-manager-cert cluster-policy-controller-cert
		packageserver-cert olm-operator-serving-cert catalog-operator-serving-cert cvo-server node-tuning-operator-tls cluster-image-registry-operator
		csi-snapshot-controller-operator-serving-cert cluster-storage-operator-serving-cert ignition-server ignition-server-serving-cert ignition-server-ca-cert
		aws-pod-identity-webhook-serving-cert azure-workload-identity-webhook-serving-cert metrics-proxy-serving-cert endpoint-resolver-serving-cert endpoint-resolver-ca
		demo-x7k2p-kubeconfig cloud-controller-creds cloud-controller-manager-creds control-plane-operator-creds node-management-creds aws-node-termination-handler-creds`),
	"ConfigMap": strings.Fields("client-ca root-ca etcd-ca etcd-metrics-ca aggregator-client-ca kubelet-client-ca konnectivity-ca-bundle oauth-master-ca-bundle"),
}

// forOthers are components that --all renders for platforms that lack what they are configured with.
var forOthers = []string{"openstack-cloud-controller-manager", "powervs-cloud-controller-manager"}

// rendered is what one scenario consists of.
type rendered struct {
	objects map[string][]unstructured.Unstructured // by component
	all     []unstructured.Unstructured
}

func scenario(t *testing.T, name string) rendered {
	t.Helper()
	return parsed(t, renderScenario(t, "testdata/openshift", name))
}

// parsed are files of objects, by their path.
func parsed(t *testing.T, files map[string]string) rendered {
	t.Helper()
	w := rendered{objects: map[string][]unstructured.Unstructured{}}
	for path, content := range files {
		u := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(content), &u.Object); err != nil {
			t.Fatal(err)
		}
		component := filepath.Dir(path)
		w.objects[component] = append(w.objects[component], u)
		w.all = append(w.all, u)
	}
	return w
}

func (w rendered) has(kind, name string) bool {
	return slices.ContainsFunc(w.all, func(u unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
}

// pods are the pod templates, by workload.
func (w rendered) pods(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	found := map[string]corev1.PodTemplateSpec{}
	for _, u := range w.all {
		path := map[string][]string{"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "Job": {"spec", "template"}, "CronJob": {"spec", "jobTemplate", "spec", "template"}}[u.GetKind()]
		if path == nil {
			continue
		}
		raw, _, err := unstructured.NestedMap(u.Object, path...)
		template := corev1.PodTemplateSpec{}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template)
		}
		if err != nil {
			t.Fatalf("%s: %v", u.GetName(), err)
		}
		claims, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
		for _, c := range claims {
			name, _, _ := unstructured.NestedString(c.(map[string]any), "metadata", "name")
			template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name})
		}
		found[u.GetName()] = template
	}
	return found
}

// TestRenderedOpenShiftProperties holds the objects of all scenarios to what any control plane has to keep, whatever its golden files say.
func TestRenderedOpenShiftProperties(t *testing.T) {
	t.Setenv("ARO_HCP_KEY_VAULT_USER_CLIENT_ID", "11111111-0000-0000-0000-000000000000")
	for _, name := range scenarios {
		if name == "aro" {
			t.Setenv("MANAGED_SERVICE", "ARO-HCP")
		}
		w := scenario(t, name)
		pods := w.pods(t)
		t.Run("When a control plane is "+name+" each pod should be of a piece", func(t *testing.T) {
			for _, workload := range slices.Sorted(maps.Keys(pods)) {
				for _, problem := range podProblems(pods[workload]) {
					t.Errorf("%s: %s", workload, problem)
				}
			}
		})
		t.Run("When a control plane is "+name+" what refers to another object should find it", func(t *testing.T) {
			for _, problem := range w.danglingReferences(pods) {
				t.Error(problem)
			}
		})
		t.Run("When a control plane is "+name+" every mounted Secret and ConfigMap should be made by somebody", func(t *testing.T) {
			for _, workload := range slices.Sorted(maps.Keys(pods)) {
				for _, ref := range references(pods[workload].Spec) {
					known := slices.Contains(madeByOthers[ref.kind], ref.name) || ref.name == "" && slices.Contains(forOthers, workload)
					if !known && !w.has(ref.kind, ref.name) {
						t.Errorf("%s mounts %s %s, which nobody makes", workload, ref.kind, ref.name)
					}
				}
			}
		})
	}
}

// idleVolumes are those that no container of some published pod mounts: where each has a folder of its own at /tmp, and in kube-apiserver.
var idleVolumes = []string{"tmp-dir", "kubeconfig"}

// podProblems are what is wrong with a pod by itself.
func podProblems(template corev1.PodTemplateSpec) []string {
	var problems []string
	pod := template.Spec
	volumes, names, ports := map[string]int{}, map[string]int{}, map[string]string{}
	for _, v := range pod.Volumes {
		volumes[v.Name]++
	}
	used := map[string]bool{}
	for i, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		names[c.Name]++
		at := map[string]bool{}
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
			if volumes[m.Name] != 1 {
				problems = append(problems, fmt.Sprintf("container %s mounts volume %s, of which there are %d", c.Name, m.Name, volumes[m.Name]))
			}
			if at[m.MountPath] {
				problems = append(problems, fmt.Sprintf("container %s mounts two volumes at %s", c.Name, m.MountPath))
			}
			at[m.MountPath] = true
		}
		env := map[string]bool{}
		for _, e := range c.Env {
			if env[e.Name] {
				problems = append(problems, fmt.Sprintf("container %s has variable %s twice", c.Name, e.Name))
			}
			env[e.Name] = true
		}
		for _, p := range c.Ports {
			key := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
			if by := ports[key]; by != "" && i >= len(pod.InitContainers) {
				problems = append(problems, fmt.Sprintf("containers %s and %s have port %s", by, c.Name, key))
			}
			ports[key] = c.Name
		}
		for _, text := range slices.Concat(c.Command, c.Args) {
			if strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "BEGIN CERTIFICATE") {
				problems = append(problems, fmt.Sprintf("container %s has a certificate or key among its arguments", c.Name))
			}
		}
		if c.Image == "" {
			problems = append(problems, fmt.Sprintf("container %s has no image", c.Name))
		}
	}
	for name, n := range names {
		if n > 1 {
			problems = append(problems, fmt.Sprintf("%d containers are called %s", n, name))
		}
	}
	for name := range volumes {
		if !used[name] && !slices.Contains(idleVolumes, name) {
			problems = append(problems, fmt.Sprintf("nobody mounts volume %s", name))
		}
	}
	slices.Sort(problems)
	return problems
}

type reference struct{ kind, name string }

// references are the Secrets and ConfigMaps that a pod mounts and can't start without.
func references(pod corev1.PodSpec) []reference {
	var refs []reference
	required := func(optional *bool) bool { return optional == nil || !*optional }
	for _, v := range pod.Volumes {
		switch {
		case v.Secret != nil && required(v.Secret.Optional):
			refs = append(refs, reference{"Secret", v.Secret.SecretName})
		case v.ConfigMap != nil && required(v.ConfigMap.Optional):
			refs = append(refs, reference{"ConfigMap", v.ConfigMap.Name})
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.Secret != nil && required(s.Secret.Optional) {
					refs = append(refs, reference{"Secret", s.Secret.Name})
				}
				if s.ConfigMap != nil && required(s.ConfigMap.Optional) {
					refs = append(refs, reference{"ConfigMap", s.ConfigMap.Name})
				}
			}
		}
	}
	return refs
}

// danglingReferences are selectors, roles, ServiceAccounts and ports that lead nowhere.
func (w rendered) danglingReferences(pods map[string]corev1.PodTemplateSpec) []string {
	var problems []string
	selects := func(selector map[string]string) []corev1.PodTemplateSpec {
		var found []corev1.PodTemplateSpec
		for _, p := range pods {
			if len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(p.Labels)) {
				found = append(found, p)
			}
		}
		return found
	}
	for _, u := range w.all {
		what := u.GetKind() + " " + u.GetName()
		switch u.GetKind() {
		case "Deployment", "StatefulSet":
			selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
			if !labels.SelectorFromSet(selector).Matches(labels.Set(pods[u.GetName()].Labels)) || len(selector) == 0 {
				problems = append(problems, what+" does not select its own pods")
			}
		case "PodDisruptionBudget":
			selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
			if len(selects(selector)) == 0 {
				problems = append(problems, what+" selects no pods")
			}
		case "Service":
			problems = append(problems, serviceProblems(u, selects)...)
		case "ServiceMonitor":
			problems = append(problems, w.monitorProblems(u)...)
		case "RoleBinding":
			ref, _, _ := unstructured.NestedStringMap(u.Object, "roleRef")
			if ref["kind"] == "Role" && !w.has("Role", ref["name"]) {
				problems = append(problems, what+" refers to Role "+ref["name"]+", which nobody makes")
			}
		}
	}
	for workload, p := range pods {
		if sa := p.Spec.ServiceAccountName; sa != "" && sa != "default" && !w.has("ServiceAccount", sa) && !slices.Contains([]string{"control-plane-operator"}, sa) {
			problems = append(problems, workload+" runs as ServiceAccount "+sa+", which nobody makes")
		}
	}
	slices.Sort(problems)
	return problems
}

func serviceProblems(u unstructured.Unstructured, selects func(map[string]string) []corev1.PodTemplateSpec) []string {
	svc := corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &svc); err != nil {
		return []string{err.Error()}
	}
	if len(svc.Spec.Selector) == 0 {
		return nil // its endpoints are written by somebody
	}
	found := selects(svc.Spec.Selector)
	if len(found) == 0 {
		return []string{"Service " + svc.Name + " selects no pods"}
	}
	var problems []string
	for _, port := range svc.Spec.Ports {
		if port.TargetPort.Type == intstr.String && !slices.ContainsFunc(found, func(p corev1.PodTemplateSpec) bool { return namesPort(p.Spec, port.TargetPort.StrVal) }) {
			problems = append(problems, fmt.Sprintf("Service %s leads to port %s, which no pod of it has", svc.Name, port.TargetPort.StrVal))
		}
	}
	return problems
}

func namesPort(pod corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
	})
}

// infraServices are made before the components, with the control plane's other infrastructure.
var infraServices = []string{"kube-apiserver", "openshift-apiserver", "openshift-oauth-apiserver", "packageserver", "oauth-openshift"}

func (w rendered) monitorProblems(u unstructured.Unstructured) []string {
	selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	for _, s := range w.all {
		if s.GetKind() == "Service" && len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(s.GetLabels())) {
			return nil
		}
	}
	if slices.Contains(infraServices, u.GetName()) {
		return nil
	}
	return []string{"ServiceMonitor " + u.GetName() + " selects no Service: " + metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: selector})}
}

func TestPodProblems(t *testing.T) {
	t.Run("When a pod has every mistake each should be told", func(t *testing.T) {
		two := []corev1.VolumeMount{{Name: "a", MountPath: "/x"}, {Name: "none", MountPath: "/x"}}
		got := podProblems(corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "a"}, {Name: "idle"}},
			Containers: []corev1.Container{
				{Name: "c", VolumeMounts: two, Env: []corev1.EnvVar{{Name: "E"}, {Name: "E"}}, Ports: []corev1.ContainerPort{{ContainerPort: 1}}, Args: []string{"-----BEGIN EC PRIVATE KEY-----"}},
				{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 1}}},
			},
		}})
		NewWithT(t).Expect(got).To(HaveLen(8))
	})
}
