package etcdinit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// ResetMember decides how a member starts and writes it down for etcd.
type ResetMember struct {
	Template, Out string // etcd's configuration file as a template, and where the finished one goes
	StateFile     string // gets "new" or "existing", for an etcd that is started another way; empty: not written
	Name, DataDir string // override the template's when set
	// Marker is a file that exists, and doesn't say "false", once the cluster has had a quorum; empty: unknown. A member without data then never founds.
	Marker   string
	Endpoint string // the service of ready members
	TLS      TLSFiles
	Log      io.Writer
	// retryEvery is the pause between attempts on a cluster that answered but couldn't do it.
	retryEvery time.Duration
	// giveUp bounds everything once a cluster has been found.
	giveUp time.Duration
}

// Run observes, plans, changes the cluster's members if it must, and writes the files.
func (r ResetMember) Run(ctx context.Context) error {
	cfg, settings, err := Load(r.Template, r.Name, r.DataDir)
	if err != nil {
		return err
	}
	hasData, err := hasMember(settings.DataDir)
	if err != nil {
		return err
	}
	founded := false
	if r.Marker != "" {
		raw, err := os.ReadFile(r.Marker)
		if founded = err == nil && strings.TrimSpace(string(raw)) != "false"; err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("looking for the marker of a founded cluster: %w", err)
		}
	}
	obs := Observed{Self: settings.Self, HasData: hasData, Founded: founded}
	state, cluster, err := r.resolve(ctx, obs, settings.Founders)
	if err != nil {
		return err
	}
	cfg[keyInitialState] = string(state)
	if cluster != "" {
		cfg[keyInitialCluster] = cluster
	}
	if r.StateFile != "" {
		if err := writeFile(r.StateFile, []byte(state)); err != nil {
			return err
		}
	}
	return cfg.write(r.Out)
}

// resolve returns the state to start in and, when joining, the members to join.
func (r ResetMember) resolve(ctx context.Context, obs Observed, founders []Peer) (ClusterState, string, error) {
	peers, err := r.look(ctx, &obs, founders)
	if err != nil {
		return "", "", err
	}
	// A peer's view may be old. That is good enough for a start that changes nothing; changes are decided again below,
	// on what the leader says.
	if plan := planFor(obs); plan.State == StateNew {
		r.logf("%s", plan.Why)
		return StateNew, "", nil
	}
	cluster, err := newGateway(clientEndpoints(r.Endpoint, peers, obs.Cluster), r.TLS)
	if err != nil {
		return "", "", err
	}
	return r.join(ctx, cluster, obs, founders)
}

// look fills in what the other members say and returns those that listen. It looks again while the plan is to wait.
func (r ResetMember) look(ctx context.Context, obs *Observed, founders []Peer) ([]Peer, error) {
	if obs.HasData {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.giveUp)
	defer cancel()
	for {
		peers, err := listening(ctx, obs.Self, founders)
		if err != nil {
			return nil, err
		}
		if obs.Cluster, err = view(ctx, peers, r.TLS); err != nil {
			return nil, err
		}
		plan := planFor(*obs)
		if plan.State != "" {
			return peers, nil
		}
		r.logf("%s", plan.Why)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("looking for the running etcd cluster: %w; when its other members are lost for good, restore it from a snapshot", ctx.Err())
		case <-time.After(r.retryEvery):
		}
	}
}

// join carries a plan out on a running cluster and tries again while it has no leader or no quorum. When it gives up, the
// init container fails and is started again later: founding a second cluster beside one that is ill would lose data.
func (r ResetMember) join(ctx context.Context, cluster remote, obs Observed, founders []Peer) (ClusterState, string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.giveUp)
	defer cancel()
	for {
		state, members, err := r.attempt(ctx, cluster, obs, founders)
		if err == nil {
			return state, members, nil
		}
		r.logf("trying again: %v", err)
		select {
		case <-ctx.Done():
			return "", "", fmt.Errorf("joining the running etcd cluster: %w (last: %w); it must have a quorum of healthy members first", ctx.Err(), err)
		case <-time.After(r.retryEvery):
		}
	}
}

func (r ResetMember) attempt(ctx context.Context, cluster remote, obs Observed, founders []Peer) (ClusterState, string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	members, err := cluster.Members(ctx)
	if err != nil {
		return "", "", err
	}
	obs.Cluster = members
	plan := planFor(obs)
	r.logf("%s", plan.Why)
	if plan.Remove != 0 {
		if err := cluster.Remove(ctx, plan.Remove); err != nil {
			return "", "", err
		}
	}
	if plan.Add {
		if members, err = cluster.Add(ctx, obs.Self.URL); err != nil {
			return "", "", err
		}
	}
	if plan.State == StateNew {
		return StateNew, "", nil
	}
	return StateExisting, initialCluster(members, obs.Self, founders), nil
}

func (r ResetMember) logf(format string, args ...any) { fmt.Fprintf(r.Log, format+"\n", args...) }

// hasMember says whether etcd left data: the database, or a log that it would be rebuilt from.
func hasMember(dataDir string) (bool, error) {
	for _, pattern := range []string{"member/snap/db", "member/wal/*.wal"} {
		found, err := filepath.Glob(filepath.Join(dataDir, pattern))
		if err != nil {
			return false, fmt.Errorf("looking into %s: %w", dataDir, err)
		}
		if len(found) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// resetMemberCommand is `hcp-sidecar etcd-init reset-member`.
func resetMemberCommand() *cobra.Command {
	r := ResetMember{retryEvery: time.Second}
	cmd := &cobra.Command{
		Use:   "reset-member",
		Short: "Write etcd's configuration file; a member that lost its disk is replaced in its cluster first",
		Example: `  hcp-sidecar etcd-init reset-member --name=$POD_NAME \
    --config-template=/etc/etcd/config/etcd.yaml --config-out=/etc/etcd/clusterstate/etcd.yaml
  etcd --config-file=/etc/etcd/clusterstate/etcd.yaml`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Log = cmd.OutOrStdout()
			return r.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Template, "config-template", "/etc/etcd/config/etcd.yaml", "etcd's configuration file, with $(VAR) for variables of the environment")
	f.StringVar(&r.Out, "config-out", "/etc/etcd/clusterstate/etcd.yaml", "file that gets the finished configuration")
	f.StringVar(&r.StateFile, "state-file", "/etc/etcd/clusterstate/state", "file that gets the word new or existing; empty: none")
	f.StringVar(&r.Name, "name", os.Getenv("POD_NAME"), "name of the member; default: $POD_NAME, else the template's")
	f.StringVar(&r.DataDir, "data-dir", "", "etcd's data directory; default: the template's")
	f.StringVar(&r.Marker, "marker", "", "file that exists, and does not say false, once the cluster has had a quorum: a member without data then waits for the others and never founds a cluster")
	f.StringVar(&r.Endpoint, "endpoint", "https://etcd-client:2379", "URL of the service of ready members")
	tlsFlags(f, &r.TLS)
	f.DurationVar(&r.giveUp, "give-up", time.Minute, "how long a running cluster that can't change its members is asked again")
	return cmd
}
