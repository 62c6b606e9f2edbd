// The parts of client-go that operators are made of, each used once against the API server of $KUBECONFIG.
//
// It prints a JSON object: for each group an empty string, or what differed from a real API server. Groups run at the
// same time, each in its own namespace.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
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

// failure ends a group; no group goes on after what it did not expect.
type failure string

func fail(format string, arguments ...any) {
	where := "?"
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		if strings.Contains(line, "/clientgo/") && !strings.Contains(line, "/main.go:") {
			where = strings.Fields(line[strings.LastIndex(line, "/")+1:])[0]
			break
		}
	}
	panic(failure(fmt.Sprintf("%s: ", where) + fmt.Sprintf(format, arguments...)))
}

// ok returns a value that must have come without an error.
func ok[T any](value T, err error) T {
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func want[T any](what string, got, expected T) {
	if !reflect.DeepEqual(got, expected) {
		fail("%s is %v, want %v", what, got, expected)
	}
}

// anyReason is for errors without a reason of their own.
func anyReason(error) bool { return true }

// refused demands an error that the predicate recognises and whose text contains some words.
func refused(err error, predicate func(error) bool, words string) {
	if err == nil {
		fail("no error, want %q", words)
	}
	if !predicate(err) {
		fail("%q has reason %q", err, apierrors.ReasonForError(err))
	}
	if !strings.Contains(err.Error(), words) {
		fail("the error is %q, want %q in it", err, words)
	}
}

// until waits for a condition that other goroutines or the server bring about.
func (c *check) until(what string, condition func() bool) {
	err := wait.PollUntilContextCancel(c, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		fail("%s: %v", what, err)
	}
}

// names returns the names of objects, sorted.
func names[T any, P interface {
	*T
	metav1.Object
}](items []T) []string {
	found := []string{}
	for i := range items {
		found = append(found, P(&items[i]).GetName())
	}
	slices.Sort(found)
	return found
}

func (c *check) configMap(name string, labels map[string]string, data map[string]string) *v1.ConfigMap {
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data}
	return ok(c.client.CoreV1().ConfigMaps(c.namespace).Create(c, object, metav1.CreateOptions{}))
}

func run(name string, group func(*check), config *rest.Config) (result string, definitions []string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var c *check
	defer func() {
		definitions = c.definitions
		switch found := recover().(type) {
		case nil:
		case failure:
			result = string(found)
		default:
			result = fmt.Sprintf("%v\n%s", found, debug.Stack())
		}
	}()
	c = &check{
		Context:   ctx,
		config:    config,
		client:    ok(kubernetes.NewForConfig(config)),
		dynamic:   ok(dynamic.NewForConfig(config)),
		namespace: "",
	}
	word := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" .", r) {
			return '-'
		}
		return r
	}, strings.ToLower(name))
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: word + "-"}}
	c.namespace = ok(c.client.CoreV1().Namespaces().Create(c, space, metav1.CreateOptions{})).Name
	group(c)
	return "", nil
}

// remove deletes definitions at the end: a group that leaves while others read discovery is an error for them.
func remove(config *rest.Config, definitions []string) {
	client := ok(extensions.NewForConfig(config)).ApiextensionsV1().CustomResourceDefinitions()
	for _, name := range definitions {
		must(client.Delete(context.Background(), name, metav1.DeleteOptions{}))
	}
}

func main() {
	klog.SetOutput(os.Stderr)
	config := ok(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
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
	must(json.NewEncoder(os.Stdout).Encode(results))
}
