package hostedcluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/step"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/version"
)

func TestPlanOperators(t *testing.T) {
	machines := func(obs *state.Observed) {
		obs.HC.Spec.Platform.Type = hyperv1.LocalPlatform
		obs.Platform, _ = platform.For(hyperv1.LocalPlatform)
		obs.Capabilities.ClusterAPI, obs.HCP = true, &hyperv1.HostedControlPlane{}
		obs.Pools = []hyperv1.NodePool{{}}
	}
	for name, tc := range map[string]struct {
		world    func(*state.Observed)
		operator []string // components of its step
		capi     []string
		rights   bool   // of Cluster API, with its certificate
		err      string // of both steps
	}{
		"When there are no machines it should deploy the operator, and leave nothing of Cluster API": {
			world: func(*state.Observed) {}, operator: []string{"control-plane-operator"}, capi: []string{"cluster-api", "capi-provider"},
		},
		"When there are machines it should give Cluster API its rights and its certificate": {
			world: machines, operator: []string{"control-plane-operator"}, capi: []string{"cluster-api", "capi-provider"}, rights: true,
		},
		"When the management cluster could not be read it should leave both as they are": {
			world: func(obs *state.Observed) { machines(obs); obs.OperatorsErr = errors.New("no nodes") }, err: "no nodes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := steps(statetest.Seen(tc.world), options{})
			at := func(name string) int { return slices.IndexFunc(all, func(s step.Step) bool { return s.Name == name }) }
			operator, capi := all[at(step.Operators)], all[at(step.CAPIOperators)]
			g.Expect(deployedBy(operator)).To(Equal(tc.operator))
			g.Expect(deployedBy(capi)).To(Equal(tc.capi))
			g.Expect(capi.Certificate != nil).To(Equal(tc.rights))
			g.Expect(len(capi.Shared) + len(capi.Apply)).To(Equal(map[bool]int{true: 2}[tc.rights]))
			for _, s := range []step.Step{operator, capi} {
				g.Expect(s.Class).To(Equal(step.Blockable))
				if tc.err != "" {
					g.Expect(s.Err).To(MatchError(tc.err))
				} else {
					g.Expect(s.Err).NotTo(HaveOccurred())
				}
			}
			g.Expect(at(step.Release)).To(BeNumerically("<", at(step.Operators)), "it runs the release")
			g.Expect(at(step.CAPIOperators)).To(BeNumerically("<", at(step.Policies)))
		})
	}
}

func TestInstalledImages(t *testing.T) {
	const own, installed = "registry.example.com/own:1", "registry.example.com/installed:1"
	env := map[string]string{"IMAGE_CLUSTER_API": installed, "IMAGE_AGENT_CAPI_PROVIDER": installed}
	for name, tc := range map[string]struct {
		env         map[string]string
		annotations map[string]string
		manager     string
		provider    string // "": the release's
	}{
		"When the installation names no images it should run the release's": {},
		"When the installation names images it should run them":             {env: env, manager: installed, provider: installed},
		"When only the hosted cluster names images it should run them": {
			annotations: map[string]string{hyperv1.ClusterAPIManagerImage: own, hyperv1.ClusterAPIAgentProviderImage: own}, manager: own, provider: own},
		"When the hosted cluster names one of its own it should run that": {env: env,
			annotations: map[string]string{hyperv1.ClusterAPIManagerImage: own, hyperv1.ClusterAPIAgentProviderImage: own}, manager: own, provider: own},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := statetest.Seen(func(obs *state.Observed) {
				obs.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AgentPlatform, Agent: &hyperv1.AgentPlatformSpec{AgentNamespace: "agents"}}
				obs.Platform, _ = platform.For(hyperv1.AgentPlatform)
				obs.HC.Status.IgnitionEndpoint = "ignition.example.com" // or there is nothing for machines yet
				obs.Capabilities.ClusterAPI, obs.HCP, obs.HC.Annotations = true, &hyperv1.HostedControlPlane{}, tc.annotations
			})
			before := obs.HC.DeepCopy()
			r := &Reconciler{Images: platform.ImagesFrom(func(key string) string { return tc.env[key] })}
			s := capiOperatorsStep(obs, r.operatorSettings())
			g.Expect(s.Err).NotTo(HaveOccurred())
			g.Expect(s.Deploy.ClusterAPI.Manager.Image).To(Equal(tc.manager))
			image := s.Deploy.ClusterAPI.Provider.Spec.Template.Spec.Containers[0].Image
			if tc.provider == "" {
				g.Expect(image).NotTo(ContainSubstring("registry.example.com"))
			} else {
				g.Expect(image).To(Equal(tc.provider))
			}
			g.Expect(s.Deploy.Context.HCP.Annotations[hyperv1.ClusterAPIManagerImage]).To(Equal(tc.manager), "payloads look there")
			g.Expect(obs.HC).To(Equal(before), "nothing of it is written to the hosted cluster")
		})
	}
}

func deployedBy(s step.Step) (all []string) {
	for _, c := range s.Deploy.Components() {
		all = append(all, c.Name())
	}
	return all
}

func TestOperatorVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"When the image is our own it should be our version":       {ownLabels, version.Semver()},
		"When another image tells its version it should be that":   {map[string]string{images.LabelVersion: "1.2.3"}, "1.2.3"},
		"When the label is no version nothing should be noted":     {map[string]string{images.LabelVersion: strings.Repeat("x", 300)}, ""},
		"When the image is of before labels nothing should be":     {map[string]string{}, ""},
		"When labels can't be read nothing should be noted either": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(operatorVersion(tc.labels)).To(Equal(tc.want))
		})
	}
}
