package etcdinit

import (
	"context"
	"encoding/json"
	"fmt"
)

// Connection is a running cluster as others than the starting member need it: what recovers a member, above all.
type Connection struct{ g *gateway }

// Connect reaches a cluster by any of its endpoints. It does not ask anything yet.
func Connect(endpoints []string, files TLSFiles) (Connection, error) {
	g, err := newGateway(endpoints, files)
	return Connection{g}, err
}

// Members lists the members as a quorum knows them: without one there is an error.
func (c Connection) Members(ctx context.Context) ([]Member, error) { return c.g.Members(ctx) }

// Remove takes a member out. etcd refuses when those left that are connected would have no quorum.
func (c Connection) Remove(ctx context.Context, id uint64) error { return c.g.Remove(ctx, id) }

// Healthy asks one member for a read that takes a quorum, which proves that it takes part in one.
func (c Connection) Healthy(ctx context.Context, m Member) error {
	if len(m.ClientURLs) == 0 {
		return fmt.Errorf("member %x has not served yet", m.ID)
	}
	body, err := json.Marshal(map[string]any{"key": []byte("health"), "keys_only": true})
	if err != nil {
		return fmt.Errorf("encoding request: %w", err)
	}
	_, err = c.g.postTo(ctx, m.ClientURLs[0]+"/v3/kv/range", body)
	return err
}
