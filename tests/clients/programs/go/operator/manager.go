package main

import (
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"clients/expect"
)

//go:embed manifests
var manifests embed.FS

const leaseName = "shops.operator.example.com"

// install creates the definition and the webhook configurations as kubebuilder's tests do. The CA bundle of the webhooks
// is the serving certificate itself.
func install(settings *rest.Config, scheme *runtime.Scheme) *envtest.Environment {
	folder := expect.OK(os.MkdirTemp("", "operator-"))
	expect.NoError(os.CopyFS(folder, manifests))
	existing := true
	environment := &envtest.Environment{
		Config:                settings,
		Scheme:                scheme,
		UseExistingCluster:    &existing,
		CRDInstallOptions:     envtest.CRDInstallOptions{Paths: []string{filepath.Join(folder, "manifests", "crd.yaml")}, CleanUpAfterUse: true},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: webhookFiles(folder)},
	}
	expect.OK(environment.Start())
	expect.NoError(os.RemoveAll(folder))
	return environment
}

func webhookFiles(folder string) []string {
	return []string{filepath.Join(folder, "manifests", "mutating.yaml"), filepath.Join(folder, "manifests", "validating.yaml")}
}

// freeAddress returns an address on loopback that no process listens on.
func freeAddress() string {
	listener := expect.OK(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	return listener.Addr().String()
}

// running is a manager that runs in this process.
type running struct {
	ctrl.Manager
	metrics, health string
	stop            context.CancelFunc
	done            chan error
}

// stopped ends the manager and waits until it has released its lease.
func (r *running) stopped() {
	r.stop()
	expect.NoError(<-r.done)
}

// start runs a manager with the controller.
//
// identity is written into what the controller makes; namespace is where the lease is; with hooks, the manager serves
// the webhooks of the environment.
func start(ctx context.Context, environment *envtest.Environment, identity, namespace string, hooks bool) *running {
	leaseDuration, deadline, retry := 30*time.Second, 20*time.Second, 100*time.Millisecond
	skip, grace := true, 30*time.Second
	metrics, health := freeAddress(), freeAddress()
	options := ctrl.Options{
		Scheme:                        environment.Scheme,
		LeaderElection:                true,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &leaseDuration,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &retry,
		GracefulShutdownTimeout:       &grace,
		Controller:                    config.Controller{SkipNameValidation: &skip}, // two managers in one process
		HealthProbeBindAddress:        health,
		Metrics: metricsserver.Options{
			BindAddress: metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Label: labels.SelectorFromSet(labels.Set{managed: "true"})},
		}},
	}
	if hooks {
		served := environment.WebhookInstallOptions
		options.WebhookServer = webhook.NewServer(webhook.Options{
			Host: served.LocalServingHost, Port: served.LocalServingPort, CertDir: served.LocalServingCertDir,
		})
	}
	manager := expect.OK(ctrl.NewManager(environment.Config, options))
	expect.NoError(manager.AddHealthzCheck("ping", healthz.Ping))
	if hooks {
		expect.NoError(addWebhooks(manager))
		expect.NoError(manager.AddReadyzCheck("webhooks", manager.GetWebhookServer().StartedChecker()))
	}
	expect.NoError(addController(ctx, manager, identity))
	ctx, stop := context.WithCancel(ctx)
	result := &running{Manager: manager, metrics: metrics, health: health, stop: stop, done: make(chan error, 1)}
	go func() { result.done <- manager.Start(ctx) }()
	if hooks {
		started := manager.GetWebhookServer().StartedChecker()
		expect.Until(ctx, "the webhooks are served", func() bool { return started(nil) == nil })
	}
	return result
}

// isLeader returns whether the manager leads.
func (r *running) isLeader() bool {
	select {
	case <-r.Elected():
		return true
	default:
		return false
	}
}

func (r *running) String() string { return fmt.Sprintf("manager at %s", r.health) }
