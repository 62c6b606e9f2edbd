// Package controller reconciles sites.
package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	sitesv1 "example.com/sites/api/v1"
)

const fieldManager = "site-operator"

// SiteReconciler applies the objects of a site and reports its condition.
type SiteReconciler struct {
	client.Client
}

// +kubebuilder:rbac:groups=go.comparison.example.com,resources=sites,verbs=get;list;watch
// +kubebuilder:rbac:groups=go.comparison.example.com,resources=sites/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete

// Reconcile brings the objects of a site to its desired state.
func (r *SiteReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &sitesv1.Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	applied, err := r.applyObjects(ctx, site)
	condition := failure(err)
	if err == nil {
		condition = observed(site, applied)
	}
	return ctrl.Result{}, errors.Join(err, r.report(ctx, site, condition))
}

// applyObjects applies all objects, and returns the Deployment as the API server stores it.
func (r *SiteReconciler) applyObjects(ctx context.Context, site *sitesv1.Site) (*applyapps.DeploymentApplyConfiguration, error) {
	if err := r.apply(ctx, configMap(site)); err != nil {
		return nil, fmt.Errorf("applying the ConfigMap: %w", err)
	}
	// Before the Deployment is scaled to zero, so that the autoscaler does not interfere.
	if err := r.reconcileAutoscaler(ctx, site); err != nil {
		return nil, fmt.Errorf("reconciling the HorizontalPodAutoscaler: %w", err)
	}
	live := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(site), live); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Deployment: %w", err)
	} else if err != nil {
		live = nil
	}
	desired, err := deployment(site, live)
	if err != nil {
		return nil, fmt.Errorf("building the Deployment: %w", err)
	}
	if err := r.apply(ctx, desired); err != nil {
		return nil, fmt.Errorf("applying the Deployment: %w", err)
	}
	if err := r.apply(ctx, service(site)); err != nil {
		return nil, fmt.Errorf("applying the Service: %w", err)
	}
	return desired, nil
}

func (r *SiteReconciler) apply(ctx context.Context, desired runtime.ApplyConfiguration) error {
	return r.Apply(ctx, desired, client.FieldOwner(fieldManager), client.ForceOwnership)
}

// reconcileAutoscaler applies the autoscaler, or deletes it while there should be none.
func (r *SiteReconciler) reconcileAutoscaler(ctx context.Context, site *sitesv1.Site) error {
	if site.Spec.MaxReplicas != nil && !site.Spec.Suspended {
		return r.apply(ctx, autoscaler(site))
	}
	live := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(site), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(live, site) {
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, live, client.Preconditions{UID: &live.UID}))
}

// report writes the condition if it has changed.
func (r *SiteReconciler) report(ctx context.Context, site *sitesv1.Site, condition metav1.Condition) error {
	before := site.DeepCopy()
	condition.Type = "Ready"
	condition.ObservedGeneration = site.Generation
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before.Status, site.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Patch(ctx, site, client.MergeFrom(before)))
}

func failure(err error) metav1.Condition {
	condition := metav1.Condition{Status: metav1.ConditionFalse, Reason: "Error"}
	if err != nil {
		condition.Message = err.Error()
	}
	return condition
}

// observed returns the condition of a site whose objects have been applied.
func observed(site *sitesv1.Site, live *applyapps.DeploymentApplyConfiguration) metav1.Condition {
	desired := ptr.Deref(live.Spec.Replicas, 1)
	status := ptr.Deref(live.Status, applyapps.DeploymentStatusApplyConfiguration{})
	current := ptr.Deref(status.ObservedGeneration, 0) >= ptr.Deref(live.Generation, 0)
	pods, updated, available := ptr.Deref(status.Replicas, 0), ptr.Deref(status.UpdatedReplicas, 0), ptr.Deref(status.AvailableReplicas, 0)
	switch {
	case !current || pods != desired || updated != desired || available != desired:
		message := fmt.Sprintf("%d of %d pods are updated, %d are available", updated, desired, available)
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: "Progressing", Message: message}
	case site.Spec.Suspended:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Suspended", Message: "Scaled to zero"}
	default:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Healthy", Message: "All pods are available"}
	}
}

// SetupWithManager registers the controller.
func (r *SiteReconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&sitesv1.Site{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&autoscalingv2.HorizontalPodAutoscaler{}).
		Owns(&corev1.Service{}).
		Complete(r)
}
