package main

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"clients/expect"
)

const schemaOfShops = `{"type":"object","required":["spec"],"properties":{
	"spec":{"type":"object","required":["size"],"properties":{
		"size":{"type":"integer","minimum":1,"maximum":9},
		"colour":{"type":"string","default":"red","enum":["red","blue"]},
		"doors":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
			"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"wide":{"type":"boolean"}}}}}},
	"status":{"type":"object","properties":{"ready":{"type":"integer"},"selector":{"type":"string"}}}}}`

// define creates a definition of its own group for a test, and waits until it is served.
func (c *check) define(plural, kind string) schema.GroupVersionResource {
	props := &apiextensions.JSONSchemaProps{}
	expect.NoError(json.Unmarshal([]byte(schemaOfShops), props))
	selector := ".status.selector"
	group := plural + "." + c.namespace // unique, so that the program can run twice on one server
	definition := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{
				Plural: plural, Singular: plural[:len(plural)-1], Kind: kind, ListKind: kind + "List",
				ShortNames: []string{plural[:3]}, Categories: []string{"shopping"},
			},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: props},
				Subresources: &apiextensions.CustomResourceSubresources{
					Status: &apiextensions.CustomResourceSubresourceStatus{},
					Scale: &apiextensions.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.ready", LabelSelectorPath: &selector,
					},
				},
				AdditionalPrinterColumns: []apiextensions.CustomResourceColumnDefinition{
					{Name: "Size", Type: "integer", JSONPath: ".spec.size"},
				},
			}},
		},
	}
	client := expect.OK(extensions.NewForConfig(c.config)).ApiextensionsV1().CustomResourceDefinitions()
	expect.OK(client.Create(c, definition, metav1.CreateOptions{}))
	c.definitions = append(c.definitions, definition.Name)
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}
	expect.OK(watchtools.UntilWithSync(c, list, &apiextensions.CustomResourceDefinition{}, nil, func(event watch.Event) (bool, error) {
		found, is := event.Object.(*apiextensions.CustomResourceDefinition)
		if !is || found.Name != definition.Name {
			return false, nil
		}
		return slices.ContainsFunc(found.Status.Conditions, func(each apiextensions.CustomResourceDefinitionCondition) bool {
			return each.Type == apiextensions.Established && each.Status == apiextensions.ConditionTrue
		}), nil
	}))
	kinds := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	expect.Until(c, "the kind is served", func() bool {
		_, err := c.dynamic.Resource(kinds).Namespace(c.namespace).List(c, metav1.ListOptions{})
		return err == nil
	})
	// On a real API server a definition appears in discovery later than its objects are served.
	expect.Until(c, "the kind is discovered", func() bool {
		_, err := c.client.Discovery().ServerResourcesForGroupVersion(kinds.GroupVersion().String())
		return err == nil
	})
	return kinds
}

func custom(resource schema.GroupVersionResource, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func customResources(c *check) {
	kinds := c.define("shops", "Shop")
	shops := c.dynamic.Resource(kinds).Namespace(c.namespace)
	made := expect.OK(shops.Create(c, custom(kinds, "Shop", "a", map[string]any{"size": int64(3), "more": "x"}), metav1.CreateOptions{}))
	expect.Equal("defaults and pruning", made.Object["spec"], any(map[string]any{"size": int64(3), "colour": "red"}))
	_, err := shops.Create(c, custom(kinds, "Shop", "b", map[string]any{"size": int64(10)}), metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "spec.size in body should be less than or equal to 9")
	_, err = shops.Create(c, custom(kinds, "Shop", "b", map[string]any{"size": int64(1), "colour": "pink"}), metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, `spec.colour: Unsupported value: "pink": supported values: "red", "blue"`)
	_, err = shops.Create(c, custom(kinds, "Shop", "b", map[string]any{}), metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "spec.size: Required value")
	strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	_, err = shops.Create(c, custom(kinds, "Shop", "b", map[string]any{"size": int64(1), "more": "x"}), strict)
	expect.Refused(err, apierrors.IsBadRequest, `unknown field "spec.more"`)
	_, err = shops.Patch(c, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	expect.Refused(err, apierrors.IsUnsupportedMediaType, "the body of the request was in an unknown format")
	doors := `{"apiVersion":"` + kinds.GroupVersion().String() + `","kind":"Shop","metadata":{"name":"a"},"spec":{"doors":[{"name":"%"}]}}`
	for _, name := range []string{"front", "back"} {
		body := []byte(doors[:len(doors)-6] + name + `"}]}}`)
		expect.OK(shops.Patch(c, "a", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: name}))
	}
	live := expect.OK(shops.Get(c, "a", metav1.GetOptions{}))
	found, _, _ := unstructured.NestedSlice(live.Object, "spec", "doors")
	expect.Equal("doors of both managers", len(found), 2)
	status := live.DeepCopy()
	expect.NoError(unstructured.SetNestedField(status.Object, int64(2), "status", "ready"))
	expect.NoError(unstructured.SetNestedField(status.Object, int64(9), "spec", "size"))
	after := expect.OK(shops.UpdateStatus(c, status, metav1.UpdateOptions{}))
	size, _, _ := unstructured.NestedInt64(after.Object, "spec", "size")
	expect.Equal("size", size, 3)
	expect.Equal("generation", after.GetGeneration(), live.GetGeneration())
}

func dynamicClient(c *check) {
	kinds := c.define("dyns", "Dyn")
	dyns := c.dynamic.Resource(kinds).Namespace(c.namespace)
	stream := expect.OK(dyns.Watch(c, metav1.ListOptions{}))
	defer stream.Stop()
	applied := expect.OK(dyns.Apply(c, "a", custom(kinds, "Dyn", "a", map[string]any{"size": int64(3)}), metav1.ApplyOptions{FieldManager: "us"}))
	expect.Equal("applied", applied.GetKind(), "Dyn")
	expect.Equal("event", next(stream), [2]string{"ADDED", "a"})
	expect.OK(dyns.Patch(c, "a", types.MergePatchType, []byte(`{"spec":{"size":4}}`), metav1.PatchOptions{}))
	expect.Equal("event", next(stream), [2]string{"MODIFIED", "a"})
	listed := expect.OK(dyns.List(c, metav1.ListOptions{}))
	expect.Equal("kind of the list", listed.GetKind(), "DynList")
	expect.Equal("items", len(listed.Items), 1)
	expect.NoError(dyns.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{}))
	expect.Equal("event", next(stream), [2]string{"DELETED", "a"})
	deployments := c.dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	object := expect.OK(runtime.DefaultUnstructuredConverter.ToUnstructured(deployment("web")))
	object["apiVersion"], object["kind"] = "apps/v1", "Deployment"
	made := expect.OK(deployments.Namespace(c.namespace).Create(c, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}))
	replicas, _, _ := unstructured.NestedInt64(made.Object, "spec", "replicas")
	expect.Equal("replicas", replicas, 2)
	_, err := c.dynamic.Resource(kinds.GroupResource().WithVersion("v9")).Namespace(c.namespace).List(c, metav1.ListOptions{})
	expect.Refused(err, apierrors.IsNotFound, "the server could not find the requested resource")
}

func dynamicInformer(c *check) {
	kinds := c.define("infs", "Inf")
	dyns := c.dynamic.Resource(kinds).Namespace(c.namespace)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, nil)
	informer := factory.ForResource(kinds)
	var versions atomic.Int32
	expect.OK(informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(any, any) { versions.Add(1) },
	}))
	factory.Start(c.Done())
	factory.WaitForCacheSync(c.Done())
	expect.OK(dyns.Create(c, custom(kinds, "Inf", "a", map[string]any{"size": int64(3)}), metav1.CreateOptions{}))
	expect.OK(dyns.Patch(c, "a", types.MergePatchType, []byte(`{"spec":{"size":4}}`), metav1.PatchOptions{}))
	expect.Until(c, "an update", func() bool { return versions.Load() == 1 })
	found := expect.OK(informer.Lister().ByNamespace(c.namespace).Get("a"))
	size, _, _ := unstructured.NestedInt64(found.(*unstructured.Unstructured).Object, "spec", "size")
	expect.Equal("size", size, 4)
}

func metadataClient(c *check) {
	client := expect.OK(metadata.NewForConfig(c.config))
	kinds := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	maps := client.Resource(kinds).Namespace(c.namespace)
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, c.namespace, nil)
	informer := factory.ForResource(kinds)
	informer.Informer()
	factory.Start(c.Done())
	factory.WaitForCacheSync(c.Done())
	made := c.configMap("settings", map[string]string{"app": "web"}, map[string]string{"a": "1"})
	found := expect.OK(maps.Get(c, "settings", metav1.GetOptions{}))
	expect.Equal("labels", found.Labels, made.Labels)
	listed := expect.OK(maps.List(c, metav1.ListOptions{LabelSelector: "app=web"}))
	expect.Equal("listed", expect.Names(listed.Items), []string{"settings"})
	stream := expect.OK(maps.Watch(c, metav1.ListOptions{ResourceVersion: listed.ResourceVersion, LabelSelector: "app=web"}))
	defer stream.Stop()
	body := []byte(`{"metadata":{"annotations":{"note":"x"}}}`)
	patched := expect.OK(maps.Patch(c, "settings", types.MergePatchType, body, metav1.PatchOptions{}))
	expect.Equal("annotations", patched.Annotations, map[string]string{"note": "x"})
	expect.Equal("event", next(stream), [2]string{"MODIFIED", "settings"})
	expect.Until(c, "the informer", func() bool {
		object, err := informer.Lister().ByNamespace(c.namespace).Get("settings")
		return err == nil && object.(*metav1.PartialObjectMetadata).Annotations["note"] == "x"
	})
	expect.NoError(maps.Delete(c, "settings", metav1.DeleteOptions{}))
	expect.Equal("event", next(stream), [2]string{"DELETED", "settings"})
}

func verify(groups []*metav1.APIResourceList, version, name string) {
	for _, group := range groups {
		if group.GroupVersion != version {
			continue
		}
		for _, resource := range group.APIResources {
			if resource.Name == name {
				return
			}
		}
	}
	expect.Failf("%s of %s is not found", name, version)
}

func discovers(c *check) {
	client := c.client.Discovery()
	expect.Equal("minor version", expect.OK(client.ServerVersion()).Minor != "", true)
	kinds := c.define("dets", "Det")
	expect.Until(c, "the kind is in aggregated discovery", func() bool {
		_, lists, err := client.ServerGroupsAndResources()
		return err == nil && slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
			return list.GroupVersion == kinds.GroupVersion().String()
		})
	})
	groups, lists, err := client.ServerGroupsAndResources()
	expect.NoError(err)
	expect.Equal("there are groups", len(groups) > 15, true)
	for _, each := range [][2]string{
		{"v1", "pods"}, {"v1", "pods/eviction"}, {"apps/v1", "deployments/scale"}, {"autoscaling/v2", "horizontalpodautoscalers"},
		{"apiextensions.k8s.io/v1", "customresourcedefinitions"}, {"authorization.k8s.io/v1", "selfsubjectaccessreviews"},
		{kinds.GroupVersion().String(), "dets/status"}, {kinds.GroupVersion().String(), "dets/scale"},
	} {
		verify(lists, each[0], each[1])
	}
	preferred := expect.OK(client.ServerPreferredResources())
	verify(preferred, "autoscaling/v2", "horizontalpodautoscalers")
	namespaced := expect.OK(client.ServerPreferredNamespacedResources())
	verify(namespaced, "v1", "pods")
	deletable := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete", "list"}}, preferred)
	verify(deletable, "v1", "configmaps")
	for _, list := range preferred {
		for _, resource := range list.APIResources {
			expect.Equal("verbs of "+resource.Name, len(resource.Verbs) > 0, true)
		}
	}
}

func legacyDiscovery(c *check) {
	client := expect.OK(discovery.NewDiscoveryClientForConfig(c.config))
	client.UseLegacyDiscovery = true
	groups, lists, err := client.ServerGroupsAndResources()
	expect.NoError(err)
	_, aggregated, err := c.client.Discovery().ServerGroupsAndResources()
	expect.NoError(err)
	expect.Equal("there are groups", len(groups) > 15, true)
	for _, list := range aggregated {
		if slices.ContainsFunc(groups, func(group *metav1.APIGroup) bool { return group.Name == "" }) && list.GroupVersion == "v1" {
			for _, resource := range list.APIResources {
				verify(lists, "v1", resource.Name)
			}
		}
	}
	verify(lists, "apps/v1", "deployments/status")
}

func restMapper(c *check) {
	cached := memory.NewMemCacheClient(c.client.Discovery())
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	mapper := restmapper.NewShortcutExpander(deferred, cached, func(string) {})
	mapping := expect.OK(mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	expect.Equal("resource", mapping.Resource.String(), "apps/v1, Resource=deployments")
	expect.Equal("scope", mapping.Scope.Name(), meta.RESTScopeNameNamespace)
	found := expect.OK(mapper.ResourceFor(schema.GroupVersionResource{Resource: "po"}))
	expect.Equal("a short name", found.String(), "/v1, Resource=pods")
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "maps." + c.namespace, Kind: "Map"})
	expect.Equal("there is no such kind yet", meta.IsNoMatchError(err), true)
	kinds := c.define("maps", "Map")
	expect.Until(c, "the kind is mapped after a reset", func() bool {
		deferred.Reset()
		_, err := mapper.RESTMapping(schema.GroupKind{Group: kinds.Group, Kind: "Map"}, "v1")
		return err == nil
	})
	expander := restmapper.NewDiscoveryCategoryExpander(c.client.Discovery())
	expect.Until(c, "the category", func() bool {
		all, _ := expander.Expand("shopping")
		return slices.Contains(all, kinds.GroupResource())
	})
	all, _ := expander.Expand("all")
	expect.Equal("the category all has deployments", slices.Contains(all, schema.GroupResource{Group: "apps", Resource: "deployments"}), true)
}

func openAPI(c *check) {
	kinds := c.define("opens", "Open")
	root := openapi3.NewRoot(c.client.Discovery().OpenAPIV3())
	versions := expect.OK(root.GroupVersions())
	expect.Equal("apps/v1", slices.Contains(versions, schema.GroupVersion{Group: "apps", Version: "v1"}), true)
	spec := expect.OK(root.GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"}))
	expect.Equal("a deployment", spec.Components.Schemas["io.k8s.api.apps.v1.Deployment"] != nil, true)
	expect.Equal("a path", spec.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"] != nil, true)
	name := c.namespace + ".opens.v1.Open"
	expect.Until(c, "the custom kind", func() bool {
		spec, err := root.GVSpec(kinds.GroupVersion())
		return err == nil && spec.Components.Schemas[name] != nil
	})
	spec = expect.OK(root.GVSpec(kinds.GroupVersion()))
	shop := spec.Components.Schemas[name]
	expect.Equal("its kind", shop.Extensions["x-kubernetes-group-version-kind"] != nil, true)
	for _, property := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		_, there := shop.Properties[property]
		expect.Equal("property "+property, there, true)
	}
}

func openAPI2(c *check) {
	document := expect.OK(c.client.Discovery().OpenAPISchema())
	expect.Equal("version", document.Swagger, "2.0")
	expect.Equal("there are definitions", len(document.Definitions.AdditionalProperties) > 500, true)
}

func scaleClient(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	expect.OK(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	kinds := c.define("scales", "Sized")
	sized := c.dynamic.Resource(kinds).Namespace(c.namespace)
	expect.OK(sized.Create(c, custom(kinds, "Sized", "web", map[string]any{"size": int64(2)}), metav1.CreateOptions{}))
	cached := memory.NewMemCacheClient(c.client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	resolver := scale.NewDiscoveryScaleKindResolver(c.client.Discovery())
	expect.Until(c, "the kind is mapped", func() bool {
		mapper.Reset()
		_, err := mapper.KindFor(kinds)
		return err == nil
	})
	client := expect.OK(scale.NewForConfig(c.config, mapper, dynamic.LegacyAPIPathResolverFunc, resolver)).Scales(c.namespace)
	for _, resource := range []schema.GroupResource{{Group: "apps", Resource: "deployments"}, kinds.GroupResource()} {
		found := expect.OK(client.Get(c, resource, "web", metav1.GetOptions{}))
		expect.Equal("replicas", found.Spec.Replicas, 2)
		found.Spec.Replicas = 5
		expect.Equal("after the update", expect.OK(client.Update(c, resource, found, metav1.UpdateOptions{})).Spec.Replicas, 5)
		_, err := client.Update(c, resource, found, metav1.UpdateOptions{})
		expect.Refused(err, apierrors.IsConflict, "the object has been modified")
		gvr := resource.WithVersion("v1")
		patched := expect.OK(client.Patch(c, gvr, "web", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{}))
		expect.Equal("after the patch", patched.Spec.Replicas, 7)
		_, err = client.Patch(c, gvr, "web", types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), metav1.PatchOptions{})
		expect.Refused(err, apierrors.IsInvalid, "Invalid value: -1")
		_, err = client.Get(c, resource, "none", metav1.GetOptions{})
		expect.Refused(err, apierrors.IsNotFound, `"none" not found`)
	}
	typed := expect.OK(apps.GetScale(c, "web", metav1.GetOptions{}))
	expect.Equal("selector", typed.Status.Selector, "app=web")
	updated := expect.OK(apps.UpdateScale(c, "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 1},
	}, metav1.UpdateOptions{}))
	expect.Equal("without a version", updated.Spec.Replicas, 1)
	_, err := c.client.CoreV1().RESTClient().Get().Namespace(c.namespace).Resource("configmaps").Name("a").SubResource("scale").DoRaw(c)
	expect.Refused(err, apierrors.IsNotFound, "the server could not find the requested resource")
}
