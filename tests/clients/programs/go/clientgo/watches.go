package main

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"clients/expect"
)

// next returns the type of the next event, and the name of its object.
func next(events watch.Interface) [2]string {
	event, open := <-events.ResultChan()
	if !open {
		return [2]string{"end", ""}
	}
	if object, is := event.Object.(metav1.Object); is {
		return [2]string{string(event.Type), object.GetName()}
	}
	return [2]string{string(event.Type), ""}
}

func relabel(c *check, name, label string) {
	body := []byte(`{"metadata":{"labels":{"app":"` + label + `"}}}`)
	expect.OK(c.client.CoreV1().ConfigMaps(c.namespace).Patch(c, name, types.MergePatchType, body, metav1.PatchOptions{}))
}

func watches(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	c.configMap("old", map[string]string{"app": "web"}, nil)
	start := expect.OK(maps.List(c, metav1.ListOptions{})).ResourceVersion
	all := expect.OK(maps.Watch(c, metav1.ListOptions{ResourceVersion: start}))
	defer all.Stop()
	web := expect.OK(maps.Watch(c, metav1.ListOptions{ResourceVersion: start, LabelSelector: "app=web"}))
	defer web.Stop()
	one := expect.OK(maps.Watch(c, metav1.ListOptions{ResourceVersion: start, FieldSelector: "metadata.name=new"}))
	defer one.Stop()
	c.configMap("new", nil, nil)
	relabel(c, "new", "web")
	relabel(c, "new", "other")
	expect.NoError(maps.Delete(c, "new", metav1.DeleteOptions{}))
	for _, events := range []watch.Interface{all, one} {
		for _, expected := range []string{"ADDED", "MODIFIED", "MODIFIED", "DELETED"} {
			expect.Equal("an event", next(events), [2]string{expected, "new"})
		}
	}
	expect.Equal("it comes into the selection", next(web), [2]string{"ADDED", "new"})
	expect.Equal("it leaves the selection", next(web), [2]string{"DELETED", "new"})

	fromStart := expect.OK(maps.Watch(c, metav1.ListOptions{FieldSelector: "metadata.name=old"}))
	defer fromStart.Stop()
	expect.Equal("without a version what is there comes first", next(fromStart), [2]string{"ADDED", "old"})
	second := int64(1)
	short := expect.OK(maps.Watch(c, metav1.ListOptions{ResourceVersion: start, TimeoutSeconds: &second, LabelSelector: "app=none"}))
	expect.Equal("a watch ends in time", next(short), [2]string{"end", ""})
}

func watchList(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	for _, name := range []string{"a", "b"} {
		c.configMap(name, map[string]string{"app": "web"}, nil)
	}
	yes := true
	options := metav1.ListOptions{
		SendInitialEvents:    &yes,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
		LabelSelector:        "app=web",
	}
	stream := expect.OK(maps.Watch(c, options))
	defer stream.Stop()
	expect.Equal("first", next(stream), [2]string{"ADDED", "a"})
	expect.Equal("second", next(stream), [2]string{"ADDED", "b"})
	event := <-stream.ResultChan()
	expect.Equal("then a bookmark", event.Type, watch.Bookmark)
	bookmark := event.Object.(*v1.ConfigMap)
	expect.Equal("annotation", bookmark.Annotations, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	c.configMap("c", map[string]string{"app": "web"}, nil)
	expect.Equal("then changes", next(stream), [2]string{"ADDED", "c"})

	options.ResourceVersionMatch = ""
	_, err := maps.Watch(c, options)
	expect.Refused(err, apierrors.IsInvalid, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	_, err = maps.List(c, metav1.ListOptions{SendInitialEvents: &yes})
	expect.Refused(err, apierrors.IsInvalid, "sendInitialEvents is forbidden for list")
}

func retryWatcher(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	start := expect.OK(maps.List(c, metav1.ListOptions{})).ResourceVersion
	second := int64(1)
	var opened atomic.Int32
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		opened.Add(1)
		options.TimeoutSeconds, options.LabelSelector = &second, "app=web"
		return maps.Watch(ctx, options)
	}}
	watcher := expect.OK(watchtools.NewRetryWatcherWithContext(c, start, source))
	defer watcher.Stop()
	expect.Until(c, "the watch is opened again", func() bool { return opened.Load() > 1 })
	c.configMap("late", map[string]string{"app": "web"}, nil)
	expect.Equal("event", next(watcher), [2]string{"ADDED", "late"})

	go func() {
		time.Sleep(50 * time.Millisecond)
		_, _ = maps.Patch(c, "late", types.MergePatchType, []byte(`{"data":{"ready":"yes"}}`), metav1.PatchOptions{})
	}()
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}
	event := expect.OK(watchtools.UntilWithSync(c, list, &v1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		object, is := event.Object.(*v1.ConfigMap)
		return is && object.Name == "late" && object.Data["ready"] == "yes", nil
	}))
	expect.Equal("the condition", event.Object.(*v1.ConfigMap).Data["ready"], "yes")
}

// reflectorAfterExpiry gives a reflector's first watch a version that is too old: on a real API server the events of a
// kind begin with its definition; the history of an embedded one has to be compacted before the program starts.
func reflectorAfterExpiry(c *check) {
	kinds := c.define("refs", "Ref")
	refs := c.dynamic.Resource(kinds).Namespace(c.namespace)
	size := map[string]any{"size": int64(1)}
	expect.OK(refs.Create(c, custom(kinds, "Ref", "first", size), metav1.CreateOptions{}))
	expired := func() error {
		stream, err := refs.Watch(c, metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			return err
		}
		defer stream.Stop()
		event := <-stream.ResultChan()
		return apierrors.FromObject(event.Object)
	}
	expect.Refused(expired(), apierrors.IsResourceExpired, "too old resource version: 1 (")

	var lists, watched atomic.Int32
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			lists.Add(1)
			return refs.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if watched.Add(1) == 1 {
				options.ResourceVersion = "1"
			}
			return refs.Watch(ctx, options)
		},
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	lister := cache.ToListWatcherWithWatchListSemantics(source, unsupported{})
	reflector := cache.NewReflectorWithOptions(lister, &unstructured.Unstructured{}, store, cache.ReflectorOptions{Name: "expired"})
	ctx, stop := context.WithCancel(c)
	defer stop()
	go reflector.RunWithContext(ctx)
	expect.Until(c, "a second list after 410", func() bool { return lists.Load() == 2 && watched.Load() >= 2 })
	expect.OK(refs.Create(c, custom(kinds, "Ref", "second", size), metav1.CreateOptions{}))
	expect.Until(c, "the reflector follows again", func() bool { return len(store.ListKeys()) == 2 })
}

// unsupported makes a reflector list, and then watch.
type unsupported struct{}

func (unsupported) IsWatchListSemanticsUnSupported() bool { return true }

func sharedInformers(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	c.configMap("before", map[string]string{"app": "web"}, nil)
	whole := informers.NewSharedInformerFactoryWithOptions(c.client, 200*time.Millisecond, informers.WithNamespace(c.namespace),
		informers.WithTransform(func(object any) (any, error) {
			if meta, is := object.(metav1.Object); is {
				meta.SetManagedFields(nil)
			}
			return object, nil
		}))
	labelled := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "app=web" }))
	named := informers.NewSharedInformerFactoryWithOptions(c.client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.AndSelectors(
				fields.OneTermEqualSelector("metadata.name", "after"), fields.OneTermEqualSelector("metadata.namespace", c.namespace),
			).String()
		}))
	var added, updated, resynced, deleted, left atomic.Int32
	informer := whole.Core().V1().ConfigMaps().Informer()
	expect.NoError(informer.AddIndexers(cache.Indexers{"colour": func(object any) ([]string, error) {
		return []string{object.(*v1.ConfigMap).Data["colour"]}, nil
	}}))
	handler := expect.OK(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added.Add(1) },
		UpdateFunc: func(old, current any) {
			if old.(*v1.ConfigMap).ResourceVersion == current.(*v1.ConfigMap).ResourceVersion {
				resynced.Add(1)
			} else {
				updated.Add(1)
			}
		},
		DeleteFunc: func(any) { deleted.Add(1) },
	}))
	expect.OK(labelled.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(any) { left.Add(1) },
	}))
	afters := named.Core().V1().ConfigMaps().Lister()
	named.Core().V1().ConfigMaps().Informer()
	secrets := whole.Core().V1().Secrets().Lister()
	whole.Core().V1().Secrets().Informer()
	for _, factory := range []informers.SharedInformerFactory{whole, labelled, named} {
		factory.Start(c.Done())
		for kind, synced := range factory.WaitForCacheSync(c.Done()) {
			expect.Equal("synced "+kind.String(), synced, true)
		}
	}
	expect.Until(c, "the handler is synced", handler.HasSynced)

	c.configMap("after", nil, map[string]string{"colour": "red"})
	relabel(c, "before", "other")
	expect.Until(c, "events", func() bool { return added.Load() >= 2 && updated.Load() >= 1 && left.Load() == 1 })
	expect.Until(c, "a resync", func() bool { return resynced.Load() > 0 })
	red := expect.OK(informer.GetIndexer().ByIndex("colour", "red"))
	expect.Equal("index", len(red), 1)
	expect.Equal("transformed", len(red[0].(*v1.ConfigMap).ManagedFields), 0)
	expect.Until(c, "an informer by name", func() bool { return len(expect.OK(afters.List(labels.Everything()))) == 1 })
	expect.Equal("no secrets", len(expect.OK(secrets.List(labels.Everything()))), 0)
	expect.NoError(maps.Delete(c, "after", metav1.DeleteOptions{}))
	expect.Until(c, "the deletion", func() bool { return deleted.Load() == 1 })
	_, err := whole.Core().V1().ConfigMaps().Lister().ConfigMaps(c.namespace).Get("after")
	expect.Refused(err, apierrors.IsNotFound, `"after" not found`)
}
