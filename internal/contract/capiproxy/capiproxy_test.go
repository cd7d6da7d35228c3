package capiproxy

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	sidecar "hcp.internal/platform/internal/sidecar/capiproxy"
)

func TestAdd(t *testing.T) {
	pod := func() *corev1.PodSpec {
		return &corev1.PodSpec{InitContainers: []corev1.Container{{Name: "prober"}}, Containers: []corev1.Container{{Name: "main"}, {Name: "beside"}}}
	}
	names := func(list []corev1.Container) (names []string) {
		for _, c := range list {
			names = append(names, c.Name)
		}
		return names
	}
	t.Run("When there are native sidecars it should start before everything else and go on running", func(t *testing.T) {
		g := NewWithT(t)
		p := pod()
		Add(p, Container("r/i:1"), true)
		g.Expect(names(p.InitContainers)).To(Equal([]string{Name, "prober"}))
		g.Expect(p.InitContainers[0].RestartPolicy).To(HaveValue(Equal(corev1.ContainerRestartPolicyAlways)))
		g.Expect(p.InitContainers[0].StartupProbe).NotTo(BeNil(), "or the others would start before it serves")
		g.Expect(names(p.Containers)).To(Equal([]string{"main", "beside"}))
	})
	t.Run("When there are none it should be a container behind the others", func(t *testing.T) {
		g := NewWithT(t)
		p := pod()
		Add(p, Container("r/i:1"), false)
		g.Expect(names(p.InitContainers)).To(Equal([]string{"prober"}))
		g.Expect(names(p.Containers)).To(Equal([]string{"main", "beside", Name}))
		g.Expect(p.Containers[2].RestartPolicy).To(BeNil())
		g.Expect(p.Containers[0].Args).To(Equal([]string{"--kubeconfig=" + Kubeconfig}), "or it would go to the management cluster itself until the file is there")
	})
	t.Run("When there are none and the program is told already it should be told once", func(t *testing.T) {
		g := NewWithT(t)
		p := pod()
		p.Containers[0].Args = []string{"run", "--kubeconfig=" + Kubeconfig}
		Add(p, Container("r/i:1"), false)
		g.Expect(p.Containers[0].Args).To(Equal([]string{"run", "--kubeconfig=" + Kubeconfig}))
	})
	t.Run("When a program looks for its management cluster it should find the proxy, and no other container should", func(t *testing.T) {
		g := NewWithT(t)
		p := pod()
		Add(p, Container("r/i:1"), true)
		g.Expect(p.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "KUBECONFIG", Value: Kubeconfig}))
		g.Expect(p.Containers[0].VolumeMounts).To(ConsistOf(corev1.VolumeMount{Name: Name, MountPath: folder, ReadOnly: true}))
		g.Expect(p.Containers[1].Env).To(BeEmpty())
		g.Expect(p.Volumes).To(HaveLen(1))
	})
}

// The container and the program are changed by different hands: what one passes, the other must take.
func TestArguments(t *testing.T) {
	g := NewWithT(t)
	c := Container("r/i:1")
	g.Expect(c.Name).To(Equal(sidecar.Name))
	cmd := sidecar.Command()
	g.Expect(cmd.Name()).To(Equal(c.Args[0]))
	g.Expect(cmd.ParseFlags(c.Args[1:])).To(Succeed())
	g.Expect(cmd.Flags().Lookup("health-port").DefValue).To(Equal("6446"))
	g.Expect(healthPort).To(Equal(sidecar.DefaultHealthPort))
	// Ports of programs that it stands beside.
	for _, taken := range []int{8080, 8443, 8081, 9440, 9443, 8085, 9191, 9000, 6060} {
		g.Expect(slices.Contains([]int{sidecar.DefaultPort, sidecar.DefaultHealthPort}, taken)).To(BeFalse(), "port %d", taken)
	}
}
