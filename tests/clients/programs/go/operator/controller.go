package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	owner         = "shops" // the field manager
	managed       = "operator.example.com/managed"
	shopLabel     = "operator.example.com/shop" // label of Secrets: the shop that uses it
	paintKey      = "operator.example.com/paint"
	finalizer     = "operator.example.com/close"
	settingsIndex = ".spec.settings"
)

// reconciler makes a Deployment and a ConfigMap of a shop, reports on them, and leaves a record when the shop is deleted.
type reconciler struct {
	client.Client
	recorder events.EventRecorder
	manager  string // identity, written into the Deployment
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	shop := &Shop{}
	if err := r.Get(ctx, request.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !shop.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.close(ctx, shop)
	}
	if controllerutil.AddFinalizer(shop, finalizer) {
		if err := r.Update(ctx, shop); err != nil {
			return ctrl.Result{}, err
		}
	}
	deployment, err := r.deploy(ctx, shop)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.publish(ctx, shop); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, shop, deployment)
}

// close leaves a record, which outlives the shop, and lets the shop go.
func (r *reconciler) close(ctx context.Context, shop *Shop) error {
	if !controllerutil.ContainsFinalizer(shop, finalizer) {
		return nil
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "closed-" + shop.Name, Namespace: shop.Namespace}}
	if err := r.Create(ctx, record); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	controllerutil.RemoveFinalizer(shop, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, shop))
}

// deploy creates or updates the Deployment by get, compare and update.
func (r *reconciler) deploy(ctx context.Context, shop *Shop) (*appsv1.Deployment, error) {
	paint := shop.Spec.Colour
	if shop.Spec.Settings != "" {
		settings := &corev1.ConfigMap{}
		err := r.Get(ctx, types.NamespacedName{Namespace: shop.Namespace, Name: shop.Spec.Settings}, settings)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		paint += settings.Data["shade"]
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: shop.Name, Namespace: shop.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"shop": shop.Name}
		deployment.Labels = map[string]string{managed: "true"}
		deployment.Spec.Replicas = shop.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Annotations = map[string]string{paintKey: paint}
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "shop"}}
		}
		deployment.Spec.Template.Spec.Containers[0].Image = "shop:1"
		return controllerutil.SetControllerReference(shop, deployment, r.Scheme())
	})
	if err == nil && result == controllerutil.OperationResultCreated {
		r.recorder.Eventf(shop, deployment, corev1.EventTypeNormal, "Opened", "Open", "%s opened with %d replicas", shop.Name, *shop.Spec.Replicas)
	}
	return deployment, err
}

// publish applies the ConfigMap by server-side apply.
func (r *reconciler) publish(ctx context.Context, shop *Shop) error {
	reference := applymeta.OwnerReference().WithAPIVersion(version.String()).WithKind("Shop").WithName(shop.Name).WithUID(shop.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	wanted := applycore.ConfigMap(shop.Name+"-sign", shop.Namespace).WithOwnerReferences(reference).
		WithData(map[string]string{"colour": shop.Spec.Colour, "manager": r.manager})
	return r.Apply(ctx, wanted, client.FieldOwner(owner), client.ForceOwnership)
}

// report patches the status.
func (r *reconciler) report(ctx context.Context, shop *Shop, deployment *appsv1.Deployment) error {
	before := copied(shop)
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.List(ctx, secrets, client.InNamespace(shop.Namespace), client.MatchingLabels{shopLabel: shop.Name}); err != nil {
		return err
	}
	for _, secret := range secrets.Items {
		shop.Status.SecretVersion = secret.ResourceVersion
	}
	shop.Status.ObservedGeneration = shop.Generation
	shop.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", ObservedGeneration: shop.Generation}
	if deployment.Status.ReadyReplicas == *shop.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Open"
	}
	meta.SetStatusCondition(&shop.Status.Conditions, condition)
	return client.IgnoreNotFound(r.Status().Patch(ctx, shop, client.MergeFrom(before)))
}

// shopsWith maps a ConfigMap to the shops whose settings it has, by the index.
func (r *reconciler) shopsWith(ctx context.Context, object client.Object) []reconcile.Request {
	shops := &ShopList{}
	if err := r.List(ctx, shops, client.InNamespace(object.GetNamespace()), client.MatchingFields{settingsIndex: object.GetName()}); err != nil {
		return nil
	}
	requests := []reconcile.Request{}
	for i := range shops.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shops.Items[i])})
	}
	return requests
}

// shopOf maps a Secret to the shop that its label names.
func shopOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[shopLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

func addController(ctx context.Context, manager ctrl.Manager, identity string) error {
	r := &reconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("shop-operator"), manager: identity}
	err := manager.GetFieldIndexer().IndexField(ctx, &Shop{}, settingsIndex, func(object client.Object) []string {
		return []string{object.(*Shop).Spec.Settings}
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&Shop{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.shopsWith), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(shopOf), builder.OnlyMetadata).
		Complete(r)
}
