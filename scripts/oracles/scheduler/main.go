// The scheduler of a release of Kubernetes without an API server: it reads one situation per line, and prints per pending
// pod the node filters' reasons for each node, and the text that the scheduler would report.
//
// Nothing is replaced: `scheduler.New` builds the scheduler with its default profile. Its informers are never started;
// their stores, its cache and its snapshot are filled from the situation.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

type situation struct {
	Nodes      []*v1.Node                  `json:"nodes"`
	Pods       []*v1.Pod                   `json:"pods"`
	Pending    []*v1.Pod                   `json:"pending"`
	Namespaces []*v1.Namespace             `json:"namespaces"`
	Claims     []*v1.PersistentVolumeClaim `json:"claims"`
	Volumes    []*v1.PersistentVolume      `json:"volumes"`
	Classes    []*storagev1.StorageClass   `json:"classes"`
	CSINodes   []*storagev1.CSINode        `json:"csiNodes"`
}

type answer struct {
	Nodes   map[string][]string `json:"nodes"`             // by name; empty where the pod fits
	Message string              `json:"message,omitempty"` // of the condition PodScheduled without the part on preemption
}

func answers(given *situation) ([]answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	recorders := profile.RecorderFactory(func(string) events.EventRecorderLogger { return nil })
	sched, err := scheduler.New(ctx, client, factory, nil, recorders)
	if err != nil {
		return nil, err
	}
	if err := fill(factory, given); err != nil {
		return nil, err
	}
	logger := klog.FromContext(ctx)
	for _, node := range given.Nodes {
		sched.Cache.AddNode(logger, node)
	}
	for _, pod := range given.Pods {
		// The scheduler's informer selects those that are neither Succeeded nor Failed.
		if pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			if err := sched.Cache.AddPod(logger, pod); err != nil {
				return nil, err
			}
		}
	}
	out := make([]answer, 0, len(given.Pending))
	for _, pod := range given.Pending {
		one, err := decide(ctx, sched, pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

func fill(factory informers.SharedInformerFactory, given *situation) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	var all error
	add := func(err error) { all = errors.Join(all, err) }
	for _, each := range given.Nodes {
		add(core.Nodes().Informer().GetStore().Add(each))
	}
	for _, each := range given.Namespaces {
		add(core.Namespaces().Informer().GetStore().Add(each))
	}
	for _, each := range given.Claims {
		add(core.PersistentVolumeClaims().Informer().GetStore().Add(each))
	}
	for _, each := range given.Volumes {
		add(core.PersistentVolumes().Informer().GetStore().Add(each))
	}
	for _, each := range given.Classes {
		add(storage.StorageClasses().Informer().GetStore().Add(each))
	}
	for _, each := range given.CSINodes {
		add(storage.CSINodes().Informer().GetStore().Add(each))
	}
	return all
}

func decide(ctx context.Context, sched *scheduler.Scheduler, pod *v1.Pod) (answer, error) {
	profile := sched.Profiles[v1.DefaultSchedulerName]
	snapshot, ok := profile.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return answer{}, errors.New("the snapshot has another type")
	}
	if err := sched.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return answer{}, err
	}
	found, err := filter(ctx, profile, snapshot, pod)
	if err != nil {
		return answer{}, err
	}
	one := answer{Nodes: map[string][]string{}}
	for name, status := range found {
		one.Nodes[name] = []string{}
		if !status.IsSuccess() {
			one.Nodes[name] = status.Reasons()
		}
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return answer{}, err
	}
	result, err := sched.SchedulePod(ctx, profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	var unfit *framework.FitError
	switch {
	case err == nil:
		if !found[result.SuggestedHost].IsSuccess() {
			return answer{}, fmt.Errorf("scheduled to %s, which the filters reject", result.SuggestedHost)
		}
	case errors.As(err, &unfit):
		one.Message = unfit.Error()
	default:
		one.Message = err.Error()
	}
	return one, nil
}

// filter does what `findNodesThatFitPod` does, which gives the statuses only where no node fits.
func filter(ctx context.Context, profile framework.Framework, snapshot *cache.Snapshot, pod *v1.Pod) (map[string]*fwk.Status, error) {
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	found := map[string]*fwk.Status{}
	state := framework.NewCycleState()
	chosen, status, plugins := profile.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	for _, node := range nodes {
		name := node.Node().Name
		switch {
		case !status.IsSuccess():
			found[name] = status
		case !chosen.AllNodes() && !chosen.NodeNames.Has(name):
			message := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins))
			found[name] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message)
		default:
			one := profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
			if one.Code() == fwk.Error {
				return nil, one.AsError()
			}
			found[name] = one
		}
	}
	return found, nil
}

func answerLine(line []byte) []byte {
	var given situation
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		panic(fmt.Errorf("%w in %s", err, line))
	}
	for _, pods := range [][]*v1.Pod{given.Pods, given.Pending} {
		for _, pod := range pods {
			pod.UID = types.UID(pod.Namespace + "/" + pod.Name) // the cache's key
		}
	}
	found, err := answers(&given)
	if err != nil {
		panic(fmt.Errorf("%w in %s", err, line))
	}
	text, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	return text
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var lines [][]byte
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			lines = append(lines, line)
		}
		if err != nil {
			break
		}
	}
	out := make([][]byte, len(lines))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for number := range next {
				out[number] = answerLine(lines[number])
			}
		})
	}
	for number := range lines {
		next <- number
	}
	close(next)
	workers.Wait()
	printed := bufio.NewWriter(os.Stdout)
	defer printed.Flush()
	for _, each := range out {
		printed.Write(append(each, '\n'))
	}
}
