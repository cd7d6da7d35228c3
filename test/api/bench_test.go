//go:build bench

package api_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

const (
	// maxApplyRatio is how much longer an API server may take for an object because of its rules.
	maxApplyRatio = 1.5
	// maxInstall is how long definitions may take until the API server serves them.
	maxInstall = 10 * time.Second
	applyPairs = 60
)

func definitionClient(b *testing.B) client.WithWatch {
	b.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	return testenv.Start(b).Client(b, scheme)
}

// establish creates definitions and waits until all are served.
func establish(ctx context.Context, c client.Client, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if err := c.Create(ctx, crd); err != nil {
			return fmt.Errorf("creating %s: %w", crd.Name, err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, crd := range crds {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, err
			}
			if !slices.ContainsFunc(crd.Status.Conditions, func(cond apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue
			}) {
				return false, nil
			}
		}
		return true, nil
	})
}

// BenchmarkInstall installs every definition that hypershift install installs, under other names, and waits until all are served.
func BenchmarkInstall(b *testing.B) {
	c := definitionClient(b)
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, list := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return config.CRDs(config.TechPreviewSet) },
		config.CAPICRDs, config.PackageOperatorCRDs,
	} {
		some, err := list()
		if err != nil {
			b.Fatal(err)
		}
		crds = append(crds, some...)
	}
	round := 0
	for b.Loop() {
		copies := make([]*apiextensionsv1.CustomResourceDefinition, len(crds))
		for i, crd := range crds {
			copies[i] = renamed(crd, fmt.Sprintf("bench%d.", round))
		}
		round++
		began := time.Now()
		if err := establish(b.Context(), c, copies); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		b.ReportMetric(took.Seconds(), "s/install")
		b.ReportMetric(float64(len(crds)), "definitions")
		if took > maxInstall {
			b.Errorf("installing %d definitions took %s; it may take %s", len(crds), took, maxInstall)
		}
		for _, crd := range copies {
			if err := c.Delete(b.Context(), crd); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkApply applies a HostedCluster with every option, and the same object of a definition without rules, in turns.
func BenchmarkApply(b *testing.B) {
	c := definitionClient(b)
	crds, err := config.CRDs(config.DefaultSet)
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Name == "hostedclusters.hypershift.openshift.io"
	})
	ruled, plain := renamed(crds[i], "ruled."), renamed(crds[i], "plain.")
	withoutRules(plain.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err := establish(b.Context(), c, []*apiextensionsv1.CustomResourceDefinition{ruled, plain}); err != nil {
		b.Fatal(err)
	}
	ns := testenv.Start(b).Namespace(b)
	manifest := everything(b)
	object := func(crd *apiextensionsv1.CustomResourceDefinition, n int) *unstructured.Unstructured {
		obj := manifest.DeepCopy()
		obj.SetAPIVersion(crd.Spec.Group + "/v1beta1")
		obj.SetName(fmt.Sprintf("demo-%d", n%10)) // ten are created, the others are changes
		obj.SetNamespace(ns)
		obj.SetLabels(map[string]string{"round": fmt.Sprint(n)})
		return obj
	}
	apply := func(crd *apiextensionsv1.CustomResourceDefinition, n int) time.Duration {
		obj := object(crd, n)
		began := time.Now()
		if err := c.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("bench")); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for n := range 10 { // what is slow only once
		apply(ruled, n)
		apply(plain, n)
	}
	var with, without []time.Duration
	for b.Loop() {
		for n := range applyPairs {
			with = append(with, apply(ruled, n+10))
			without = append(without, apply(plain, n+10))
		}
	}
	ratio := float64(median(with)) / float64(median(without))
	b.ReportMetric(float64(median(with).Microseconds())/1000, "ms/apply")
	b.ReportMetric(float64(median(without).Microseconds())/1000, "ms/apply-without-rules")
	b.ReportMetric(ratio, "ratio")
	if ratio > maxApplyRatio {
		b.Errorf("rules make an apply %.2f times as long; it may be %.2f", ratio, maxApplyRatio)
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

// everything merges the examples that are about options into one HostedCluster.
func everything(b *testing.B) *unstructured.Unstructured {
	b.Helper()
	all := exampleHostedCluster(b, "aws-kms.yaml")
	for _, file := range []string{"availability.yaml", "configuration.yaml", "oauth.yaml", "disconnected.yaml", "networking.yaml", "capabilities.yaml"} {
		spec := exampleHostedCluster(b, file).Object["spec"].(map[string]any)
		delete(spec, "platform")
		mergeInto(all.Object, map[string]any{"spec": spec})
	}
	return all
}

func exampleHostedCluster(b *testing.B, file string) *unstructured.Unstructured {
	b.Helper()
	for _, obj := range manifests(b, examples+"/"+file) {
		if obj.GetKind() == "HostedCluster" {
			return obj
		}
	}
	b.Fatalf("%s has no HostedCluster", file)
	return nil
}
