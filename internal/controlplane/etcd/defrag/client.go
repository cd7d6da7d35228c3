package defrag

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
			Revision string `json:"revision"`
		} `json:"header"`
		Leader      string   `json:"leader"`
		DBSize      string   `json:"dbSize"`
		DBSizeInUse string   `json:"dbSizeInUse"`
		DBSizeQuota string   `json:"dbSizeQuota"`
		Errors      []string `json:"errors"`
		IsLearner   bool     `json:"isLearner"`
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	m := member{url: url}
	if err := e.call(ctx, url+"/v3/maintenance/status", struct{}{}, &answer); err != nil {
		m.unhealthy = err.Error()
		return m
	}
	if len(answer.Errors) > 0 {
		m.noSpace, m.unhealthy = e.onlyNoSpace(ctx, url, answer.Errors)
	}
	if answer.IsLearner {
		m.unhealthy = "it is still learning"
	}
	m.id, m.leader = number[uint64](answer.Header.MemberID), number[uint64](answer.Leader)
	m.size, m.inUse = number[int64](answer.DBSize), number[int64](answer.DBSizeInUse)
	m.quota, m.revision = cmp.Or(number[int64](answer.DBSizeQuota), defaultQuota), number[int64](answer.Header.Revision)
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
	return e.call(ctx, url+"/v3/maintenance/defragment", struct{}{}, &struct{}{})
}

// The alarm that a member raises whose database is as large as its quota.
const alarmNoSpace = "NOSPACE"

// alarm is one that is raised, and by whom.
type alarm struct {
	MemberID string `json:"memberID"`
	Alarm    string `json:"alarm"`
}

// alarms are those that any member has raised.
func (e endpoints) alarms(ctx context.Context, url string) ([]alarm, error) {
	var answer struct {
		Alarms []alarm `json:"alarms"`
	}
	err := e.call(ctx, url+"/v3/maintenance/alarm", map[string]string{"action": "GET"}, &answer)
	return answer.Alarms, err
}

// onlyNoSpace tells what a status complains of apart: a lack of space, which is for this package to put right, from all else.
func (e endpoints) onlyNoSpace(ctx context.Context, url string, complaints []string) (full bool, unhealthy string) {
	raised, err := e.alarms(ctx, url)
	if err != nil {
		return false, err.Error()
	}
	for _, a := range raised {
		if a.Alarm != alarmNoSpace {
			return full, fmt.Sprintf("member %s has raised the alarm %s", a.MemberID, a.Alarm)
		}
		full = true
	}
	// Each alarm is one complaint; more is something else, such as that there is no leader.
	if len(complaints) > len(raised) {
		return full, complaints[0]
	}
	return full, ""
}

// disarm takes the alarms of members that had no space back.
func (e endpoints) disarm(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	raised, err := e.alarms(ctx, url)
	for _, a := range raised {
		if a.Alarm == alarmNoSpace {
			err = errors.Join(err, e.call(ctx, url+"/v3/maintenance/alarm", map[string]string{"action": "DEACTIVATE", "memberID": a.MemberID, "alarm": a.Alarm}, &struct{}{}))
		}
	}
	return err
}

// compact drops what was before the revision. It is no error when that was done before.
func (e endpoints) compact(ctx context.Context, url string, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	err := e.call(ctx, url+"/v3/kv/compaction", map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, &struct{}{})
	if refused := (&refusedError{}); errors.As(err, &refused) && refused.status == http.StatusBadRequest {
		return nil
	}
	return err
}

// refusedError is an answer of etcd other than 200.
type refusedError struct {
	url    string
	status int
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("asking etcd at %s: it answered %d", e.url, e.status)
}

func (e endpoints) call(ctx context.Context, url string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a request to etcd: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
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
		return &refusedError{url: url, status: resp.StatusCode}
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("reading the answer of etcd at %s: it is no status", url)
	}
	return nil
}
