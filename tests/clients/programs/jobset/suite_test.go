// Set-up of JobSet's own suite: it takes the place of the file of this name in the module (`go build -overlay`), so that
// the specs run against a server and a controller that run already.
//
// `-test.run Specs` runs the specs, and `-test.run Controller` the module's own controller, with the features that the
// specs are about, until it is terminated. The variable KUBECONFIG names the server of both.
package controllertest

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/features"
)

// What the specs use.
var (
	ctx       = context.Background()
	k8sClient client.Client
)

func connect() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	return config, v1alpha2.AddToScheme(scheme.Scheme)
}

func TestSpecs(t *testing.T) {
	config, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	if k8sClient, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "JobSet")
}

func TestController(t *testing.T) {
	config, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	ended, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.SetLogger(zap.New())
	for _, feature := range []featuregate.Feature{features.ElasticJobSet, features.RestartJob} {
		if err := features.SetEnable(feature, true); err != nil {
			t.Fatal(err)
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	jobSets := controllers.NewJobSetReconciler(manager.GetClient(), scheme.Scheme, manager.GetEventRecorder("jobset"))
	pods := controllers.NewPodReconciler(manager.GetClient(), scheme.Scheme, manager.GetEventRecorder("pod"))
	for _, set := range []func() error{
		func() error { return controllers.SetupJobSetIndexes(ended, manager.GetFieldIndexer()) },
		func() error { return controllers.SetupPodIndexes(ended, manager.GetFieldIndexer()) },
		func() error { return jobSets.SetupWithManager(manager) },
		func() error { return pods.SetupWithManager(manager) },
		func() error { return manager.Start(ended) },
	} {
		if err := set(); err != nil {
			t.Fatal(err)
		}
	}
}
