package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	sitesv1 "example.com/sites/api/v1"
)

var key = client.ObjectKey{Namespace: "default", Name: "sample"}

func newSite() *sitesv1.Site {
	return &sitesv1.Site{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, UID: "1", Generation: 1},
		Spec:       sitesv1.SiteSpec{Version: "1.1.0", Greeting: "Hello!", Replicas: 2},
	}
}

// environment is a reconciler with a fake client that has one site.
type environment struct {
	*testing.T
	reconciler *SiteReconciler
}

func newEnvironment(t *testing.T) environment {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sitesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	made := fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjects(newSite()).
		WithStatusSubresource(&sitesv1.Site{}, &appsv1.Deployment{}).
		Build()
	return environment{T: t, reconciler: &SiteReconciler{Client: made}}
}

func (e environment) reconcile() {
	e.Helper()
	if _, err := e.reconciler.Reconcile(e.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		e.Fatal(err)
	}
}

// settle reconciles, reports the Deployment as rolled out, and reconciles again.
func (e environment) settle() {
	e.Helper()
	e.reconcile()
	deployment := e.deployment()
	count := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: count, UpdatedReplicas: count, AvailableReplicas: count,
	}
	if err := e.reconciler.Status().Update(e.Context(), deployment); err != nil {
		e.Fatal(err)
	}
	e.reconcile()
}

func (e environment) change(edit func(*sitesv1.SiteSpec)) {
	e.Helper()
	site := e.site()
	edit(&site.Spec)
	site.Generation++
	if err := e.reconciler.Update(e.Context(), site); err != nil {
		e.Fatal(err)
	}
}

func (e environment) get(into client.Object) {
	e.Helper()
	if err := e.reconciler.Get(e.Context(), key, into); err != nil {
		e.Fatal(err)
	}
}

func (e environment) site() *sitesv1.Site {
	e.Helper()
	site := &sitesv1.Site{}
	e.get(site)
	return site
}

func (e environment) deployment() *appsv1.Deployment {
	e.Helper()
	deployment := &appsv1.Deployment{}
	e.get(deployment)
	return deployment
}

func (e environment) requireReason(reason string) {
	e.Helper()
	condition := meta.FindStatusCondition(e.site().Status.Conditions, "Ready")
	if condition == nil || condition.Reason != reason {
		e.Fatalf("the reason should be %s, the condition is %v", reason, condition)
	}
}

func (e environment) requireReplicas(count int32) {
	e.Helper()
	if found := *e.deployment().Spec.Replicas; found != count {
		e.Fatalf("the Deployment should have %d replicas, it has %d", count, found)
	}
}

func TestItBecomesReady(t *testing.T) {
	e := newEnvironment(t)
	e.reconcile()
	e.requireReason("Progressing")
	e.settle()
	e.requireReason("Healthy")
	page := &corev1.ConfigMap{}
	e.get(page)
	if page.Data["index.html"] != "Hello!\n" {
		t.Fatalf("the page is %q", page.Data)
	}
	e.get(&corev1.Service{})
}

func TestTheVersionDecidesAboutTheShutdown(t *testing.T) {
	for version, expected := range map[string]bool{"1.0.9": false, "1.1.0": true, "2.0.0": true} {
		t.Run(version, func(t *testing.T) {
			site := newSite()
			site.Spec.Version = version
			pod, err := podSpec(site)
			if err != nil {
				t.Fatal(err)
			}
			if found := pod.Containers[0].Lifecycle != nil; found != expected {
				t.Fatalf("graceful shutdown should be %t, it is %t", expected, found)
			}
		})
	}
}

func TestAChangeOfAnObjectIsReverted(t *testing.T) {
	e := newEnvironment(t)
	e.settle()
	page := &corev1.ConfigMap{}
	e.get(page)
	page.Data["index.html"] = "Go away."
	if err := e.reconciler.Update(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	e.reconcile()
	e.get(page)
	if page.Data["index.html"] != "Hello!\n" {
		t.Fatalf("the page is %q", page.Data)
	}
}

func TestSuspendingStopsThePods(t *testing.T) {
	e := newEnvironment(t)
	e.settle()
	e.change(func(spec *sitesv1.SiteSpec) { spec.Suspended = true })
	e.settle()
	e.requireReplicas(0)
	e.requireReason("Suspended")
	e.change(func(spec *sitesv1.SiteSpec) { spec.Suspended = false })
	e.settle()
	e.requireReplicas(2)
	e.requireReason("Healthy")
}

func TestTheAutoscalerOwnsTheCount(t *testing.T) {
	e := newEnvironment(t)
	e.settle()
	e.change(func(spec *sitesv1.SiteSpec) { spec.MaxReplicas = ptr.To[int32](5) })
	e.settle()
	e.get(&autoscalingv2.HorizontalPodAutoscaler{})
	scaled := e.deployment()
	scaled.Spec.Replicas = ptr.To[int32](4)
	if err := e.reconciler.Update(t.Context(), scaled); err != nil {
		t.Fatal(err)
	}
	e.settle()
	e.requireReplicas(4)

	e.change(func(spec *sitesv1.SiteSpec) { spec.MaxReplicas = nil })
	e.settle()
	e.requireReplicas(2)
	err := e.reconciler.Get(t.Context(), key, &autoscalingv2.HorizontalPodAutoscaler{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("the autoscaler should be deleted: %v", err)
	}
}
