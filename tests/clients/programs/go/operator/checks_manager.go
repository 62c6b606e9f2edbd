package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"clients/expect"
)

// fieldIndexes: a ConfigMap that a shop does not own is mapped to it by the index, and the index answers lists.
func fieldIndexes(c *check) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: c.namespace}, Data: map[string]string{"shade": "-light"}}
	expect.NoError(c.Create(c, settings))
	shop := c.shop("corner", "blue")
	shop.Spec.Settings = "settings"
	expect.NoError(c.Create(c, shop))
	expect.NoError(c.Create(c, c.shop("other", "blue")))
	deployment := &appsv1.Deployment{}
	painted := func(paint string) {
		expect.Until(c, "it is painted "+paint, func() bool {
			expect.NoError(client.IgnoreNotFound(c.Get(c, c.key("corner"), deployment)))
			return deployment.Spec.Template.Annotations[paintKey] == paint
		})
	}
	painted("blue-light")
	settings.Data["shade"] = "-dark"
	expect.NoError(c.Update(c, settings))
	painted("blue-dark")
	found := &ShopList{}
	expect.NoError(c.leader.GetClient().List(c, found, client.InNamespace(c.namespace), client.MatchingFields{settingsIndex: "settings"}))
	expect.Equal("shops by the index", expect.Names(found.Items), []string{"corner"})
	expect.Refused(c.List(c, found, client.MatchingFields{settingsIndex: "settings"}), apierrors.IsBadRequest, "field label not supported: .spec.settings")
}

// metadataOnly: Secrets are watched without their data.
func metadataOnly(c *check) {
	shop := c.opened("corner")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key", Namespace: c.namespace, Labels: map[string]string{shopLabel: "corner"}},
		StringData: map[string]string{"key": "secret"},
	}
	expect.NoError(c.Create(c, secret))
	reported := func() {
		expect.Until(c, "its version is reported", func() bool {
			expect.NoError(c.Get(c, c.key("corner"), shop))
			return shop.Status.SecretVersion == secret.ResourceVersion
		})
	}
	reported()
	before := secret.DeepCopy()
	secret.Data["key"] = []byte("changed")
	expect.NoError(c.Patch(c, secret, client.MergeFrom(before)))
	reported()
}

// cacheSelectors: the cache of the manager has only Deployments with the label.
func cacheSelectors(c *check) {
	c.opened("corner")
	labels := map[string]string{"app": "web"}
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: c.namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	expect.NoError(c.Create(c, other))
	cached, direct := c.leader.GetClient(), c.leader.GetAPIReader()
	expect.NoError(direct.Get(c, c.key("other"), &appsv1.Deployment{}))
	listed := func() []string {
		found := &appsv1.DeploymentList{}
		expect.NoError(cached.List(c, found, client.InNamespace(c.namespace)))
		return expect.Names(found.Items)
	}
	expect.Equal("cached", listed(), []string{"corner"})
	before := other.DeepCopy()
	other.Labels = map[string]string{managed: "true"}
	expect.NoError(c.Patch(c, other, client.MergeFrom(before)))
	expect.Until(c, "an object that the selector selects now arrives", func() bool { return len(listed()) == 2 })
	before = other.DeepCopy()
	other.Labels = nil
	expect.NoError(c.Patch(c, other, client.MergeFrom(before)))
	expect.Until(c, "an object that it does not select any more leaves", func() bool { return len(listed()) == 1 })
}

// get requests a page of the manager.
func get(url, token string) (int, string) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	request := expect.OK(http.NewRequest(http.MethodGet, url, nil))
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response := expect.OK((&http.Client{Transport: transport}).Do(request))
	defer response.Body.Close()
	return response.StatusCode, string(expect.OK(io.ReadAll(response.Body)))
}

// metrics: the endpoint asks the API server who the token is, and what it may do.
func metrics(c *check) {
	url := "https://" + c.leader.metrics + "/metrics"
	code, _ := get(url, "")
	expect.Equal("without a token", code, http.StatusUnauthorized)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: c.namespace}}
	expect.NoError(c.Create(c, account))
	role := &rbac.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Rules:      []rbac.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	expect.NoError(c.Create(c, role))
	defer c.Delete(c, role)
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: c.namespace},
		Subjects:   []rbac.Subject{{Kind: rbac.ServiceAccountKind, Name: "prometheus", Namespace: c.namespace}},
	}
	expect.NoError(c.Create(c, binding))
	defer c.Delete(c, binding)
	token := &authentication.TokenRequest{}
	expect.NoError(c.SubResource("token").Create(c, account, token))
	var body string
	expect.Until(c, "the token is accepted", func() bool { // when the API server's own cache of roles has the binding
		code, body = get(url, token.Status.Token)
		return code == http.StatusOK
	})
	expect.Equal("counted", strings.Contains(body, `controller_runtime_reconcile_total{controller="shop",result="success"}`), true)
	code, _ = get(url, "not-a-token")
	expect.Equal("with an invalid token", code, http.StatusInternalServerError) // the filter's own answer
}

func healthProbes(c *check) {
	for _, path := range []string{"/healthz", "/readyz", "/readyz/webhooks"} {
		code, _ := get("http://"+c.leader.health+path, "")
		expect.Equal(path, code, http.StatusOK)
	}
}

func leaderElection(c *check) {
	leases := &coordination.LeaseList{}
	expect.NoError(c.List(c, leases, client.MatchingFields{"metadata.name": leaseName}))
	expect.Equal("leases", len(leases.Items), 1)
	expect.Equal("the follower leads", c.follower.isLeader(), false)
	holder := *leases.Items[0].Spec.HolderIdentity
	c.leader.stopped()
	expect.Until(c, "the follower leads", c.follower.isLeader)
	lease := &coordination.Lease{}
	expect.NoError(c.Get(c, client.ObjectKeyFromObject(&leases.Items[0]), lease))
	if *lease.Spec.HolderIdentity == holder {
		expect.Failf("%s still holds the lease", holder)
	}
	expect.Equal("transitions", *lease.Spec.LeaseTransitions, *leases.Items[0].Spec.LeaseTransitions+1)
}

// unreachableWebhooks: the manager with the webhooks has stopped; then their configurations are removed.
func unreachableWebhooks(c *check) {
	served := c.environment.WebhookInstallOptions
	err := c.Create(c, c.shop("corner", "blue"))
	expect.Refused(err, apierrors.IsInternalError, `Internal error occurred: failed calling webhook "default.operator.example.com": `+
		`failed to call webhook: Post "https://`+c.hooks()+`/mutate-operator-example-com-v1-shop?timeout=10s": dial tcp `+c.hooks()+`: connect: connection refused`)
	for _, each := range served.MutatingWebhooks {
		ignore := admissionregistration.Ignore
		each.Webhooks[0].FailurePolicy = &ignore
		expect.NoError(c.Update(c, each))
	}
	for _, each := range served.ValidatingWebhooks {
		expect.NoError(c.Delete(c, each))
	}
	shop := c.shop("corner", "")
	expect.Until(c, "the new policy has effect", func() bool { return c.Create(c, shop) == nil })
	expect.Equal("colour", shop.Spec.Colour, "")
	for _, each := range served.MutatingWebhooks {
		expect.NoError(c.Delete(c, each))
	}
}

// failover: the second manager reconciles what the first one left, and what is new.
func failover(c *check) {
	c.opened("corner")
	sign := &corev1.ConfigMap{}
	expect.NoError(c.Get(c, c.key("corner-sign"), sign))
	expect.Equal("manager", sign.Data["manager"], "second")
}
