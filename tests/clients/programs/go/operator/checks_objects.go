package main

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"clients/expect"
)

// unstructured returns a shop without its Go type.
func (c *check) unstructured(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(),
		"kind":       "Shop",
		"metadata":   map[string]any{"name": name, "namespace": c.namespace},
		"spec":       spec,
	}}
}

func ownedObjects(c *check) {
	shop := c.opened("corner")
	deployment, sign := &appsv1.Deployment{}, &corev1.ConfigMap{}
	expect.NoError(c.Get(c, c.key("corner"), deployment))
	expect.NoError(c.Get(c, c.key("corner-sign"), sign))
	expect.Equal("data", sign.Data, map[string]string{"colour": "blue", "manager": "first"})
	for _, object := range []client.Object{deployment, sign} {
		reference := metav1.GetControllerOf(object)
		expect.Equal("owner", reference.UID, shop.UID)
		expect.Equal("kind", reference.Kind, "Shop")
		expect.Equal("blocks", *reference.BlockOwnerDeletion, true)
	}
	expect.Equal("strategy by default", deployment.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
}

// drift: changes of others are reverted, and what others delete is made again.
func drift(c *check) {
	shop := c.opened("corner")
	deployment := &appsv1.Deployment{}
	expect.NoError(c.Get(c, c.key("corner"), deployment))
	before := deployment.DeepCopy()
	five := int32(5)
	deployment.Spec.Replicas = &five
	expect.NoError(c.Patch(c, deployment, client.StrategicMergeFrom(before)))
	expect.Until(c, "the replicas are reverted", func() bool {
		expect.NoError(c.Get(c, c.key("corner"), deployment))
		return *deployment.Spec.Replicas == *shop.Spec.Replicas
	})
	sign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "corner-sign", Namespace: c.namespace}}
	expect.NoError(c.Get(c, c.key("corner-sign"), sign))
	deleted := sign.UID
	expect.NoError(c.Delete(c, sign, client.Preconditions{UID: &deleted}))
	expect.Until(c, "the sign is made again", func() bool {
		return c.Get(c, c.key("corner-sign"), sign) == nil && sign.UID != deleted
	})
}

func status(c *check) {
	shop := c.opened("corner")
	expect.Equal("not ready", meta.IsStatusConditionFalse(shop.Status.Conditions, "Ready"), true)
	deployment := &appsv1.Deployment{}
	expect.NoError(c.Get(c, c.key("corner"), deployment))
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1}
	deployment.Labels["ignored"] = "by an update of the status"
	expect.NoError(c.Status().Update(c, deployment))
	expect.Equal("labels", deployment.Labels, map[string]string{managed: "true"})
	expect.Until(c, "the shop is ready", func() bool {
		expect.NoError(c.Get(c, c.key("corner"), shop))
		return meta.IsStatusConditionTrue(shop.Status.Conditions, "Ready")
	})
	expect.Equal("ready replicas", shop.Status.ReadyReplicas, 1)
	before := copied(shop)
	shop.Status.Conditions[0].Status = "Perhaps"
	expect.Refused(c.Status().Patch(c, shop, client.MergeFrom(before)), apierrors.IsInvalid,
		`status.conditions[0].status: Unsupported value: "Perhaps": supported values: "True", "False", "Unknown"`)
}

// generations: the spec counts, and neither the status nor metadata does; the operator observes it.
func generations(c *check) {
	shop := c.opened("corner")
	expect.Equal("generation", shop.Generation, 1)
	before := copied(shop)
	shop.Labels = map[string]string{"street": "main"}
	expect.NoError(c.Patch(c, shop, client.MergeFrom(before)))
	expect.Equal("generation after a change of labels", shop.Generation, 1)
	before = copied(shop)
	shop.Spec.Colour = "green"
	expect.NoError(c.Patch(c, shop, client.MergeFrom(before)))
	expect.Equal("generation after a change of the spec", shop.Generation, 2)
	expect.Until(c, "it is observed", func() bool {
		expect.NoError(c.Get(c, c.key("corner"), shop))
		return shop.Status.ObservedGeneration == 2 && shop.Status.Conditions[0].ObservedGeneration == 2
	})
}

func scaleSubresource(c *check) {
	shop := c.opened("corner")
	scale := &autoscalingv1.Scale{}
	expect.NoError(c.SubResource("scale").Get(c, shop, scale))
	expect.Equal("replicas", scale.Spec.Replicas, 1)
	scale.Spec.Replicas = 3
	expect.NoError(c.SubResource("scale").Update(c, shop, client.WithSubResourceBody(scale)))
	deployment := &appsv1.Deployment{}
	expect.Until(c, "the Deployment has three replicas", func() bool {
		expect.NoError(c.Get(c, c.key("corner"), deployment))
		return *deployment.Spec.Replicas == 3
	})
	scale.Spec.Replicas, scale.ResourceVersion = 11, ""
	expect.Refused(c.SubResource("scale").Update(c, shop, client.WithSubResourceBody(scale)), apierrors.IsInvalid, "a shop has a limit")
}

func recordedEvents(c *check) {
	shop := c.opened("corner")
	found := &eventsv1.EventList{}
	expect.Until(c, "the event is there", func() bool {
		expect.NoError(c.List(c, found, client.InNamespace(c.namespace), client.MatchingFields{"regarding.name": "corner", "reason": "Opened"}))
		return len(found.Items) > 0
	})
	expect.Equal("note", found.Items[0].Note, "corner opened with 1 replicas")
	expect.Equal("controller", found.Items[0].ReportingController, "shop-operator")
	expect.Equal("regarding", found.Items[0].Regarding.UID, shop.UID)
	expect.Equal("related", found.Items[0].Related.Kind, "Deployment")
}

func finalizers(c *check) {
	shop := c.opened("corner")
	expect.Equal("finalizers", shop.Finalizers, []string{finalizer})
	expect.NoError(c.Delete(c, shop))
	c.gone(&Shop{}, "corner")
	expect.NoError(c.Get(c, c.key("closed-corner"), &corev1.ConfigMap{}))
	// One that another client set keeps the object, with its deletion timestamp.
	other := c.shop("other", "blue")
	other.Finalizers = []string{"example.com/other"}
	expect.NoError(c.Create(c, other))
	expect.NoError(c.Delete(c, other))
	expect.Until(c, "the operator's finalizer is removed", func() bool {
		expect.NoError(c.Get(c, c.key("other"), other))
		return len(other.Finalizers) == 1 && !other.DeletionTimestamp.IsZero()
	})
	before := copied(other)
	other.Finalizers = append(other.Finalizers, "example.com/late")
	expect.Refused(c.Patch(c, other, client.MergeFrom(before)), apierrors.IsInvalid,
		`metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/late"}`)
	other = copied(before)
	other.Finalizers = nil
	expect.NoError(c.Patch(c, other, client.MergeFrom(before)))
	c.gone(other, "other")
}

// garbageCollection: in the foreground, the shop goes after what it owns.
func garbageCollection(c *check) {
	shop := c.opened("corner")
	expect.NoError(c.Delete(c, shop, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	c.gone(&Shop{}, "corner")
	c.gone(&appsv1.Deployment{}, "corner")
	c.gone(&corev1.ConfigMap{}, "corner-sign")
	expect.NoError(c.Get(c, c.key("closed-corner"), &corev1.ConfigMap{}))
}

func optimisticLocks(c *check) {
	shop := c.opened("corner")
	stale := copied(shop)
	before := copied(shop)
	shop.Labels = map[string]string{"street": "main"}
	expect.NoError(c.Patch(c, shop, client.MergeFrom(before)))
	before = copied(stale)
	stale.Labels = map[string]string{"street": "side"}
	conflict := `Operation cannot be fulfilled on shops.operator.example.com "corner": ` +
		`the object has been modified; please apply your changes to the latest version and try again`
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	expect.Refused(c.Patch(c, copied(stale), locked), apierrors.IsConflict, conflict)
	expect.Refused(c.Update(c, stale), apierrors.IsConflict, conflict)
}

func serverSideApply(c *check) {
	c.opened("corner")
	wanted := applycore.ConfigMap("corner-sign", c.namespace).WithData(map[string]string{"colour": "white", "mine": "yes"})
	expect.Refused(c.Apply(c, wanted, client.FieldOwner("other")), apierrors.IsConflict,
		`Apply failed with 1 conflict: conflict with "shops": .data.colour`)
	expect.NoError(c.Apply(c, wanted, client.FieldOwner("other"), client.ForceOwnership))
	sign := &corev1.ConfigMap{}
	expect.Until(c, "the operator takes its field back and leaves the other", func() bool {
		expect.NoError(c.Get(c, c.key("corner-sign"), sign))
		return maps.Equal(sign.Data, map[string]string{"colour": "blue", "manager": "first", "mine": "yes"})
	})
}

func unstructuredClient(c *check) {
	shop := c.unstructured("corner", map[string]any{"replicas": int64(2)})
	expect.NoError(c.Create(c, shop))
	expect.Equal("spec", shop.Object["spec"], any(map[string]any{"colour": "red", "limit": int64(10), "replicas": int64(2)}))
	cached := c.unstructured("corner", nil)
	expect.Until(c, "a cache of the manager has it", func() bool {
		return c.leader.GetCache().Get(c, c.key("corner"), cached) == nil
	})
	expect.Equal("UID", cached.GetUID(), shop.GetUID())
}

func watches(c *check) {
	watching := expect.OK(client.NewWithWatch(c.environment.Config, client.Options{Scheme: c.Scheme()}))
	stream := expect.OK(watching.Watch(c, &corev1.ConfigMapList{}, client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": "closed-corner"}))
	defer stream.Stop()
	expect.NoError(c.Delete(c, c.opened("corner")))
	event := <-stream.ResultChan()
	expect.Equal("type", event.Type, watch.Added)
	expect.Equal("name", event.Object.(*corev1.ConfigMap).Name, "closed-corner")
}
