package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"clients/expect"
)

func paging(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	expected := []string{}
	for i := range 23 {
		name := fmt.Sprintf("item-%02d", i)
		expected = append(expected, name)
		c.configMap(name, map[string]string{"paged": "yes"}, nil)
	}
	pages := 0
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.LabelSelector = "paged"
		list, err := maps.List(ctx, options)
		if err == nil && len(list.Items) > 5 {
			err = fmt.Errorf("%d items on a page of 5", len(list.Items))
		}
		pages++
		return list, err
	}
	pagerOfFive := pager.New(page)
	pagerOfFive.PageSize, pagerOfFive.PageBufferSize = 5, 0
	found := []string{}
	expect.NoError(pagerOfFive.EachListItem(c, metav1.ListOptions{}, func(object runtime.Object) error {
		found = append(found, object.(*v1.ConfigMap).Name)
		return nil
	}))
	expect.Equal("items in order", found, expected)
	expect.Equal("pages", pages, 5)

	// Without a selector the server counts what remains. Another object of the namespace may be the server's own.
	first := expect.OK(maps.List(c, metav1.ListOptions{Limit: 10}))
	expect.Equal("remaining items are counted", first.RemainingItemCount != nil && *first.RemainingItemCount >= 13, true)
	selected := expect.OK(maps.List(c, metav1.ListOptions{Limit: 10, LabelSelector: "paged"}))
	expect.Equal("remaining items of a selection", selected.RemainingItemCount, nil)

	expect.NoError(maps.Delete(c, "item-20", metav1.DeleteOptions{}))
	c.configMap("item-99", map[string]string{"paged": "yes"}, nil)
	rest := expect.OK(maps.List(c, metav1.ListOptions{Limit: 50, LabelSelector: "paged", Continue: selected.Continue}))
	expect.Equal("the rest is as old as the first page", expect.Names(rest.Items), expected[10:])
	expect.Equal("version of both pages", rest.ResourceVersion, selected.ResourceVersion)
	_, err := maps.List(c, metav1.ListOptions{Limit: 5, Continue: "bm90IGEgdG9rZW4"})
	expect.Refused(err, apierrors.IsBadRequest, "continue key is not valid")
	_, err = maps.List(c, metav1.ListOptions{Limit: 5, Continue: selected.Continue, ResourceVersion: "1"})
	expect.Refused(err, apierrors.IsBadRequest, "specifying resource version is not allowed when using continue")
}

func listOptions(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	for i, colour := range []string{"red", "green", "blue"} {
		c.configMap(colour, map[string]string{"colour": colour, "number": strconv.Itoa(i)}, nil)
	}
	listed := func(options metav1.ListOptions) []string { return expect.Names(expect.OK(maps.List(c, options)).Items) }
	for selector, expected := range map[string][]string{
		"colour in (red, blue)":     {"blue", "red"},
		"colour notin (red),number": {"blue", "green"},
		"colour,colour!=red":        {"blue", "green"},
		"number>0":                  {"blue", "green"},
		"number,!colour":            {},
	} {
		expect.Equal(selector, listed(metav1.ListOptions{LabelSelector: selector}), expected)
	}
	expect.Equal("a field", listed(metav1.ListOptions{FieldSelector: "metadata.name=red"}), []string{"red"})
	_, err := maps.List(c, metav1.ListOptions{FieldSelector: "data.a=b"})
	expect.Refused(err, apierrors.IsBadRequest, `"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"`)
	_, err = maps.List(c, metav1.ListOptions{LabelSelector: "a=="})
	expect.Equal("an empty value is valid", err, nil)
	_, err = maps.List(c, metav1.ListOptions{LabelSelector: "=="})
	expect.Refused(err, apierrors.IsBadRequest, "'=='")

	everywhere := expect.OK(c.client.CoreV1().ConfigMaps("").List(c, metav1.ListOptions{
		FieldSelector: "metadata.namespace=" + c.namespace, LabelSelector: "colour"}))
	expect.Equal("all namespaces", expect.Names(everywhere.Items), []string{"blue", "green", "red"})
	early := everywhere.ResourceVersion
	expect.NoError(maps.Delete(c, "red", metav1.DeleteOptions{}))
	exact := metav1.ListOptions{LabelSelector: "colour", ResourceVersion: early}
	exact.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	expect.Equal("at a version", listed(exact), []string{"blue", "green", "red"})
	exact.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	expect.Equal("not older than a version", listed(exact), []string{"blue", "green"})
	_, err = maps.List(c, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	expect.Refused(err, apierrors.IsInvalid, "resourceVersionMatch is forbidden unless resourceVersion is provided")
	_, err = maps.List(c, metav1.ListOptions{ResourceVersion: "latest"})
	expect.Refused(err, apierrors.IsBadRequest, "Invalid value")
	_, err = maps.Get(c, "blue", metav1.GetOptions{ResourceVersion: "99999999"})
	expect.Refused(err, func(err error) bool { return apierrors.IsTimeout(err) }, "Too large resource version: 99999999")
}

func tables(c *check) {
	c.configMap("settings", map[string]string{"app": "web"}, map[string]string{"a": "1", "b": "2"})
	get := func(accept string) rest.Result {
		client := c.client.CoreV1().RESTClient()
		return client.Get().Namespace(c.namespace).Resource("configmaps").Name("settings").SetHeader("Accept", accept).Do(c)
	}
	table := metav1.Table{}
	body := expect.OK(get("application/json;as=Table;v=v1;g=meta.k8s.io").Raw())
	expect.NoError(json.Unmarshal(body, &table))
	columns := []string{}
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	expect.Equal("columns", columns, []string{"Name", "Data", "Age"})
	expect.Equal("cells", fmt.Sprint(table.Rows[0].Cells[:2]), "[settings 2]")
	meta := metav1.PartialObjectMetadata{}
	expect.NoError(json.Unmarshal(expect.OK(get("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").Raw()), &meta))
	expect.Equal("kind", meta.Kind, "PartialObjectMetadata")
	expect.Equal("labels", meta.Labels, map[string]string{"app": "web"})
	expect.Refused(get("application/json;as=Table;v=v9;g=meta.k8s.io").Error(), apierrors.IsNotAcceptable, "")
	expect.Refused(get("image/png").Error(), apierrors.IsNotAcceptable, "Available representations: application/json, application/yaml, ")
}

func protobufClient(c *check) {
	config := rest.CopyConfig(c.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client := expect.OK(kubernetes.NewForConfig(config))
	apps := client.AppsV1().Deployments(c.namespace)
	wanted := deployment("web")
	wanted.Spec.Template.Spec.Containers[0].Resources.Requests = nil
	made := expect.OK(apps.Create(c, wanted, metav1.CreateOptions{}))
	made.Spec.Paused = true
	live := expect.OK(apps.Update(c, made, metav1.UpdateOptions{}))
	expect.Equal("paused", live.Spec.Paused, true)
	listed := expect.OK(apps.List(c, metav1.ListOptions{}))
	expect.Equal("listed", expect.Names(listed.Items), []string{"web"})
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"bytes": {0, 255}}}
	kept := expect.OK(client.CoreV1().Secrets(c.namespace).Create(c, secret, metav1.CreateOptions{}))
	expect.Equal("bytes", kept.Data["bytes"], []byte{0, 255})
	watcher := expect.OK(apps.Watch(c, metav1.ListOptions{ResourceVersion: listed.ResourceVersion}))
	defer watcher.Stop()
	expect.NoError(apps.Delete(c, "web", metav1.DeleteOptions{}))
	event := <-watcher.ResultChan()
	expect.Equal("event", string(event.Type), "DELETED")
}

func rawRequests(c *check) {
	client := c.client.CoreV1().RESTClient()
	for path, part := range map[string]string{
		"/healthz": "ok", "/livez": "ok", "/readyz": "ok", "/version": `"major"`, "/api": "APIVersions",
		"/apis": "APIGroupList",
	} {
		body, err := client.Get().AbsPath(path).DoRaw(c)
		if err != nil || !strings.Contains(string(body), part) {
			expect.Failf("%s is %q (%v), want %q in it", path, body, err, part)
		}
	}
	request := client.Get().AbsPath("/apis/nothing.example.com/v1/things")
	err := request.Do(c).Error()
	expect.Refused(err, apierrors.IsNotFound, "the server could not find the requested resource")
	err = client.Post().AbsPath("/version").Body([]byte(`{}`)).Do(c).Error()
	expect.Equal("a method that is not allowed", err != nil, true)
	warm := []string{}
	expect.NoError(client.Get().AbsPath("/").Do(c).Into(&metav1.Status{}))
	paths := struct{ Paths []string }{}
	expect.NoError(json.Unmarshal(expect.OK(client.Get().AbsPath("/").DoRaw(c)), &paths))
	for _, path := range []string{"/api/v1", "/apis/apps/v1", "/openapi/v2", "/openapi/v3", "/version"} {
		if !slices.Contains(paths.Paths, path) {
			warm = append(warm, path)
		}
	}
	expect.Equal("paths that / leaves out", warm, []string{})
}

func statusErrors(c *check) {
	client := c.client.CoreV1().RESTClient()
	post := func(kind, body string) error {
		request := client.Post().Namespace(c.namespace).Resource("configmaps").SetHeader("Content-Type", kind)
		return request.Body([]byte(body)).Do(c).Error()
	}
	expect.Refused(post("application/json", `{"apiVersion":"v1",`), apierrors.IsBadRequest, "unexpected end of JSON input")
	expect.Refused(post("application/json", `{"apiVersion":"v1","kind":"Pod"}`), apierrors.IsBadRequest,
		"Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion")
	expect.Refused(post("text/plain", `x`), apierrors.IsUnsupportedMediaType, "the body of the request was in an unknown format")
	expect.Refused(post("application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A_b"}}`), apierrors.IsInvalid,
		`metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of`)
	expect.Refused(post("application/json", `{"apiVersion":"v1","kind":"ConfigMap","data":{"a":1},"metadata":{"name":"a"}}`),
		apierrors.IsBadRequest, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string")
	expect.Refused(post("application/json", `{"apiVersion":"v1","kind":"ConfigMap"}`), apierrors.IsInvalid,
		"name or generateName is required")
	err := post("application/json", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"%s-x"}}`, c.namespace))
	expect.Refused(err, apierrors.IsBadRequest, "the namespace of the provided object does not match the namespace sent on the request")

	_, err = c.client.CoreV1().ConfigMaps("no-such-namespace").Create(c,
		&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsNotFound, `namespaces "no-such-namespace" not found`)
	large := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"a": strings.Repeat("x", 1100000)}}
	_, err = c.client.CoreV1().ConfigMaps(c.namespace).Create(c, large, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "Too long: may not be more than 1048576 bytes")
	large.Data["a"] = strings.Repeat("x", 3500000)
	_, err = c.client.CoreV1().ConfigMaps(c.namespace).Create(c, large, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsRequestEntityTooLargeError, "")
}

func podLogs(c *check) {
	c.serviceAccount()
	pods := c.client.CoreV1().Pods(c.namespace)
	spec := v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "web:1"}}}
	expect.OK(pods.Create(c, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec}, metav1.CreateOptions{}))
	_, err := pods.GetLogs("none", &v1.PodLogOptions{}).Stream(c)
	expect.Refused(err, apierrors.IsNotFound, `pods "none" not found`)
	expect.Equal("log of a pod without a node", len(expect.OK(pods.GetLogs("web", &v1.PodLogOptions{}).DoRaw(c))), 0)
}

// serviceAccount creates the account that a controller would create, without which a real API server admits no pod.
func (c *check) serviceAccount() {
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := c.client.CoreV1().ServiceAccounts(c.namespace).Create(c, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		expect.NoError(err)
	}
}
