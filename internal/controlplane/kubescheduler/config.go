package kubescheduler

import configv1 "hcp.internal/api/config/v1"

// The scheduler keeps its lease through a minute without the hosted API, like everything else that elects a leader here. The
// others try again every 26 s; it tries every 5 s, because it starts before the hosted API does, and what it missed by a
// moment would otherwise leave the cluster without a scheduler for up to a minute.
const (
	leaseDuration = "2m17s"
	renewDeadline = "1m47s"
	retryPeriod   = "5s"
)

// configuration is KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 as far as we set it. The published Go type
// writes out every extension point that its own version has, and a scheduler of the version before refuses those it does
// not know.
type configuration struct {
	APIVersion       string           `json:"apiVersion"`
	Kind             string           `json:"kind"`
	ClientConnection clientConnection `json:"clientConnection"`
	LeaderElection   leaderElection   `json:"leaderElection"`
	EnableProfiling  bool             `json:"enableProfiling"`
	Profiles         []profile        `json:"profiles,omitempty"`
}

type clientConnection struct {
	Kubeconfig string `json:"kubeconfig"`
}

type leaderElection struct {
	LeaderElect   bool   `json:"leaderElect"`
	LeaseDuration string `json:"leaseDuration"`
	RenewDeadline string `json:"renewDeadline"`
	RetryPeriod   string `json:"retryPeriod"`
}

type profile struct {
	SchedulerName string               `json:"schedulerName"`
	PluginConfig  []pluginConfig       `json:"pluginConfig,omitempty"`
	Plugins       map[string]pluginSet `json:"plugins,omitempty"` // by extension point
}

type pluginConfig struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

type pluginSet struct {
	Enabled  []plugin `json:"enabled,omitempty"`
	Disabled []plugin `json:"disabled,omitempty"`
}

type plugin struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight,omitempty"`
}

const (
	schedulerAPI  = "kubescheduler.config.k8s.io/v1"
	schedulerName = "default-scheduler"
)

func configOf(p configv1.SchedulerProfile) configuration {
	return configuration{
		APIVersion:       schedulerAPI,
		Kind:             "KubeSchedulerConfiguration",
		ClientConnection: clientConnection{Kubeconfig: "/etc/kubernetes/kubeconfig/kubeconfig"},
		LeaderElection:   leaderElection{LeaderElect: true, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod},
		Profiles:         profilesOf(p),
	}
}

// profilesOf says what a profile means. LowNodeUtilization is the scheduler's own way.
func profilesOf(p configv1.SchedulerProfile) []profile {
	switch p {
	case configv1.HighNodeUtilization: // Fill few nodes, so that others can go.
		return []profile{{
			SchedulerName: schedulerName,
			PluginConfig: []pluginConfig{{Name: "NodeResourcesFit", Args: map[string]any{
				"apiVersion": schedulerAPI, "kind": "NodeResourcesFitArgs",
				"scoringStrategy": map[string]any{"type": "MostAllocated"},
			}}},
			Plugins: map[string]pluginSet{"score": {
				Enabled:  []plugin{{Name: "NodeResourcesFit", Weight: 5}},
				Disabled: []plugin{{Name: "NodeResourcesBalancedAllocation"}},
			}},
		}}
	case configv1.NoScoring: // The first node that fits, for speed.
		all := pluginSet{Disabled: []plugin{{Name: "*"}}}
		return []profile{{SchedulerName: schedulerName, Plugins: map[string]pluginSet{"preScore": all, "score": all}}}
	}
	return nil
}
