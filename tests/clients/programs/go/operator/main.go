// An operator with controller-runtime, and checks that it works against the API server of $KUBECONFIG.
//
// The operator has what kubebuilder generates: a definition with a rule and two versions, mutating, validating and
// conversion webhooks, a finalizer, owned kinds, a field index, a cache with selectors, leader election, a status
// subresource, events, and a metrics endpoint behind authentication and authorization. The program prints a JSON object:
// for each check an empty string, or what differed from a real API server. Checks run one after the other, each in its
// own namespace.
package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"clients/expect"
)

const timeout = 5 * time.Minute // of a check; a busy machine may need long for what usually takes a second

// check is what a check gets.
type check struct {
	context.Context
	client.Client    // without a cache
	environment      *envtest.Environment
	leader, follower *running
	warnings         *warnings
	namespace        string
}

// warnings collects the warnings of the API server.
type warnings struct {
	sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

// key returns the key of an object of the check.
func (c *check) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace, Name: name}
}

// shop returns a shop that is not created yet.
func (c *check) shop(name, colour string) *Shop {
	return &Shop{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}, Spec: ShopSpec{Colour: colour}}
}

// opened creates a shop and waits until it is reconciled.
func (c *check) opened(name string) *Shop {
	expect.NoError(c.Create(c, c.shop(name, "blue")))
	shop := &Shop{}
	expect.Until(c, "the shop is reconciled", func() bool {
		expect.NoError(c.Get(c, c.key(name), shop))
		return shop.Status.ObservedGeneration == shop.Generation
	})
	return shop
}

// gone waits until an object does not exist.
func (c *check) gone(object client.Object, name string) {
	expect.Until(c, name+" is gone", func() bool {
		err := c.Get(c, c.key(name), object)
		expect.NoError(client.IgnoreNotFound(err))
		return err != nil
	})
}

// hooks returns the address of the webhooks.
func (c *check) hooks() string {
	served := c.environment.WebhookInstallOptions
	return net.JoinHostPort(served.LocalServingHost, strconv.Itoa(served.LocalServingPort))
}

// run runs a check in a new namespace.
func (c check) run(ctx context.Context, name string, body func(*check)) string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c.Context = ctx
	return expect.Problem(func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.ReplaceAll(name, " ", "-") + "-"}}
		expect.NoError(c.Create(ctx, namespace))
		c.namespace = namespace.Name
		body(&c)
	})
}

// clean removes the webhooks, the shops, and then the definition: while the operator runs, which removes its finalizers.
func clean(c *check) {
	for _, each := range c.environment.WebhookInstallOptions.ValidatingWebhooks {
		expect.NoError(client.IgnoreNotFound(c.Delete(c, each)))
	}
	for _, each := range c.environment.WebhookInstallOptions.MutatingWebhooks {
		expect.NoError(client.IgnoreNotFound(c.Delete(c, each)))
	}
	shops := &ShopList{}
	expect.Until(c, "the shops are gone", func() bool {
		expect.NoError(c.List(c, shops))
		for i := range shops.Items {
			expect.NoError(client.IgnoreNotFound(c.Delete(c, &shops.Items[i])))
		}
		return len(shops.Items) == 0
	})
	c.follower.stopped()
	expect.NoError(c.environment.Stop())
}

func main() {
	klog.SetOutput(os.Stderr)
	ctrl.SetLogger(klog.Background())
	settings := expect.OK(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	settings.QPS, settings.Burst = -1, -1
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	scheme := newScheme()
	found := &warnings{}
	own := rest.CopyConfig(settings)
	own.WarningHandler = found
	c := check{environment: install(settings, scheme), warnings: found, Client: expect.OK(client.New(own, client.Options{Scheme: scheme}))}
	lease := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lease-"}}
	expect.NoError(c.Create(ctx, lease))
	c.leader = start(ctx, c.environment, "first", lease.Name, true)
	expect.Until(ctx, "the first manager leads", c.leader.isLeader)
	c.follower = start(ctx, c.environment, "second", lease.Name, false)
	results := map[string]string{}
	for _, each := range checks {
		began := time.Now()
		results[each.name] = c.run(ctx, each.name, each.body)
		klog.Infof("%s: %.1f s", each.name, time.Since(began).Seconds())
	}
	expect.NoError(json.NewEncoder(os.Stdout).Encode(results))
}
