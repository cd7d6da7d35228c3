package testenv

import (
	"context"
	"errors"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrFault is what a FaultClient answers instead of the API server.
var ErrFault = errors.New("fault injected by the test")

// Fault is what happens to the n-th write.
type Fault int

const (
	// FailWrite refuses the write; later ones go through.
	FailWrite Fault = iota
	// DropAnswer does the write but reports an error, as when the connection breaks before the answer.
	DropAnswer
	// Crash does the write and refuses every request after it, as when the process dies right there.
	Crash
)

// FaultClient counts the writes that go through it and injects one fault. It is safe for concurrent use.
type FaultClient struct {
	client.WithWatch
	real client.WithWatch

	mu      sync.Mutex
	at      int
	fault   Fault
	writes  int
	crashed bool
}

// NewFaultClient wraps c; the fault happens at the at-th write, counted from 1. at 0 injects nothing and only counts.
func NewFaultClient(c client.WithWatch, fault Fault, at int) *FaultClient {
	f := &FaultClient{real: c, at: at, fault: fault}
	f.WithWatch = interceptor.NewClient(c, f.funcs())
	return f
}

// Beside is another client of the same process: its writes count with those of f, they meet the same fault, and it dies with f.
func (f *FaultClient) Beside(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, f.funcs())
}

// Writes is how many writes were asked for so far.
func (f *FaultClient) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// Fired says whether the fault has happened; when it has not, the code under test makes fewer writes than at.
func (f *FaultClient) Fired() bool { return f.at > 0 && f.Writes() >= f.at }

func (f *FaultClient) read(do func() error) error {
	f.mu.Lock()
	crashed := f.crashed
	f.mu.Unlock()
	if crashed {
		return ErrFault
	}
	return do()
}

func (f *FaultClient) write(do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return ErrFault
	}
	f.writes++
	if f.writes != f.at {
		return do()
	}
	switch f.fault {
	case FailWrite:
		return ErrFault
	case Crash:
		f.crashed = true
	case DropAnswer:
	}
	if err := do(); err != nil {
		return err
	}
	return ErrFault
}

// asks tells that a creation makes nothing: it is a dry run, or a question.
func asks(obj client.Object, opts []client.CreateOption) bool {
	o := &client.CreateOptions{}
	o.ApplyOptions(opts)
	_, review := obj.(*authorizationv1.SelfSubjectAccessReview)
	return review || len(o.DryRun) > 0
}

func (f *FaultClient) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return f.read(func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return f.read(func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			do := func() error { return c.Create(ctx, obj, opts...) }
			if asks(obj, opts) {
				return f.read(do)
			}
			return f.write(do)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return f.write(func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return f.write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.write(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return f.write(func() error { return c.Apply(ctx, obj, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
			return f.write(func() error { return c.SubResource(sub).Create(ctx, obj, body, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return f.write(func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return f.write(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return f.write(func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
	}
}
