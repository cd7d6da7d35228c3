package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/pause"
)

func TestHibernated(t *testing.T) {
	asked := func(value string) func(*state.Observed) {
		return func(obs *state.Observed) {
			if obs.HC.Annotations == nil {
				obs.HC.Annotations = map[string]string{}
			}
			obs.HC.Annotations[hyperv1.HibernateAnnotation] = value
			obs.Hibernation = pause.Hibernation(obs.HC.Annotations, statetest.Noon)
		}
	}
	controlPlane := func(told bool, status metav1.ConditionStatus, reason string) func(*state.Observed) {
		return func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{}
			if told {
				obs.HCP.Annotations = map[string]string{hyperv1.HibernateAnnotation: "true"}
			}
			if reason != "" {
				obs.HCP.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterHibernated, Status: status, Reason: reason, Message: "so"}}
			}
		}
	}
	pool := func(name string, status corev1.ConditionStatus) func(*state.Observed) {
		return func(obs *state.Observed) {
			p := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if status != "" {
				p.Status.Conditions = []hyperv1.NodePoolCondition{{Type: hyperv1.HostedClusterHibernated, Status: status}}
			}
			obs.Pools = append(obs.Pools, p)
		}
	}
	// local is a control plane that Karpenter makes machines for: how many, and whether they are asked for.
	local := func(asked bool, machines int32) func(*state.Observed) {
		return func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{}
			obs.HCP.Spec.Platform.Type = hyperv1.LocalPlatform
			if asked {
				obs.HCP.Spec.AutoNode = byKarpenter()
			} else {
				obs.HCP.Status.Conditions = []metav1.Condition{{Type: hyperv1.AutoNodeEnabled, Status: "False"}}
			}
			if machines > 0 {
				obs.HCP.Status.AutoNode.NodeClaimCount = &machines
			}
		}
	}
	all := func(fs ...func(*state.Observed)) []func(*state.Observed) { return fs }
	for name, tc := range map[string]struct {
		world  []func(*state.Observed)
		sleeps bool // what the control plane is told
		want   string
	}{
		"When nobody asks for it nothing should be said":                    {world: all(controlPlane(false, "", ""), pool("a", ""))},
		"When there is no control plane yet it should wait":                 {world: all(asked("true")), want: "False/WorkersStopping: " + messageHCPMissing},
		"When a pool has not said anything the control plane should run on": {world: all(asked("true"), controlPlane(false, "", ""), pool("a", ""), pool("b", "True")), want: "False/WorkersStopping: NodePools still have machines, or drain them: a"},
		"When a pool still has machines the control plane should run on":    {world: all(asked("true"), controlPlane(false, "", ""), pool("a", "False")), want: "False/WorkersStopping: NodePools still have machines, or drain them: a"},
		"When all machines are gone the control plane should be told":       {world: all(asked("true"), controlPlane(false, "", ""), pool("a", "True")), sleeps: true, want: "False/FallingAsleep: the control plane is stopping"},
		"When there are no pools the control plane should be told":          {world: all(asked("true"), controlPlane(false, "", "")), sleeps: true, want: "False/FallingAsleep: the control plane is stopping"},
		"When Karpenter has not been told to go the control plane should run on": {world: all(asked("true"), local(true, 2), pool("a", "False")),
			want: "False/WorkersStopping: NodePools still have machines, or drain them: a; Karpenter is being removed until the cluster wakes, after its machines are drained and gone, of which there are 2: `kubectl get nodeclaims` in the hosted cluster shows them"},
		"When Karpenter's machines are gone, but it isn't, the control plane should run on": {world: all(asked("true"), local(false, 0), pool("a", "True")), want: "False/WorkersStopping: Karpenter is being removed until the cluster wakes"},
		"When it falls asleep it should say how far it is":                                  {world: all(asked("true"), controlPlane(true, "False", "FallingAsleep")), sleeps: true, want: "False/FallingAsleep: so"},
		"When a pool is made meanwhile it should go on sleeping":                            {world: all(asked("true"), controlPlane(true, "True", "Asleep"), pool("new", "")), sleeps: true, want: "True/Asleep: so"},
		"When it sleeps until a time it should say when it wakes":                           {world: all(asked(statetest.Noon.Add(time.Hour).Format(time.RFC3339)), controlPlane(true, "True", "Asleep")), sleeps: true, want: "True/Asleep: so; it wakes at " + statetest.Noon.Add(time.Hour).Format(time.RFC3339)},
		"When that time has passed it should wake":                                          {world: all(asked(statetest.Noon.Add(-time.Hour).Format(time.RFC3339)), controlPlane(true, "True", "Asleep")), want: "False/Waking: the control plane is starting"},
		"When it is put to sleep again while it wakes it should be told anew":               {world: all(asked("true"), controlPlane(false, "False", "Waking")), sleeps: true, want: "False/FallingAsleep: the control plane is stopping"},
		"When it wakes it should say how far it is":                                         {world: all(controlPlane(false, "False", "Waking")), want: "False/Waking: so"},
		"When nobody can read what is asked for it should say what to write": {world: all(asked("tonight"), controlPlane(false, "", "")),
			want: `False/InvalidValue: annotation hypershift.openshift.io/hibernate is "tonight", which is neither true or false nor a time: write it like 2027-01-31T12:00:00Z`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := statetest.Seen(tc.world...)
			live := map[string]string{}
			if obs.HCP != nil {
				live = obs.HCP.Annotations
			}
			g.Expect(obs.PutsToSleep(live)).To(Equal(tc.sleeps))
			got := ""
			if c := hibernated(obs); c != nil {
				got = string(c.Status) + "/" + c.Reason + ": " + c.Message
			}
			g.Expect(got).To(Equal(tc.want))
			available := metav1.Condition{Type: hyperv1.HostedClusterAvailable, Status: "False", Reason: "X"}
			g.Expect(calm(obs, available).Reason == hyperv1.HostedClusterHibernated).To(Equal(obs.Hibernation.Active), "a sleeping cluster is not broken")
		})
	}
	t.Run("When a sleeping cluster is deleted its control plane should wake for that", func(t *testing.T) {
		obs := statetest.Seen(asked("true"), controlPlane(true, "True", "Asleep"), func(obs *state.Observed) { obs.HC.DeletionTimestamp = &metav1.Time{Time: statetest.Noon} })
		NewWithT(t).Expect(obs.PutsToSleep(obs.HCP.Annotations)).To(BeFalse())
	})
}

func byKarpenter() *hyperv1.AutoNode {
	return &hyperv1.AutoNode{Provisioner: hyperv1.ProvisionerConfig{Name: hyperv1.ProvisionerKarpenter, Karpenter: &hyperv1.KarpenterConfig{Platform: hyperv1.KarpenterLocalPlatform}}}
}

func TestSleepingKarpenter(t *testing.T) {
	ec2 := byKarpenter()
	ec2.Provisioner.Karpenter.Platform = hyperv1.KarpenterAWSPlatform
	for name, tc := range map[string]struct {
		spec   *hyperv1.AutoNode
		sleeps bool
		gone   bool
		want   bool
	}{
		"When the cluster is awake what is asked for should be passed on":          {spec: byKarpenter(), want: true},
		"When the cluster is to sleep nobody should ask for Karpenter":             {spec: byKarpenter(), sleeps: true},
		"When Karpenter is a payload's own it should stay":                         {spec: ec2, sleeps: true, want: true},
		"When a sleeping cluster is deleted what is asked for should be passed on": {spec: byKarpenter(), sleeps: true, gone: true, want: true},
		"When nothing is asked for that should be passed on":                       {sleeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := statetest.Seen()
			obs.HC.Spec.AutoNode = tc.spec
			obs.Hibernation.Active = tc.sleeps
			if tc.gone {
				obs.HC.DeletionTimestamp = &metav1.Time{Time: statetest.Noon}
			}
			g.Expect(obs.AutoNode(tc.spec) != nil).To(Equal(tc.want))
			if tc.spec != nil && !tc.want {
				g.Expect(autoNode(obs)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", hyperv1.HostedClusterHibernated)))
			}
		})
	}
}

func TestResting(t *testing.T) {
	fails := metav1.Condition{Type: hyperv1.ClusterVersionSucceeding, Status: metav1.ConditionFalse, Reason: "X", Message: "etcd is slow"}
	sleep := func(reason string) *metav1.Condition {
		return &metav1.Condition{Type: hyperv1.HostedClusterHibernated, Reason: reason}
	}
	for name, tc := range map[string]struct {
		sleep *metav1.Condition
		in    metav1.Condition
		want  metav1.ConditionStatus
	}{
		"When the cluster is awake it should say that its upgrade fails":            {in: fails, want: metav1.ConditionFalse},
		"When the cluster sleeps it should not":                                     {sleep: sleep(hyperv1.AsleepReason), in: fails, want: metav1.ConditionUnknown},
		"When the cluster wakes it should not":                                      {sleep: sleep(hyperv1.WakingReason), in: fails, want: metav1.ConditionUnknown},
		"When what is asked for can't be read the cluster is awake and it should":   {sleep: sleep(hyperv1.InvalidHibernateValueReason), in: fails, want: metav1.ConditionFalse},
		"When the upgrade succeeds while the cluster falls asleep it should say so": {sleep: sleep(hyperv1.FallingAsleepReason), in: metav1.Condition{Type: fails.Type, Status: metav1.ConditionTrue}, want: metav1.ConditionTrue},
		"When another condition is False it should stay so":                         {sleep: sleep(hyperv1.AsleepReason), in: metav1.Condition{Type: hyperv1.EtcdAvailable, Status: metav1.ConditionFalse}, want: metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(resting(tc.sleep, tc.in).Status).To(Equal(tc.want))
		})
	}
}
