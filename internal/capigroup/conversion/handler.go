package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1" //nolint:staticcheck // because it is what old clients ask for
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // because it is what old clients ask for
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1" //nolint:staticcheck // because it is what old clients ask for
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1" //nolint:staticcheck // because it is what old clients ask for
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/conversion"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Handler answers ConversionReviews of version v1.
type Handler struct {
	scheme   *runtime.Scheme
	versions *versions
	metrics  *metrics
	clock    clock.PassiveClock
	room     *room
}

// NewHandler returns a Handler that looks up the versions of references in the definitions that crds reads. crds must not go through a proxy
// that renames groups, and should read live: what it says is remembered for a minute.
func NewHandler(crds client.Reader, now clock.PassiveClock) (*Handler, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clusterv1beta1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), addonsv1beta1.AddToScheme(scheme), addonsv1.AddToScheme(scheme),
		ipamv1beta1.AddToScheme(scheme), ipamv1.AddToScheme(scheme), runtimev1alpha1.AddToScheme(scheme), runtimev1.AddToScheme(scheme),
	); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return &Handler{scheme: scheme, versions: newVersions(crds, now), metrics: newMetrics(), clock: now, room: newRoom()}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	log := ctrl.LoggerFrom(r.Context())
	begun := h.clock.Now()
	leave, ok := h.room.admit(w, r)
	if !ok {
		h.metrics.failure("refused")
		return
	}
	defer leave()
	review := &apiextensionsv1.ConversionReview{}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err == nil {
		err = json.Unmarshal(raw, review)
	}
	if err != nil || review.Request == nil {
		h.metrics.failure("invalid-review")
		log.Info("Invalid conversion review request", "bytes", len(raw))
		http.Error(w, "the body must be a ConversionReview of apiextensions.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	converted, err := h.convert(r.Context(), review.Request)
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, ConvertedObjects: converted, Result: metav1.Status{Status: metav1.StatusSuccess}}
	if err != nil {
		// Objects are never quoted: one of them may be anybody's.
		log.Error(err, "Conversion request failed", "desiredAPIVersion", review.Request.DesiredAPIVersion, "objects", len(review.Request.Objects))
		response.ConvertedObjects, response.Result = nil, metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	h.metrics.observe(review.Request, err, h.clock.Since(begun))
	w.Header().Set("Content-Type", "application/json")
	answer := &apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: response}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.V(1).Info("the API server left before it had its answer")
	}
}

// convert gives as many objects as it got, in the same order, or an error.
func (h *Handler) convert(ctx context.Context, req *apiextensionsv1.ConversionRequest) ([]runtime.RawExtension, error) {
	desired, err := schema.ParseGroupVersion(req.DesiredAPIVersion)
	if err != nil {
		return nil, fmt.Errorf("desiredAPIVersion %q: %w", req.DesiredAPIVersion, err)
	}
	private := translate.IsPrivate(desired.Group)
	standard := schema.GroupVersion{Group: desired.Group, Version: desired.Version}
	if private {
		standard.Group = translate.Group(desired.Group)
	}
	out := make([]runtime.RawExtension, len(req.Objects))
	for i, obj := range req.Objects {
		raw, err := h.convertOne(ctx, obj.Raw, standard, private)
		if err != nil {
			return nil, fmt.Errorf("object %d of %d: %w", i+1, len(req.Objects), err)
		}
		out[i].Raw = raw
	}
	return out, nil
}

// convertOne converts an object to a version of its standard group.
func (h *Handler) convertOne(ctx context.Context, raw []byte, to schema.GroupVersion, private bool) (_ []byte, err error) {
	plan, err := bodyOf(to.Group)
	if err != nil {
		return nil, err
	}
	if private {
		if raw, err = translate.Bytes(plan, nil, raw); err != nil {
			return nil, fmt.Errorf("renaming groups: %w", err)
		}
	}
	meta := metav1.TypeMeta{}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	from := meta.GroupVersionKind()
	if from.Group != to.Group {
		return nil, fmt.Errorf("%s is of another group than %s", meta.APIVersion, to)
	}
	src, err := h.scheme.New(from)
	if err != nil {
		return nil, fmt.Errorf("%s %s is not known here", meta.APIVersion, from.Kind)
	}
	dst, err := h.scheme.New(to.WithKind(from.Kind))
	if err != nil {
		return nil, fmt.Errorf("%s %s is not known here", to, from.Kind)
	}
	if err := json.Unmarshal(raw, src); err != nil {
		return nil, fmt.Errorf("parsing %s %s: %w", meta.APIVersion, from.Kind, err)
	}
	if err := h.versions.in(ctx, private, func() error { return hubAndSpoke(src, dst) }); err != nil {
		return nil, fmt.Errorf("converting %s from %s to %s: %w", from.Kind, from.Version, to.Version, err)
	}
	dst.GetObjectKind().SetGroupVersionKind(to.WithKind(from.Kind))
	if raw, err = json.Marshal(dst); err != nil {
		return nil, fmt.Errorf("printing: %w", err)
	}
	if private {
		if raw, err = translate.Bytes(plan, nil, raw); err != nil {
			return nil, fmt.Errorf("renaming groups: %w", err)
		}
	}
	return raw, nil
}

// bodyOf is where objects of a group of Cluster API's hold groups.
func bodyOf(group string) (translate.Plan, error) {
	if !translate.InDomain(group) {
		return translate.Plan{}, fmt.Errorf("group %q is none of Cluster API's", group)
	}
	r, err := translate.Parse(http.MethodPut, "/apis/"+group+"/v1/namespaces/n/objects/o", "")
	if err != nil {
		return translate.Plan{}, err
	}
	return r.Body(), nil
}

// hubAndSpoke calls Cluster API's function. Every kind here has two versions, of which the later is the hub.
func hubAndSpoke(src, dst runtime.Object) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("Cluster API's conversion function panicked")
		}
	}()
	if hub, ok := src.(ctrlconversion.Hub); ok {
		if spoke, ok := dst.(ctrlconversion.Convertible); ok {
			return spoke.ConvertFrom(hub)
		}
	}
	if hub, ok := dst.(ctrlconversion.Hub); ok {
		if spoke, ok := src.(ctrlconversion.Convertible); ok {
			return spoke.ConvertTo(hub)
		}
	}
	return fmt.Errorf("%T does not convert to %T", src, dst)
}

// getter is Cluster API's one place for the function that finds the version of a reference. It is a package variable there.
var getter struct {
	sync.Mutex
	ctx     context.Context
	lookup  *versions
	private bool
}

var register = sync.OnceFunc(func() {
	clusterv1beta1.SetAPIVersionGetter(func(gk schema.GroupKind) (string, error) {
		// Called within versions.in alone, whose lock is held.
		if getter.lookup == nil {
			return "", errors.New("no conversion is under way")
		}
		return getter.lookup.of(getter.ctx, gk, getter.private)
	})
})

// in runs a conversion whose references are looked up among private or standard definitions. Conversions run one at a time: Cluster API's
// functions ask a function of the whole process for versions, without saying for whom.
func (v *versions) in(ctx context.Context, private bool, convert func() error) error {
	register()
	getter.Lock()
	defer getter.Unlock()
	getter.ctx, getter.lookup, getter.private = ctx, v, private
	defer func() { getter.ctx, getter.lookup = nil, nil }()
	return convert()
}

// plural of a kind whose definition is called as Cluster API requires it.
func crdName(gk schema.GroupKind) string {
	plural := strings.ToLower(gk.Kind)
	switch {
	case strings.HasSuffix(plural, "s"), strings.HasSuffix(plural, "x"), strings.HasSuffix(plural, "ch"), strings.HasSuffix(plural, "sh"):
		plural += "es"
	case strings.HasSuffix(plural, "y") && !strings.HasSuffix(plural, "ay") && !strings.HasSuffix(plural, "ey") && !strings.HasSuffix(plural, "oy"):
		plural = strings.TrimSuffix(plural, "y") + "ies"
	default:
		plural += "s"
	}
	return plural + "." + gk.Group
}
