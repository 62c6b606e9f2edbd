// A webhook server of controller-runtime whose validator of Pods does nothing, and a client that measures webhooks.
//
//	admission serve HOST PORT FOLDER         serve /validate with the tls.crt and tls.key of the folder
//	admission load URL FILE CLIENTS CALLS    send the review of the file, and print the latencies as a JSON object
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"clients/expect"
)

// nothing accepts every Pod.
type nothing struct{}

func (nothing) ValidateCreate(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func (nothing) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func (nothing) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func serve(host, port, folder string) {
	scheme := runtime.NewScheme()
	expect.NoError(corev1.AddToScheme(scheme))
	server := webhook.NewServer(webhook.Options{Host: host, Port: expect.OK(strconv.Atoi(port)), CertDir: folder})
	server.Register("/validate", admission.WithValidator(scheme, nothing{}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	expect.NoError(server.Start(ctx))
}

// latencies are in nanoseconds, and the throughput is the number of calls a second.
type latencies struct {
	Median     int64 `json:"median"`
	Percent99  int64 `json:"percent99"`
	Throughput int64 `json:"throughput"`
}

// load sends calls reviews from so many clients at a time, each over a connection of its own, after as many that count for nothing.
func load(url string, review []byte, clients, calls int) latencies {
	measure(url, review, clients, max(clients, calls/10))
	return measure(url, review, clients, calls)
}

func measure(url string, review []byte, clients, calls int) latencies {
	found := make([][]int64, clients)
	var group sync.WaitGroup
	began := time.Now()
	for number := range clients {
		group.Go(func() {
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // a certificate of the benchmark
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: time.Minute}
			for range calls / clients {
				sent := time.Now()
				send(client, url, review)
				found[number] = append(found[number], time.Since(sent).Nanoseconds())
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	all := slices.Sorted(slices.Values(slices.Concat(found...)))
	return latencies{
		Median:     all[len(all)/2],
		Percent99:  all[len(all)*99/100],
		Throughput: int64(float64(len(all)) / elapsed.Seconds()),
	}
}

// send sends a review, which the webhook has to accept.
func send(client *http.Client, url string, review []byte) {
	response := expect.OK(client.Post(url, "application/json", bytes.NewReader(review)))
	defer response.Body.Close()
	body := expect.OK(io.ReadAll(response.Body))
	answer := struct {
		Response struct {
			Allowed bool `json:"allowed"`
		} `json:"response"`
	}{}
	expect.NoError(json.Unmarshal(body, &answer))
	if !answer.Response.Allowed {
		expect.Failf("%s: %d %s", url, response.StatusCode, body)
	}
}

func main() {
	klog.SetOutput(os.Stderr)
	ctrl.SetLogger(klog.Background())
	switch arguments := os.Args[1:]; arguments[0] {
	case "serve":
		serve(arguments[1], arguments[2], arguments[3])
	case "load":
		clients, calls := expect.OK(strconv.Atoi(arguments[3])), expect.OK(strconv.Atoi(arguments[4]))
		found := load(arguments[1], expect.OK(os.ReadFile(arguments[2])), clients, calls)
		expect.NoError(json.NewEncoder(os.Stdout).Encode(found))
	}
}
