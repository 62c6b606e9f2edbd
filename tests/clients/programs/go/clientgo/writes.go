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
	want("a new object has its uid", first.UID != "", true)
	_, err := maps.Create(c, first, metav1.CreateOptions{})
	refused(err, anyReason, "resourceVersion should not be set on objects to be created")
	_, err = maps.Create(c, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	refused(err, apierrors.IsAlreadyExists, `configmaps "settings" already exists`)
	_, err = maps.Get(c, "other", metav1.GetOptions{})
	refused(err, apierrors.IsNotFound, `configmaps "other" not found`)

	changed := first.DeepCopy()
	changed.Data["colour"] = "blue"
	second := ok(maps.Update(c, changed, metav1.UpdateOptions{FieldManager: "tester"}))
	want("managers", len(second.ManagedFields), 2)
	_, err = maps.Update(c, changed, metav1.UpdateOptions{})
	refused(err, apierrors.IsConflict, "the object has been modified; please apply your changes to the latest version")
	same := ok(maps.Update(c, second, metav1.UpdateOptions{FieldManager: "tester"}))
	want("version after an update without a change", same.ResourceVersion, second.ResourceVersion)

	generated := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
	made := ok(maps.Create(c, generated, metav1.CreateOptions{}))
	want("generated prefix", strings.HasPrefix(made.Name, "made-") && len(made.Name) == 10, true)

	immutable := true
	second.Immutable = &immutable
	third := ok(maps.Update(c, second, metav1.UpdateOptions{}))
	third.Data["colour"] = "green"
	_, err = maps.Update(c, third, metav1.UpdateOptions{})
	refused(err, apierrors.IsInvalid, "field is immutable when `immutable` is set")
}

func builtinKinds(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	made := ok(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	want("generation", made.Generation, int64(1))
	want("default strategy", made.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	want("default restart policy", made.Spec.Template.Spec.RestartPolicy, v1.RestartPolicyAlways)
	made.Spec.Selector.MatchLabels["app"] = "other"
	made.Spec.Template.Labels["app"] = "other"
	_, err := apps.Update(c, made, metav1.UpdateOptions{})
	refused(err, apierrors.IsInvalid, "spec.selector: Invalid value")
	refused(err, apierrors.IsInvalid, "field is immutable")

	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Port: 80}}},
	}
	stored := ok(c.client.CoreV1().Services(c.namespace).Create(c, service, metav1.CreateOptions{}))
	want("a service has an address", stored.Spec.ClusterIP != "", true)
	want("default target port", stored.Spec.Ports[0].TargetPort.String(), "80")

	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"password": "x"}}
	kept := ok(c.client.CoreV1().Secrets(c.namespace).Create(c, secret, metav1.CreateOptions{}))
	want("data of a secret", string(kept.Data["password"]), "x")
	want("write-only data", len(kept.StringData), 0)
	want("default type", kept.Type, v1.SecretTypeOpaque)
}

func dryRuns(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	all := []string{metav1.DryRunAll}
	planned := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "planned"}}
	made := ok(maps.Create(c, planned, metav1.CreateOptions{DryRun: all}))
	want("a dry run gives a uid", made.UID != "", true)
	_, err := maps.Get(c, "planned", metav1.GetOptions{})
	refused(err, apierrors.IsNotFound, "planned")
	live := c.configMap("live", nil, map[string]string{"colour": "red"})
	patch := []byte(`{"data":{"colour":"blue"}}`)
	patched := ok(maps.Patch(c, "live", types.MergePatchType, patch, metav1.PatchOptions{DryRun: all}))
	want("data of the dry run", patched.Data["colour"], "blue")
	must(maps.Delete(c, "live", metav1.DeleteOptions{DryRun: all}))
	again := ok(maps.Get(c, "live", metav1.GetOptions{}))
	want("version", again.ResourceVersion, live.ResourceVersion)
	_, err = maps.Create(c, planned, metav1.CreateOptions{DryRun: []string{"Some"}})
	refused(err, apierrors.IsInvalid, `dryRun: Unsupported value: ["Some"]: supported values: "All"`)
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
	client := ok(kubernetes.NewForConfig(config)).CoreV1().RESTClient()
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fields"},"dato":{},"data":{"a":"1","a":"2"}}`)
	post := func(validation string) error {
		request := client.Post().Namespace(c.namespace).Resource("configmaps").Param("fieldValidation", validation)
		return request.SetHeader("Content-Type", "application/json").Body(body).Do(c).Error()
	}
	refused(post("Strict"), apierrors.IsBadRequest, "strict decoding error: ")
	must(post("Warn"))
	slices.Sort(warnings.all)
	want("warnings", warnings.all, []string{`299 duplicate field "data.a"`, `299 unknown field "dato"`})
	refused(post("Sometimes"), apierrors.IsInvalid, `fieldValidation: Unsupported value: "Sometimes"`)
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
	final := ok(maps.Get(c, "count", metav1.GetOptions{}))
	want("no update is lost", final.Data["value"], strconv.Itoa(succeeded))
}

func patches(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	ok(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	patch := func(kind types.PatchType, body string) (*appsv1.Deployment, error) {
		return apps.Patch(c, "web", kind, []byte(body), metav1.PatchOptions{})
	}
	live := ok(patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":2},
		{"op":"replace","path":"/spec/replicas","value":3},{"op":"add","path":"/metadata/labels/a~1b","value":"c"}]`))
	want("replicas", *live.Spec.Replicas, 3)
	want("an escaped key", live.Labels["a/b"], "c")
	_, err := patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":2}]`)
	refused(err, apierrors.IsInvalid, "the server rejected our request due to an error in our request")
	_, err = patch(types.JSONPatchType, `[{"op":"remove","path":"/spec/nothing"}]`)
	refused(err, apierrors.IsInvalid, "the server rejected our request due to an error in our request")
	_, err = patch(types.JSONPatchType, `{"op":"remove"}`)
	refused(err, apierrors.IsBadRequest, "")

	live = ok(patch(types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`))
	want("containers", len(live.Spec.Template.Spec.Containers), 2)
	want("image", live.Spec.Template.Spec.Containers[0].Image, "web:2")
	live = ok(patch(types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"side"}]}}}}`))
	want("containers", len(live.Spec.Template.Spec.Containers), 1)

	live = ok(patch(types.MergePatchType, `{"metadata":{"labels":{"a/b":null}},"spec":{"paused":true}}`))
	want("labels", live.Labels, map[string]string{"app": "web"})
	want("paused", live.Spec.Paused, true)
	_, err = patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`)
	refused(err, apierrors.IsConflict, "the object has been modified")
	_, err = patch(types.MergePatchType, `{"metadata":{"name":"other"}}`)
	refused(err, apierrors.IsBadRequest, "the name of the object (other) does not match the name on the URL (web)")
	_, err = patch("application/other-patch+json", `{}`)
	refused(err, apierrors.IsUnsupportedMediaType, "415: Unsupported Media Type")

	config := c.config
	crd := []byte(`{}`)
	client := ok(kubernetes.NewForConfig(config)).AppsV1().RESTClient()
	err = client.Patch(types.ApplyYAMLPatchType).Namespace(c.namespace).Resource("deployments").Name("web").Body(crd).Do(c).Error()
	refused(err, apierrors.IsInvalid, "fieldManager: Required value: is required for apply patch")
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
	made := ok(apps.Apply(c, wanted(2), metav1.ApplyOptions{FieldManager: "us"}))
	again := ok(apps.Apply(c, wanted(2), metav1.ApplyOptions{FieldManager: "us"}))
	want("version after the same apply", again.ResourceVersion, made.ResourceVersion)

	_, err := apps.Apply(c, wanted(3), metav1.ApplyOptions{FieldManager: "them"})
	refused(err, apierrors.IsConflict, `Apply failed with 1 conflict: conflict with "us": .spec.replicas`)
	status := err.(apierrors.APIStatus).Status()
	want("cause", status.Details.Causes[0].Type, metav1.CauseTypeFieldManagerConflict)
	taken := ok(apps.Apply(c, wanted(3), metav1.ApplyOptions{FieldManager: "them", Force: true}))
	want("replicas", *taken.Spec.Replicas, 3)

	ours := ok(applyapps.ExtractDeployment(taken, "us"))
	want("our replicas", ours.Spec.Replicas, nil)
	want("our image", *ours.Spec.Template.Spec.Containers[0].Image, "web:1")
	theirs := ok(applyapps.ExtractDeployment(taken, "them"))
	want("their replicas", *theirs.Spec.Replicas, 3)
	ready := applyapps.Deployment("web", c.namespace).WithStatus(applyapps.DeploymentStatus().WithReplicas(3))
	after := ok(apps.ApplyStatus(c, ready, metav1.ApplyOptions{FieldManager: "controller"}))
	want("status", after.Status.Replicas, 3)
	want("generation", after.Generation, taken.Generation)
	mine := ok(applyapps.ExtractDeploymentStatus(after, "controller"))
	want("our status", *mine.Status.Replicas, 3)

	less := applyapps.Deployment("web", c.namespace)
	removed := ok(apps.Apply(c, less, metav1.ApplyOptions{FieldManager: "us", Force: true}))
	want("what another manager still owns stays", *removed.Spec.Replicas, 3)
}

func statusSubresource(c *check) {
	apps := c.client.AppsV1().Deployments(c.namespace)
	made := ok(apps.Create(c, deployment("web"), metav1.CreateOptions{}))
	changed := made.DeepCopy()
	replicas := int32(9)
	changed.Spec.Replicas = &replicas
	changed.Status.ReadyReplicas, changed.Status.Replicas = 1, 2
	live := ok(apps.UpdateStatus(c, changed, metav1.UpdateOptions{}))
	want("status", live.Status.ReadyReplicas, 1)
	want("spec", *live.Spec.Replicas, 2)
	want("generation", live.Generation, 1)
	live.Spec.Replicas = &replicas
	live.Status.ReadyReplicas = 0
	live = ok(apps.Update(c, live, metav1.UpdateOptions{}))
	want("status", live.Status.ReadyReplicas, 1)
	want("generation", live.Generation, 2)
	body := []byte(`{"status":{"observedGeneration":2}}`)
	live = ok(apps.Patch(c, "web", types.MergePatchType, body, metav1.PatchOptions{}, "status"))
	want("observed", live.Status.ObservedGeneration, 2)
	managers := map[string]bool{}
	for _, entry := range live.ManagedFields {
		managers[entry.Subresource] = true
	}
	want("subresources of managers", managers, map[string]bool{"": true, "status": true})
}

func finalizers(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	made := ok(maps.Create(c, object, metav1.CreateOptions{}))
	must(maps.Delete(c, "held", metav1.DeleteOptions{}))
	held := ok(maps.Get(c, "held", metav1.GetOptions{}))
	want("deletion is asked for", held.DeletionTimestamp != nil, true)
	want("grace period", *held.DeletionGracePeriodSeconds, 0)
	want("version changes", held.ResourceVersion != made.ResourceVersion, true)
	_, err := maps.Create(c, object, metav1.CreateOptions{})
	refused(err, apierrors.IsAlreadyExists, "object is being deleted")
	held.Finalizers = append(held.Finalizers, "example.com/more")
	_, err = maps.Update(c, held, metav1.UpdateOptions{})
	refused(err, apierrors.IsInvalid, "no new finalizers can be added if the object is being deleted")
	held.Finalizers = nil
	ok(maps.Update(c, held, metav1.UpdateOptions{}))
	_, err = maps.Get(c, "held", metav1.GetOptions{})
	refused(err, apierrors.IsNotFound, "held")
}

func deletes(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	made := c.configMap("settings", nil, nil)
	uid, version := types.UID("other"), "1"
	err := maps.Delete(c, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	refused(err, apierrors.IsConflict, "the UID in the precondition (other) does not match the UID in record")
	err = maps.Delete(c, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	refused(err, apierrors.IsConflict, "does not match the ResourceVersion in record")
	must(maps.Delete(c, "settings", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}))
	err = maps.Delete(c, "settings", metav1.DeleteOptions{})
	refused(err, apierrors.IsNotFound, `configmaps "settings" not found`)

	c.configMap("parent", nil, nil)
	foreground, orphan := metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	must(maps.Delete(c, "parent", metav1.DeleteOptions{PropagationPolicy: &foreground, DryRun: []string{"All"}}))
	both := metav1.DeleteOptions{PropagationPolicy: &orphan, OrphanDependents: new(bool)}
	refused(maps.Delete(c, "parent", both), apierrors.IsInvalid, "orphanDependents and deletionPropagation cannot be both set")
	wrong := metav1.DeletionPropagation("Sideways")
	refused(maps.Delete(c, "parent", metav1.DeleteOptions{PropagationPolicy: &wrong}), apierrors.IsInvalid, "Sideways")
}

func deleteCollection(c *check) {
	maps := c.client.CoreV1().ConfigMaps(c.namespace)
	for i := range 6 {
		c.configMap("item-"+strconv.Itoa(i), map[string]string{"half": strconv.Itoa(i % 2)}, nil)
	}
	must(maps.DeleteCollection(c, metav1.DeleteOptions{DryRun: []string{"All"}}, metav1.ListOptions{LabelSelector: "half=0"}))
	must(maps.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "half=0"}))
	left := ok(maps.List(c, metav1.ListOptions{LabelSelector: "half"}))
	want("the other half", names(left.Items), []string{"item-1", "item-3", "item-5"})
	must(maps.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=item-3"}))
	left = ok(maps.List(c, metav1.ListOptions{LabelSelector: "half"}))
	want("all but one", names(left.Items), []string{"item-1", "item-5"})
}
