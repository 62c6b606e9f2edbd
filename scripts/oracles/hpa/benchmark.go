package podautoscaler

import (
	"context"
	"runtime"
	"syscall"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
)

const syncPeriod = 15 * time.Second

type hpaLister struct {
	autoscalinglisters.HorizontalPodAutoscalerLister
	w *world
}
type hpaNamespace struct {
	autoscalinglisters.HorizontalPodAutoscalerNamespaceLister
	w *world
}

func (l hpaLister) HorizontalPodAutoscalers(namespace string) autoscalinglisters.HorizontalPodAutoscalerNamespaceLister {
	return hpaNamespace{w: l.w}
}
func (l hpaNamespace) Get(name string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return l.w.in.HPA, nil
}

// Benchmark repeats the reconcile of a converged autoscaler, each a sync period after the one before.
type Benchmark struct {
	w   *world
	a   *HorizontalController
	key string
}

// NewBenchmark reconciles a case until there is nothing more to write.
func NewBenchmark(line []byte) *Benchmark {
	runtime.GOMAXPROCS(1)
	w, a, key := prepared(line)
	a.hpaLister = hpaLister{w: w}
	b := &Benchmark{w, a, key}
	for range 3 {
		b.step()
		if w.out.Status != nil {
			w.in.HPA.Status = *w.out.Status
		}
		w.out.Status = nil
	}
	return b
}

func (b *Benchmark) step() {
	instant = instant.Add(syncPeriod)
	if _, err := b.a.reconcileKey(context.Background(), b.key); err != nil {
		panic(err)
	}
	b.w.out.Metrics = b.w.out.Metrics[:0]
}

// Run returns the CPU time of so many reconciles in nanoseconds.
func (b *Benchmark) Run(steps int) int64 {
	start := cpuTime()
	for range steps {
		b.step()
	}
	took := cpuTime() - start
	if b.w.out.Status != nil || b.w.out.Written != nil || len(b.w.out.Events) > 0 {
		panic("the autoscaler has not converged")
	}
	return took
}

func cpuTime() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
