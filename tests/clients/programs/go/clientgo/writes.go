package main

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"clients/expect"
)

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	replicas := int32(2)
	containers := []v1.Container{{Name: "web", Image: "web:1"}, {Name: "side", Image: "side:1"}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: containers},
			},
		},
	}
}

func createAndUpdate(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	first := c.configMap("settings", nil, map[string]string{"colour": "red"})
	expect.Equal("a new object has its uid", first.UID != "", true)
	_, err := maps.Create(c, first, metav1.CreateOptions{})
	expect.Refused(err, expect.AnyReason, "resourceVersion should not be set on objects to be created")
	_, err = maps.Create(c, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsAlreadyExists, `configmaps "settings" already exists`)
	_, err = maps.Get(c, "other", metav1.GetOptions{})
	expect.Refused(err, apierrors.IsNotFound, `configmaps "other" not found`)

	changed := first.DeepCopy()
	changed.Data["colour"] = "blue"
	second := expect.OK(maps.Update(c, changed, metav1.UpdateOptions{FieldManager: "tester"}))
	expect.Equal("managers", len(second.ManagedFields), 2)
	_, err = maps.Update(c, changed, metav1.UpdateOptions{})
	expect.Refused(err, apierrors.IsConflict, "the object has been modified; please apply your changes to the latest version")
	same := expect.OK(maps.Update(c, second, metav1.UpdateOptions{FieldManager: "tester"}))
	expect.Equal("version after an update without a change", same.ResourceVersion, second.ResourceVersion)

	generated := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
	made := expect.OK(maps.Create(c, generated, metav1.CreateOptions{}))
	expect.Equal("generated prefix", strings.HasPrefix(made.Name, "made-") && len(made.Name) == 10, true)

	immutable := true
	second.Immutable = &immutable
	third := expect.OK(maps.Update(c, second, metav1.UpdateOptions{}))
	third.Data["colour"] = "green"
	_, err = maps.Update(c, third, metav1.UpdateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "field is immutable when `immutable` is set")
}

func builtinKinds(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	made := expect.OK(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	expect.Equal("generation", made.Generation, int64(1))
	expect.Equal("default strategy", made.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	expect.Equal("default restart policy", made.Spec.Template.Spec.RestartPolicy, v1.RestartPolicyAlways)
	made.Spec.Selector.MatchLabels["app"] = "other"
	made.Spec.Template.Labels["app"] = "other"
	_, err := apps.Update(c, made, metav1.UpdateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "spec.selector: Invalid value")
	expect.Refused(err, apierrors.IsInvalid, "field is immutable")

	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Port: 80}}},
	}
	stored := expect.OK(c.client.CoreV1().Services(c.namespace).Create(c, service, metav1.CreateOptions{}))
	expect.Equal("a service has an address", stored.Spec.ClusterIP != "", true)
	expect.Equal("default target port", stored.Spec.Ports[0].TargetPort.String(), "80")

	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"password": "x"}}
	kept := expect.OK(c.client.CoreV1().Secrets(c.namespace).Create(c, secret, metav1.CreateOptions{}))
	expect.Equal("data of a secret", string(kept.Data["password"]), "x")
	expect.Equal("write-only data", len(kept.StringData), 0)
	expect.Equal("default type", kept.Type, v1.SecretTypeOpaque)
}

func dryRuns(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	all := []string{metav1.DryRunAll}
	planned := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "planned"}}
	made := expect.OK(maps.Create(c, planned, metav1.CreateOptions{DryRun: all}))
	expect.Equal("a dry run gives a uid", made.UID != "", true)
	_, err := maps.Get(c, "planned", metav1.GetOptions{})
	expect.Refused(err, apierrors.IsNotFound, "planned")
	live := c.configMap("live", nil, map[string]string{"colour": "red"})
	patch := []byte(`{"data":{"colour":"blue"}}`)
	patched := expect.OK(maps.Patch(c, "live", types.MergePatchType, patch, metav1.PatchOptions{DryRun: all}))
	expect.Equal("data of the dry run", patched.Data["colour"], "blue")
	expect.NoError(maps.Delete(c, "live", metav1.DeleteOptions{DryRun: all}))
	again := expect.OK(maps.Get(c, "live", metav1.GetOptions{}))
	expect.Equal("version", again.ResourceVersion, live.ResourceVersion)
	_, err = maps.Create(c, planned, metav1.CreateOptions{DryRun: []string{"Some"}})
	expect.Refused(err, apierrors.IsInvalid, `dryRun: Unsupported value: ["Some"]: supported values: "All"`)
}

type recordedWarnings struct {
	lock sync.Mutex
	all  []string
}

func (w *recordedWarnings) HandleWarningHeader(code int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.all = append(w.all, strconv.Itoa(code)+" "+text)
}

func fieldValidation(c *check) {
	warnings := &recordedWarnings{}
	config := rest.CopyConfig(c.config)
	config.WarningHandler = warnings
	client := expect.OK(kubernetes.NewForConfig(config)).CoreV1().RESTClient()
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fields"},"dato":{},"data":{"a":"1","a":"2"}}`)
	post := func(validation string) error {
		request := client.Post().Namespace(c.namespace).Resource("configmaps").Param("fieldValidation", validation)
		return request.SetHeader("Content-Type", "application/json").Body(body).Do(c).Error()
	}
	expect.Refused(post("Strict"), apierrors.IsBadRequest, "strict decoding error: ")
	expect.NoError(post("Warn"))
	slices.Sort(warnings.all)
	expect.Equal("warnings", warnings.all, []string{`299 duplicate field "data.a"`, `299 unknown field "dato"`})
	expect.Refused(post("Sometimes"), apierrors.IsInvalid, `fieldValidation: Unsupported value: "Sometimes"`)
}

func retryOnConflict(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	c.configMap("count", nil, map[string]string{"value": "0"})
	var all sync.WaitGroup
	errors := make(chan error, 8)
	for range 8 {
		all.Go(func() {
			errors <- retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, func() error {
				return retry.RetryOnConflict(retry.DefaultRetry, func() error {
					live, err := maps.Get(c, "count", metav1.GetOptions{})
					if err != nil {
						return err
					}
					value, _ := strconv.Atoi(live.Data["value"])
					live.Data["value"] = strconv.Itoa(value + 1)
					_, err = maps.Update(c, live, metav1.UpdateOptions{})
					return err
				})
			})
		})
	}
	all.Wait()
	succeeded := 0
	for range 8 {
		if <-errors == nil {
			succeeded++
		}
	}
	final := expect.OK(maps.Get(c, "count", metav1.GetOptions{}))
	expect.Equal("no update is lost", final.Data["value"], strconv.Itoa(succeeded))
}

func patches(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	expect.OK(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	patch := func(kind types.PatchType, body string) (*appsv1.Deployment, error) {
		return apps.Patch(c, "web", kind, []byte(body), metav1.PatchOptions{})
	}
	live := expect.OK(patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":2},
		{"op":"replace","path":"/spec/replicas","value":3},{"op":"add","path":"/metadata/labels/a~1b","value":"c"}]`))
	expect.Equal("replicas", *live.Spec.Replicas, 3)
	expect.Equal("an escaped key", live.Labels["a/b"], "c")
	_, err := patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":2}]`)
	expect.Refused(err, apierrors.IsInvalid, "the server rejected our request due to an error in our request")
	_, err = patch(types.JSONPatchType, `[{"op":"remove","path":"/spec/nothing"}]`)
	expect.Refused(err, apierrors.IsInvalid, "the server rejected our request due to an error in our request")
	_, err = patch(types.JSONPatchType, `{"op":"remove"}`)
	expect.Refused(err, apierrors.IsBadRequest, "")

	live = expect.OK(patch(types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`))
	expect.Equal("containers", len(live.Spec.Template.Spec.Containers), 2)
	expect.Equal("image", live.Spec.Template.Spec.Containers[0].Image, "web:2")
	live = expect.OK(patch(types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"side"}]}}}}`))
	expect.Equal("containers", len(live.Spec.Template.Spec.Containers), 1)

	live = expect.OK(patch(types.MergePatchType, `{"metadata":{"labels":{"a/b":null}},"spec":{"paused":true}}`))
	expect.Equal("labels", live.Labels, map[string]string{"app": "web"})
	expect.Equal("paused", live.Spec.Paused, true)
	_, err = patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`)
	expect.Refused(err, apierrors.IsConflict, "the object has been modified")
	_, err = patch(types.MergePatchType, `{"metadata":{"name":"other"}}`)
	expect.Refused(err, apierrors.IsBadRequest, "the name of the object (other) does not match the name on the URL (web)")
	_, err = patch("application/other-patch+json", `{}`)
	expect.Refused(err, apierrors.IsUnsupportedMediaType, "415: Unsupported Media Type")

	config := c.config
	crd := []byte(`{}`)
	client := expect.OK(kubernetes.NewForConfig(config)).AppsV1().RESTClient()
	err = client.Patch(types.ApplyYAMLPatchType).Namespace(c.namespace).Resource("deployments").Name("web").Body(crd).Do(c).Error()
	expect.Refused(err, apierrors.IsInvalid, "fieldManager: Required value: is required for apply patch")
}

func serverSideApply(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	wanted := func(replicas int32) *applyapps.DeploymentApplyConfiguration {
		labels := map[string]string{"app": "web"}
		container := applycore.Container().WithName("web").WithImage("web:1").
			WithPorts(applycore.ContainerPort().WithContainerPort(80))
		template := applycore.PodTemplateSpec().WithLabels(labels).WithSpec(applycore.PodSpec().WithContainers(container))
		return applyapps.Deployment("web", c.namespace).WithSpec(applyapps.DeploymentSpec().
			WithReplicas(replicas).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(template))
	}
	made := expect.OK(apps.Apply(c, wanted(2), metav1.ApplyOptions{FieldManager: "us"}))
	again := expect.OK(apps.Apply(c, wanted(2), metav1.ApplyOptions{FieldManager: "us"}))
	expect.Equal("version after the same apply", again.ResourceVersion, made.ResourceVersion)

	_, err := apps.Apply(c, wanted(3), metav1.ApplyOptions{FieldManager: "them"})
	expect.Refused(err, apierrors.IsConflict, `Apply failed with 1 conflict: conflict with "us": .spec.replicas`)
	status := err.(apierrors.APIStatus).Status()
	expect.Equal("cause", status.Details.Causes[0].Type, metav1.CauseTypeFieldManagerConflict)
	taken := expect.OK(apps.Apply(c, wanted(3), metav1.ApplyOptions{FieldManager: "them", Force: true}))
	expect.Equal("replicas", *taken.Spec.Replicas, 3)

	ours := expect.OK(applyapps.ExtractDeployment(taken, "us"))
	expect.Equal("our replicas", ours.Spec.Replicas, nil)
	expect.Equal("our image", *ours.Spec.Template.Spec.Containers[0].Image, "web:1")
	theirs := expect.OK(applyapps.ExtractDeployment(taken, "them"))
	expect.Equal("their replicas", *theirs.Spec.Replicas, 3)
	ready := applyapps.Deployment("web", c.namespace).WithStatus(applyapps.DeploymentStatus().WithReplicas(3))
	after := expect.OK(apps.ApplyStatus(c, ready, metav1.ApplyOptions{FieldManager: "controller"}))
	expect.Equal("status", after.Status.Replicas, 3)
	expect.Equal("generation", after.Generation, taken.Generation)
	mine := expect.OK(applyapps.ExtractDeploymentStatus(after, "controller"))
	expect.Equal("our status", *mine.Status.Replicas, 3)

	less := applyapps.Deployment("web", c.namespace)
	removed := expect.OK(apps.Apply(c, less, metav1.ApplyOptions{FieldManager: "us", Force: true}))
	expect.Equal("what another manager still owns stays", *removed.Spec.Replicas, 3)
}

func statusSubresource(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	made := expect.OK(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	changed := made.DeepCopy()
	replicas := int32(9)
	changed.Spec.Replicas = &replicas
	changed.Status.ReadyReplicas, changed.Status.Replicas = 1, 2
	live := expect.OK(apps.UpdateStatus(c, changed, metav1.UpdateOptions{}))
	expect.Equal("status", live.Status.ReadyReplicas, 1)
	expect.Equal("spec", *live.Spec.Replicas, 2)
	expect.Equal("generation", live.Generation, 1)
	live.Spec.Replicas = &replicas
	live.Status.ReadyReplicas = 0
	live = expect.OK(apps.Update(c, live, metav1.UpdateOptions{}))
	expect.Equal("status", live.Status.ReadyReplicas, 1)
	expect.Equal("generation", live.Generation, 2)
	body := []byte(`{"status":{"observedGeneration":2}}`)
	live = expect.OK(apps.Patch(c, "web", types.MergePatchType, body, metav1.PatchOptions{}, "status"))
	expect.Equal("observed", live.Status.ObservedGeneration, 2)
	managers := map[string]bool{}
	for _, entry := range live.ManagedFields {
		managers[entry.Subresource] = true
	}
	expect.Equal("subresources of managers", managers, map[string]bool{"": true, "status": true})
}

func finalizers(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	made := expect.OK(maps.Create(c, object, metav1.CreateOptions{}))
	expect.NoError(maps.Delete(c, "held", metav1.DeleteOptions{}))
	held := expect.OK(maps.Get(c, "held", metav1.GetOptions{}))
	expect.Equal("deletion is asked for", held.DeletionTimestamp != nil, true)
	expect.Equal("grace period", *held.DeletionGracePeriodSeconds, 0)
	expect.Equal("version changes", held.ResourceVersion != made.ResourceVersion, true)
	_, err := maps.Create(c, object, metav1.CreateOptions{})
	expect.Refused(err, apierrors.IsAlreadyExists, "object is being deleted")
	held.Finalizers = append(held.Finalizers, "example.com/more")
	_, err = maps.Update(c, held, metav1.UpdateOptions{})
	expect.Refused(err, apierrors.IsInvalid, "no new finalizers can be added if the object is being deleted")
	held.Finalizers = nil
	expect.OK(maps.Update(c, held, metav1.UpdateOptions{}))
	_, err = maps.Get(c, "held", metav1.GetOptions{})
	expect.Refused(err, apierrors.IsNotFound, "held")
}

func deletes(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	made := c.configMap("settings", nil, nil)
	uid, version := types.UID("other"), "1"
	err := maps.Delete(c, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	expect.Refused(err, apierrors.IsConflict, "the UID in the precondition (other) does not match the UID in record")
	err = maps.Delete(c, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	expect.Refused(err, apierrors.IsConflict, "does not match the ResourceVersion in record")
	expect.NoError(maps.Delete(c, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}))
	err = maps.Delete(c, "settings", metav1.DeleteOptions{})
	expect.Refused(err, apierrors.IsNotFound, `configmaps "settings" not found`)

	c.configMap("parent", nil, nil)
	foreground, orphan := metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	expect.NoError(maps.Delete(c, "parent", metav1.DeleteOptions{PropagationPolicy: &foreground, DryRun: []string{"All"}}))
	both := metav1.DeleteOptions{PropagationPolicy: &orphan, OrphanDependents: new(bool)}
	expect.Refused(maps.Delete(c, "parent", both), apierrors.IsInvalid, "orphanDependents and deletionPropagation cannot be both set")
	wrong := metav1.DeletionPropagation("Sideways")
	expect.Refused(maps.Delete(c, "parent", metav1.DeleteOptions{PropagationPolicy: &wrong}), apierrors.IsInvalid, "Sideways")
}

func deleteCollection(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	for i := range 6 {
		c.configMap("item-"+strconv.Itoa(i), map[string]string{"half": strconv.Itoa(i % 2)}, nil)
	}
	expect.NoError(maps.DeleteCollection(c, metav1.DeleteOptions{DryRun: []string{"All"}}, metav1.ListOptions{LabelSelector: "half=0"}))
	expect.NoError(maps.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "half=0"}))
	left := expect.OK(maps.List(c, metav1.ListOptions{LabelSelector: "half"}))
	expect.Equal("the other half", expect.Names(left.Items), []string{"item-1", "item-3", "item-5"})
	expect.NoError(maps.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=item-3"}))
	left = expect.OK(maps.List(c, metav1.ListOptions{LabelSelector: "half"}))
	expect.Equal("all but one", expect.Names(left.Items), []string{"item-1", "item-5"})
}
