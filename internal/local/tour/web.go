package tour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/local"
)

// Web shows the life of a package on the management cluster: it is built and pushed, installed, changed to another image, and removed.
type Web struct {
	// Registry is where the package and its application are.
	Registry string
	// Ask returns what an URL answers.
	Ask func(ctx context.Context, url string) (string, error)
}

const (
	// webSource is the folder of the package, in the checkout.
	webSource = "config/examples/packages/web"
	// webVersionFile holds the version of the package and of its application.
	webVersionFile = "VERSION"
	// webNamespace is where it is installed; it goes with the package.
	webNamespace = "tour-web"
	webName      = "web"
	webBefore    = "1.0.0"
	webAfter     = "2.0.0"
)

// Run is the stop.
func (w Web) Run(ctx context.Context, c local.Cluster, say local.Say) error {
	api, err := (&connect.Flags{Kubeconfig: c.Kubeconfig}).Client()
	if err != nil {
		return err
	}
	for _, version := range []string{webBefore, webAfter} {
		if err := w.publish(ctx, c, say, version); err != nil {
			return err
		}
		if err := w.install(ctx, c, say, api, version); err != nil {
			return err
		}
	}
	history, err := kubectlPackage(ctx, c, func(string, ...any) {}, "rollout", "history", "package/"+webName, "-n", webNamespace)
	if err != nil {
		return err
	}
	for line := range strings.Lines(history) {
		c.Show("%s", strings.TrimRight(line, "\n"))
	}
	return w.remove(ctx, c, say, api)
}

func (w Web) image(version string) string { return w.Registry + "/examples/web:" + version }

// publish builds the package as its author would, and pushes it. The source in the checkout is version webBefore; another one is built from
// a copy with another number.
func (w Web) publish(ctx context.Context, c local.Cluster, say local.Say, version string) error {
	source := filepath.Join(c.Settings.Root, webSource)
	if version != webBefore {
		dir, err := os.MkdirTemp("", "hypershift-tour-")
		if err != nil {
			return fmt.Errorf("making a folder for version %s: %w", version, err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		next := filepath.Join(dir, webName)
		// The expected output is that of the version before; building makes it anew.
		err = errors.Join(os.CopyFS(next, os.DirFS(source)), os.RemoveAll(filepath.Join(next, ".test-fixtures")),
			os.WriteFile(filepath.Join(next, webVersionFile), []byte(version+"\n"), 0o600))
		if err != nil {
			return fmt.Errorf("copying %s: %w", webSource, err)
		}
		source = next
	}
	_, err := kubectlPackage(ctx, c, say, "build", source, "--tag", w.image(version), "--push")
	return err
}

// install makes the package one of a version, waits for the end of the rollout, and asks the application who it is.
func (w Web) install(ctx context.Context, c local.Cluster, say local.Say, api client.Client, version string) error {
	config, err := json.Marshal(map[string]string{"image": w.Registry + "/hypershift/webapp"})
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: webNamespace}}
	pkg := &v1alpha1.Package{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Package"},
		ObjectMeta: metav1.ObjectMeta{Namespace: webNamespace, Name: webName},
		Spec:       v1alpha1.PackageSpec{Image: w.image(version), Config: &runtime.RawExtension{Raw: config}},
	}
	begin := c.Clock.Now()
	for _, obj := range []client.Object{namespace, pkg} {
		// A namespace that an interrupted tour left may be on its way out.
		err := until(ctx, c, say, func(ctx context.Context) (string, error) {
			return "", apply(ctx, api, obj)
		})
		if err != nil {
			return fmt.Errorf("applying %s: %w", name(api, obj), err)
		}
	}
	c.Show("  Package %s/%s has image %s", webNamespace, webName, w.image(version))
	if _, err := kubectlPackage(ctx, c, say, "rollout", "status", "package/"+webName, "-n", webNamespace, "--timeout", patience.String()); err != nil {
		return err
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(pkg), pkg); err != nil {
		return fmt.Errorf("reading %s: %w", name(api, pkg), err)
	}
	url, answer, err := w.answer(ctx, c, say, api, version)
	if err != nil {
		return err
	}
	c.Show("  revision %d is there after %s; %s says: %s", pkg.Status.Revision, c.Clock.Since(begin).Round(100*time.Millisecond), url, answer)
	return nil
}

// answer waits until the Service of the package answers with a version: rules of kube-proxy follow the pods within a second or so.
func (w Web) answer(ctx context.Context, c local.Cluster, say local.Say, api client.Client, version string) (url, answer string, err error) {
	err = until(ctx, c, say, func(ctx context.Context) (string, error) {
		service := &corev1.Service{}
		if err := api.Get(ctx, client.ObjectKey{Namespace: webNamespace, Name: webName}, service); err != nil {
			return "", err
		}
		url = "http://" + service.Spec.ClusterIP
		got, err := w.Ask(ctx, url)
		if err != nil {
			return "", err
		}
		answer = strings.TrimSpace(got)
		if !strings.HasSuffix(answer, "version "+version) {
			return fmt.Sprintf("version %s at %s, which says: %s", version, url, answer), nil
		}
		return "", nil
	})
	return url, answer, err
}

// remove deletes the package and waits until what it installed is gone with it, before the namespace goes: nobody else cleans up behind a package.
func (w Web) remove(ctx context.Context, c local.Cluster, say local.Say, api client.Client) error {
	begin := c.Clock.Now()
	pkg := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: webNamespace, Name: webName}}
	if err := gone(ctx, c, say, api, pkg); err != nil {
		return err
	}
	err := until(ctx, c, say, func(ctx context.Context) (string, error) {
		for _, kind := range []string{"Deployment", "Service", "ConfigMap"} {
			list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind + "List"}}
			if kind == "Deployment" {
				list.APIVersion = "apps/v1"
			}
			err := api.List(ctx, list, client.InNamespace(webNamespace), client.MatchingLabels{v1alpha1.InstanceLabel: webName}, client.Limit(1))
			if err != nil {
				return "", err
			}
			if len(list.Items) > 0 {
				return fmt.Sprintf("%s %s/%s to go", kind, webNamespace, list.Items[0].Name), nil
			}
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	c.Show("  Package %s/%s is removed, and all that it installed, after %s", webNamespace, webName, c.Clock.Since(begin).Round(100*time.Millisecond))
	return gone(ctx, c, say, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: webNamespace}})
}

const (
	// askTime is how long one answer may take; the next attempt follows at once.
	askTime = 2 * time.Second
	// maxAnswer is more than any application of the examples says.
	maxAnswer = 4 << 10
)

// Ask is an Ask over HTTP, on a connection of its own, so that a Service chooses anew whom to send it to.
func Ask(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", url, err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: askTime}).DialContext}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking %s: status %d", url, resp.StatusCode)
	}
	return string(body), nil
}

// apply does what kubectl apply does with an object's manifest.
func apply(ctx context.Context, api client.Client, obj client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name(api, obj), err)
	}
	manifest := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	return api.Apply(ctx, manifest, client.FieldOwner(connect.FieldOwner), client.ForceOwnership)
}
