// The parts of client-go that operators are made of, each used once against the API server of $KUBECONFIG.
//
// It prints a JSON object: for each group an empty string, or what differed from a real API server. Groups run at the
// same time, each in its own namespace.
package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"clients/expect"
)

const (
	timeout  = 5 * time.Minute // of a group; a busy machine may need long for what usually takes a second
	parallel = 4               // groups at the same time
)

var groups = map[string]func(*check){
	"invalid reviews":         invalidReviews,
	"access reviews":          accessReviews,
	"built-in kinds":          builtinKinds,
	"create and update":       createAndUpdate,
	"custom resources":        customResources,
	"delete":                  deletes,
	"delete collection":       deleteCollection,
	"discovery":               discovers,
	"dry run":                 dryRuns,
	"dynamic client":          dynamicClient,
	"dynamic informer":        dynamicInformer,
	"errors":                  statusErrors,
	"events of core":          coreEvents,
	"events of events.k8s.io": newEvents,
	"eviction":                evictions,
	"field validation":        fieldValidation,
	"finalizers":              finalizers,
	"leader election":         leaderElection,
	"legacy discovery":        legacyDiscovery,
	"list options":            listOptions,
	"metadata client":         metadataClient,
	"OpenAPI v2":              openAPI2,
	"token reviews":           tokenReviews,
	"log of a pod":            podLogs,
	"OpenAPI v3":              openAPI,
	"paging":                  paging,
	"patches":                 patches,
	"protobuf":                protobufClient,
	"raw requests":            rawRequests,
	"reflector and 410":       reflectorAfterExpiry,
	"REST mapper":             restMapper,
	"retry on conflict":       retryOnConflict,
	"retry watcher":           retryWatcher,
	"scale client":            scaleClient,
	"server-side apply":       serverSideApply,
	"shared informers":        sharedInformers,
	"status":                  statusSubresource,
	"tables":                  tables,
	"watch":                   watches,
	"watch list":              watchList,
}

// check is what a group gets.
type check struct {
	context.Context
	config    *rest.Config
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string

	definitions []string // to be deleted when all groups are done
}

func (c *check) configMap(name string, labels map[string]string, data map[string]string) *v1.ConfigMap {
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data}
	return expect.OK(c.client.CoreV1().ConfigMaps(c.namespace).Create(c, object, metav1.CreateOptions{}))
}

func run(name string, group func(*check), config *rest.Config) (problem string, definitions []string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c := &check{Context: ctx, config: config}
	problem = expect.Problem(func() {
		c.client = expect.OK(kubernetes.NewForConfig(config))
		c.dynamic = expect.OK(dynamic.NewForConfig(config))
		word := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" .", r) {
				return '-'
			}
			return r
		}, strings.ToLower(name))
		space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: word + "-"}}
		c.namespace = expect.OK(c.client.CoreV1().Namespaces().Create(c, space, metav1.CreateOptions{})).Name
		group(c)
	})
	return problem, c.definitions
}

// remove deletes definitions at the end: a group that leaves while others read discovery is an error for them.
func remove(config *rest.Config, definitions []string) {
	client := expect.OK(extensions.NewForConfig(config)).ApiextensionsV1().CustomResourceDefinitions()
	for _, name := range definitions {
		expect.NoError(client.Delete(context.Background(), name, metav1.DeleteOptions{}))
	}
}

func main() {
	klog.SetOutput(os.Stderr)
	config := expect.OK(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	config.QPS, config.Burst = -1, -1
	chosen := os.Args[1:]
	results := map[string]string{}
	definitions := []string{}
	var all sync.WaitGroup
	var lock sync.Mutex
	slots := make(chan struct{}, parallel)
	start := func(name string) {
		slots <- struct{}{}
		defer func() { <-slots }()
		began := time.Now()
		result, defined := run(name, groups[name], rest.CopyConfig(config))
		klog.Infof("%s: %.1f s", name, time.Since(began).Seconds())
		lock.Lock()
		defer lock.Unlock()
		results[name] = result
		definitions = append(definitions, defined...)
	}
	for name := range groups {
		if len(chosen) == 0 || slices.Contains(chosen, name) {
			all.Go(func() { start(name) })
		}
	}
	all.Wait()
	remove(config, definitions)
	expect.NoError(json.NewEncoder(os.Stdout).Encode(results))
}
