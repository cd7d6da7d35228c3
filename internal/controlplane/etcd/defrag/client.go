package defrag

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	// statusTimeout bounds a look at a member, which takes milliseconds; defragmentTimeout is for a file of 8 GiB on a slow disk.
	statusTimeout     = 5 * time.Second
	defragmentTimeout = 5 * time.Minute
	maxAnswer         = 64 << 10
)

// endpoints asks members by etcd's JSON gateway, which every member serves on its client port: no client library is needed.
type endpoints struct{ http *http.Client }

// status is what the member at url says; what keeps it from answering is in the result.
func (e endpoints) status(ctx context.Context, url string) member {
	var answer struct {
		Header struct {
			MemberID string `json:"member_id"`
		} `json:"header"`
		Leader      string   `json:"leader"`
		DBSize      string   `json:"dbSize"`
		DBSizeInUse string   `json:"dbSizeInUse"`
		Errors      []string `json:"errors"`
		IsLearner   bool     `json:"isLearner"`
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	m := member{url: url}
	if err := e.call(ctx, url+"/v3/maintenance/status", &answer); err != nil {
		m.unhealthy = err.Error()
		return m
	}
	if len(answer.Errors) > 0 {
		m.unhealthy = answer.Errors[0]
	}
	if answer.IsLearner {
		m.unhealthy = "it is still learning"
	}
	m.id, m.leader = number[uint64](answer.Header.MemberID), number[uint64](answer.Leader)
	m.size, m.inUse = number[int64](answer.DBSize), number[int64](answer.DBSizeInUse)
	return m
}

// number reads a 64-bit number, which JSON has as text; 0 when it is none.
func number[T uint64 | int64](text string) T {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return T(n)
}

// defragment returns when the member has finished.
func (e endpoints) defragment(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	return e.call(ctx, url+"/v3/maintenance/defragment", &struct{}{})
}

func (e endpoints) call(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString("{}"))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd at %s: it answered %d", url, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("reading the answer of etcd at %s: it is no status", url)
	}
	return nil
}
