package outcome

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/platform/internal/clip"
)

// tracer is the name under which traces of passes are sent.
const tracer = "hcp.internal/platform/internal/kube/outcome"

// maxTraced bounds what a trace tells of an error, in bytes.
const maxTraced = 512

// passOf is what passes of a reconciler are called in traces: its type, such as nodepool.Reconciler.
func passOf(r reconcile.Reconciler) string {
	return strings.TrimLeft(fmt.Sprintf("%T", r), "*")
}

// begin starts the trace of a pass, and returns what ends it. While nobody wants traces (see process) it does next to nothing.
func begin(ctx context.Context, by reconcile.Reconciler, req reconcile.Request) (context.Context, func(reconcile.Result, error)) {
	ctx, span := otel.Tracer(tracer).Start(ctx, passOf(by))
	if !span.IsRecording() {
		return ctx, func(reconcile.Result, error) {}
	}
	span.SetAttributes(attribute.String("k8s.namespace.name", req.Namespace), attribute.String("k8s.object.name", req.Name))
	return ctx, func(result reconcile.Result, err error) {
		defer span.End()
		span.SetAttributes(attribute.Float64("requeue_after_seconds", result.RequeueAfter.Seconds()), attribute.Bool("lost_race", IsConflict(err)))
		if err != nil && !IsConflict(err) {
			span.SetStatus(codes.Error, clip.To(err.Error(), maxTraced))
		}
	}
}
