package quiet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hcp.internal/platform/internal/kube/fieldpath"
)

func machineSet(version string, labels map[string]any, managers ...string) object {
	o := object{server: managementName, kind: "MachineSet", namespace: "clusters-demo", name: "demo", resourceVersion: version,
		fields: fieldpath.Flatten(map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}}})}
	for _, m := range managers {
		o.managed = append(o.managed, metav1.ManagedFieldsEntry{Manager: m, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:selector":{}}}`)})
	}
	return o
}

func node(version, beat, ready string) object {
	return object{server: "clusters/demo", kind: "Node", name: "worker", resourceVersion: version, fields: fieldpath.Flatten(map[string]any{
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "lastHeartbeatTime": beat}}}})}
}

func TestJudge(t *testing.T) {
	set, worker := objectKey{managementName, "1"}, objectKey{"clusters/demo", "2"}
	bare, named := map[string]any{"pool": "demo"}, map[string]any{"pool": "demo", "cluster.x-k8s.io/cluster-name": "demo"}
	objects := func(of ...object) map[objectKey]object { return map[objectKey]object{set: of[0], worker: of[1]} }
	before := objects(machineSet("1", bare, "capi-machineset"), node("1", "12:00", "True"))
	for name, tc := range map[string]struct {
		after   map[objectKey]object
		clients []Requests
		cpu     []CPU
		want    []string // what problems contain, in order
	}{
		"When nothing is written it should be quiet": {after: before},
		"When a kubelet says that it lives it should be quiet": {
			after:   objects(before[set], node("2", "12:05", "True")),
			clients: []Requests{{Client: Client{"clusters/demo", "system:node:worker", "kubelet"}, Count: 7, Leases: 6, Writes: 1, What: []string{"6× update leases.coordination.k8s.io a/b", "1× patch nodes/status worker"}}},
		},
		"When a kubelet writes something else, too, it should be named": {
			after:   objects(before[set], node("2", "12:05", "True")),
			clients: []Requests{{Client: Client{"clusters/demo", "system:node:worker", "kubelet"}, Count: 2, Writes: 2, What: []string{"1× patch nodes/status worker", "1× patch pods/status a/b"}}},
			want:    []string{"kubelet) asked 2 times a minute (bound 60), 0 times for leases (bound 30), wrote 1 times"},
		},
		"When a node changes it should be named": {
			after: objects(before[set], node("2", "12:05", "False")),
			want:  []string{`clusters/demo: Node worker was written: status.conditions[type=Ready].lastHeartbeatTime: "12:00" → "12:05"; status.conditions[type=Ready].status: "True" → "False"`},
		},
		"When two fight over a label it should name both and the label": {
			after: objects(machineSet("70", named, "capi-machineset", "capi-machinedeployment"), before[worker]),
			want:  []string{`management: MachineSet clusters-demo/demo was written by capi-machinedeployment, capi-machineset: spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]: (none) → "demo"`},
		},
		"When it ends as it began it should be named all the same": {
			after:   objects(machineSet("71", bare, "capi-machineset"), before[worker]),
			clients: []Requests{{Client: Client{managementName, "system:serviceaccount:capi", "manager"}, Count: 12, Writes: 12, What: []string{"12× patch machinesets.cluster.x-k8s.io clusters-demo/demo", "3× get machinesets.cluster.x-k8s.io clusters-demo/demo"}}},
			want:    []string{"was written (12× patch by system:serviceaccount:capi (manager)): no field differs at the end", "management ← system:serviceaccount:capi (manager)"},
		},
		"When something is made and deleted it should be named": {
			after: map[objectKey]object{set: before[set], {managementName, "3"}: {server: managementName, kind: "Pod", namespace: "a", name: "b", resourceVersion: "9"}},
			want:  []string{"management: Pod a/b was made", "clusters/demo: Node worker was deleted"},
		},
		"When a client asks too often or writes it should be named with what it asks": {
			after: before,
			clients: []Requests{
				{Client: Client{managementName, "a", "busy"}, Count: 70, What: []string{"70× get secrets x"}},
				{Client: Client{managementName, "b", "elects"}, Count: 31, Leases: 31, What: []string{"31× update leases x"}},
				{Client: Client{managementName, "c", "writes"}, Count: 1, Writes: 1, What: []string{"1× patch configmaps x"}},
				{Client: Client{managementName, "d", "rests"}, Count: 60, Leases: 20},
			},
			want: []string{"management ← a (busy) asked 70 times", "management ← b (elects) asked 0 times a minute (bound 60), 31 times for leases", "management ← c (writes) asked 1 times"},
		},
		"When processors are used it should name who did": {
			after: before,
			cpu: []CPU{
				{Where: "hypershift/operator/operator", Program: "hcp-operators", Group: Operators, Used: time.Second},
				{Where: "clusters-demo/cluster-api/manager", Program: "manager", Group: Operators, Used: 300 * time.Millisecond, Children: 100 * time.Millisecond},
				{Where: "machine", Program: "kube kube-apiserver", Group: ManagementAPI, Used: 4 * time.Second},
				{Where: "machine", Program: "kubelet", Group: Other, Used: time.Minute},
			},
			want: []string{"operators used 2.33 % of a core (bound 2.0 %): 1.67 % hypershift/operator/operator hcp-operators, 0.67 % clusters-demo/cluster-api/manager manager"},
		},
		"When all idle programs cost more on a machine it should bear with ours": {
			after: before,
			cpu: []CPU{
				{Where: "hypershift/operator/operator", Program: "hcp-operators", Group: Operators, Used: 2 * time.Second},
				{Where: "machine", Program: "kube kube-apiserver", Group: ManagementAPI, Used: 6 * time.Second},
				{Where: "machine", Program: "kube kube-controller-manager", Group: Other, Used: 1200 * time.Millisecond},
				{Where: "machine", Program: "kube-scheduler", Group: Other, Used: 400 * time.Millisecond},
			},
		},
		"When ours use twice as much as those that are everywhere it should be named": {
			after: before,
			cpu: []CPU{
				{Where: "hypershift/operator/operator", Program: "hcp-operators", Group: Operators, Used: 3300 * time.Millisecond},
				{Where: "machine", Program: "kube kube-controller-manager", Group: Other, Used: 1200 * time.Millisecond},
				{Where: "machine", Program: "kube kube-scheduler", Group: Other, Used: 400 * time.Millisecond},
				{Where: "clusters-demo/kube-controller-manager/kube-controller-manager", Program: "kube kube-controller-manager", Group: Other, Used: time.Second},
			},
			want: []string{"operators used 5.50 % of a core (bound 5.3 %)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := judge(observation{length: time.Minute, before: before, after: tc.after, clients: tc.clients, cpu: tc.cpu}, DefaultBounds())
			g.Expect(r.Problems).To(HaveLen(len(tc.want)), "%v", r.Problems)
			for i, want := range tc.want {
				g.Expect(r.Problems[i]).To(ContainSubstring(want))
			}
			var out strings.Builder
			r.Print(&out)
			if len(tc.want) == 0 {
				g.Expect(out.String()).To(ContainSubstring("It is quiet."))
			}
		})
	}
}

func TestMayBeTheMachine(t *testing.T) {
	probe := func(manager string) object {
		return object{server: managementName, kind: "Event", namespace: "a", name: "b.1", resourceVersion: "9",
			managed: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}}, fields: fieldpath.Flatten(map[string]any{"reason": "Unhealthy"})}
	}
	node := Requests{Client: Client{managementName, "system:node:worker", "kubelet"}, Count: 9, Writes: 1, What: []string{"1× create events a/b.1"}}
	hot := []CPU{{Where: "hypershift/operator/operator", Program: "hcp-operators", Group: Operators, Used: 2 * time.Second}}
	other := Requests{Client: Client{managementName, "system:serviceaccount:a:b", "manager"}, Count: 9, Writes: 1, What: []string{"1× patch configmaps a/b"}}
	for name, tc := range map[string]struct {
		made    []object
		clients []Requests
		cpu     []CPU
		want    bool
	}{
		"When nothing was found it should be no":                          {},
		"When a kubelet made an event it should be yes":                   {made: []object{probe("kubelet")}, clients: []Requests{node}, want: true},
		"When somebody else made one it should be no":                     {made: []object{probe("scheduler")}, clients: []Requests{node}},
		"When a kubelet made an event and somebody asked it should be no": {made: []object{probe("kubelet")}, clients: []Requests{node, other}},
		"When something else was made, too, it should be no":              {made: []object{probe("kubelet"), {server: managementName, kind: "Pod", name: "p", resourceVersion: "1"}}, clients: []Requests{node}},
		"When nobody made anything and a kubelet asked it should be no":   {clients: []Requests{node}},
		"When a program took long it should be yes":                       {cpu: hot, want: true},
		"When it did and a kubelet made an event it should be yes":        {cpu: hot, made: []object{probe("kubelet")}, clients: []Requests{node}, want: true},
		"When it did and asked it should be no":                           {cpu: hot, clients: []Requests{other}},
		"When it did and somebody made an event it should be no":          {cpu: hot, made: []object{probe("scheduler")}},
	} {
		t.Run(name, func(t *testing.T) {
			after := map[objectKey]object{}
			for i, o := range tc.made {
				after[objectKey{managementName, types.UID(fmt.Sprint(i))}] = o
			}
			r := judge(observation{length: time.Minute, after: after, clients: tc.clients, cpu: tc.cpu}, DefaultBounds())
			NewWithT(t).Expect(r.MayBeTheMachine()).To(Equal(tc.want), "%v", r.Problems)
		})
	}
}

func TestReadAudit(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	line := func(id, stage, verb, agent, ref, more string, second int) string {
		return fmt.Sprintf(`{"auditID":%q,"stage":%q,"verb":%q,"userAgent":%q,"user":{"username":"u"},"requestURI":"/x%s","objectRef":%s,"responseStatus":{"code":200},"requestReceivedTimestamp":%q}`,
			id, stage, verb, agent, more, ref, at.Add(time.Duration(second)*time.Second).Format(time.RFC3339Nano)) + "\n"
	}
	pod := `{"resource":"pods","namespace":"a","name":"b"}`
	log := `6:cut short"}` + "\n" +
		line("0", "ResponseComplete", "get", "early/1", pod, "", -1) +
		line("1", "ResponseStarted", "watch", "kubelet/v1.36.3 (linux/amd64) kubernetes/abc", `{"resource":"pods"}`, "", 1) +
		line("1", "ResponseComplete", "watch", "kubelet/v1.36.3 (linux/amd64) kubernetes/abc", `{"resource":"pods"}`, "", 1) +
		line("2", "ResponseComplete", "patch", "kubelet/v1.36.3 (linux/amd64) kubernetes/abc", pod, "", 2) +
		line("3", "ResponseComplete", "patch", "kubelet/v1.36.3 (linux/amd64) kubernetes/abc", pod, "?dryRun=All", 3) +
		line("4", "ResponseComplete", "update", "kube-scheduler/v1.36.3 (linux/amd64) kubernetes/abc/leader-election", `{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"a","name":"b"}`, "", 4) +
		line("5", "ResponseComplete", "list", userAgent, `{"resource":"pods"}`, "", 5) +
		line("7", "ResponseComplete", "create", "kubelet/v1.36.3 (linux/amd64) kubernetes/abc", `{"resource":"subjectaccessreviews","apiGroup":"authorization.k8s.io"}`, "", 6) +
		line("8", "ResponseComplete", "get", "late/1", pod, "", 60)
	events, err := readAudit(strings.NewReader(log), at, at.Add(time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byClient("management", events)).To(Equal([]Requests{
		{Client: Client{"management", "u", "kubelet"}, Count: 4, Writes: 1, What: []string{
			"2× patch pods a/b", "1× create subjectaccessreviews.authorization.k8s.io", "1× watch pods"}},
		{Client: Client{"management", "u", "kube-scheduler/leader-election"}, Count: 1, Leases: 1, What: []string{"1× update leases.coordination.k8s.io a/b"}},
	}), "When requests are counted each should count once, within the time, and ours not at all")
}

func FuzzReadAudit(f *testing.F) {
	f.Add(`{"auditID":"1","verb":"get","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-11-22T12:00:00Z","userAgent":"a/b (c) d/e/f"}`)
	f.Fuzz(func(t *testing.T, log string) {
		events, _ := readAudit(strings.NewReader(log), time.Time{}, time.Now().Add(24*time.Hour))
		byClient("x", events)
	})
}

func TestUsage(t *testing.T) {
	g := NewWithT(t)
	stat := "42 (kube (proxy) x) S 1 1 1 0 -1 0 0 0 0 0 150 50 7 3 20 0 1 0 4711 0 0"
	p, err := parseStat(42, stat)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p).To(Equal(process{pid: 42, program: "kube (proxy) x", started: 4711, used: 2 * time.Second, children: 100 * time.Millisecond}))
	for _, bad := range []string{"", "1 (x", "1 (x) S 1 2"} {
		_, err := parseStat(1, bad)
		g.Expect(err).To(HaveOccurred(), bad)
	}
	g.Expect(role([]string{"/state/bin/kube-apiserver", "--x"}, "kube")).To(Equal("kube-apiserver"))
	g.Expect(role([]string{"/usr/bin/hcp-operators", "ignition-server", "run"}, "hcp-operators")).To(Equal("ignition-server"))
	g.Expect(role([]string{"/usr/bin/webapp", "--listen=x"}, "webapp")).To(BeEmpty())

	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", GenerateName: "operator-6d5-", Name: "operator-6d5-x", Labels: map[string]string{"pod-template-hash": "6d5"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "operator", ContainerID: "containerd://abc"}}}}
	operator := func(pid int, started uint64, used time.Duration) process {
		return process{pid: pid, started: started, program: "hcp-operators", role: "hypershift-operator", pod: "uid", cgroup: "abc", used: used}
	}
	host := process{pid: 9, program: "kube", role: "kube-apiserver", cmdline: "/state/bin/kube-apiserver", used: 3 * time.Second}
	foreign := process{pid: 10, program: "etcd", cmdline: "/usr/bin/etcd", used: time.Hour}
	before := map[int]process{1: operator(1, 5, 10*time.Second), 2: operator(2, 5, time.Hour)}
	after := map[int]process{1: operator(1, 5, 11*time.Second), 2: operator(2, 6, 2*time.Second), 9: host, 10: foreign}
	g.Expect(usage(before, after, pods{"uid": pod}, func(p process) bool { return strings.HasPrefix(p.cmdline, "/state/") })).To(Equal([]CPU{
		{Where: "hypershift/operator/operator", Program: "hcp-operators hypershift-operator", Group: Operators, Used: 3 * time.Second},
		{Where: "machine", Program: "kube kube-apiserver", Group: ManagementAPI, Used: 3 * time.Second},
	}), "When a process began anew it should count as a whole, and programs of others not at all")
}

func TestThisMachine(t *testing.T) {
	g := NewWithT(t)
	found, err := readProcesses("/proc")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).NotTo(BeEmpty())
	_, err = readProcesses(t.TempDir())
	g.Expect(err).To(HaveOccurred())
}
