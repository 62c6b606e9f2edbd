package podautoscaler

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/record"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/monitor"
)

var mu sync.Mutex
var busy bool
var testName = regexp.MustCompile(`\.(Test[A-Za-z0-9_]+)`)

func caller() string {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if m := testName.FindStringSubmatch(f.Function); m != nil {
			return m[1]
		}
		if !more {
			return current
		}
	}
}

var current string

func emit(kind string, in, out any) {
	f, err := os.OpenFile(os.Getenv("HPA_CASES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	b, err := json.Marshal(map[string]any{"test": caller(), "kind": kind, "in": in, "out": out})
	if err != nil {
		panic(err)
	}
	f.Write(append(b, '\n'))
}

func freeze() func() {
	if busy {
		return nil
	}
	return freezeAlways()
}

func freezeAlways() func() {
	mu.Lock()
	busy, frozen = true, true
	instant = time.UnixMilli(time.Now().UnixMilli()).UTC()
	return func() { busy, frozen = false, false; mu.Unlock() }
}

type spyMetrics struct {
	metricsclient.MetricsClient
	seen map[string]reading
}

func toReading(info metricsclient.PodMetricsInfo, err error) reading {
	if err != nil {
		return reading{Error: err.Error()}
	}
	r := reading{Samples: map[string][3]int64{}}
	for n, s := range info {
		r.Samples[n] = [3]int64{s.Value, s.Timestamp.UnixMilli(), s.Window.Milliseconds()}
	}
	return r
}

func (s spyMetrics) GetResourceMetric(ctx context.Context, resource v1.ResourceName, namespace string, selector labels.Selector, container string) (metricsclient.PodMetricsInfo, time.Time, error) {
	i, t, e := s.MetricsClient.GetResourceMetric(ctx, resource, namespace, selector, container)
	key := "Resource/" + string(resource)
	if container != "" {
		key = "ContainerResource/" + string(resource) + "/" + container
	}
	s.seen[key] = toReading(i, e)
	return i, t, e
}
func (s spyMetrics) GetRawMetric(name string, namespace string, selector labels.Selector, metricSelector labels.Selector) (metricsclient.PodMetricsInfo, time.Time, error) {
	i, t, e := s.MetricsClient.GetRawMetric(name, namespace, selector, metricSelector)
	s.seen["Pods/"+name] = toReading(i, e)
	return i, t, e
}
func (s spyMetrics) GetObjectMetric(name string, namespace string, ref *autoscalingv2.CrossVersionObjectReference, metricSelector labels.Selector) (int64, time.Time, error) {
	v, t, e := s.MetricsClient.GetObjectMetric(name, namespace, ref, metricSelector)
	r := reading{Values: []int64{v}}
	if e != nil {
		r = reading{Error: e.Error()}
	}
	s.seen["Object/"+name] = r
	return v, t, e
}
func (s spyMetrics) GetExternalMetric(name, namespace string, selector labels.Selector) ([]int64, time.Time, error) {
	v, t, e := s.MetricsClient.GetExternalMetric(name, namespace, selector)
	r := reading{Values: v}
	if e != nil {
		r = reading{Error: e.Error()}
	}
	s.seen["External/"+name] = r
	return v, t, e
}

func copyPods(list []*v1.Pod) []*v1.Pod {
	ret := []*v1.Pod{}
	for _, p := range list {
		p = p.DeepCopy()
		if p.Status.StartTime != nil && p.Status.StartTime.IsZero() {
			t := metav1.NewTime(time.Unix(0, 0))
			p.Status.StartTime = &t
		}
		ret = append(ret, p)
	}
	return ret
}

func gatesNow() map[string]bool {
	ret := map[string]bool{}
	for _, n := range []string{"HPAScaleToZero", "HPAConfigurableTolerance", "PodLevelResources"} {
		for k := range utilfeature.DefaultMutableFeatureGate.GetAll() {
			if string(k) == n {
				ret[n] = utilfeature.DefaultFeatureGate.Enabled(k)
			}
		}
	}
	return ret
}

type spyScales struct {
	scaleclient.ScalesGetter
	in  *caseIn
	out *caseOut
}
type spyScale struct {
	scaleclient.ScaleInterface
	in  *caseIn
	out *caseOut
}

func (s spyScales) Scales(ns string) scaleclient.ScaleInterface {
	return spyScale{s.ScalesGetter.Scales(ns), s.in, s.out}
}
func (s spyScale) Get(ctx context.Context, resource schema.GroupResource, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	r, e := s.ScaleInterface.Get(ctx, resource, name, opts)
	if s.in.Scale == nil && s.in.ScaleError == "" {
		if e != nil {
			s.in.ScaleError = e.Error()
		} else {
			s.in.Scale = r.DeepCopy()
		}
	}
	return r, e
}
func (s spyScale) Update(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	n := scale.Spec.Replicas
	r, e := s.ScaleInterface.Update(ctx, resource, scale, opts)
	s.in.UpdateError = ""
	if e != nil {
		s.in.UpdateError = e.Error()
	} else {
		s.out.Written = &n
	}
	return r, e
}

type spyHpas struct {
	autoscalingclient.HorizontalPodAutoscalersGetter
	out *caseOut
}
type spyHpa struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
	out *caseOut
}

func (h spyHpas) HorizontalPodAutoscalers(ns string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return spyHpa{h.HorizontalPodAutoscalersGetter.HorizontalPodAutoscalers(ns), h.out}
}
func (h spyHpa) UpdateStatus(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, opts metav1.UpdateOptions) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	h.out.Status = hpa.Status.DeepCopy()
	return h.HorizontalPodAutoscalerInterface.UpdateStatus(ctx, hpa, opts)
}

type spyEvents struct {
	record.EventRecorder
	w *world
}

func (s spyEvents) Event(o kruntime.Object, t, r, m string) {
	s.w.Event(o, t, r, m)
	s.EventRecorder.Event(o, t, r, m)
}
func (s spyEvents) Eventf(o kruntime.Object, t, r, m string, args ...interface{}) {
	s.w.Eventf(o, t, r, m, args...)
	s.EventRecorder.Eventf(o, t, r, m, args...)
}

type spyMonitor struct {
	monitor.Monitor
	w *world
}

func (s spyMonitor) ObserveReconciliationResult(a monitor.ActionLabel, e monitor.ErrorLabel, d time.Duration) {
	s.w.ObserveReconciliationResult(a, e, d)
	s.Monitor.ObserveReconciliationResult(a, e, d)
}
func (s spyMonitor) ObserveMetricComputationResult(a monitor.ActionLabel, e monitor.ErrorLabel, d time.Duration, t autoscalingv2.MetricSourceType) {
	s.w.ObserveMetricComputationResult(a, e, d, t)
	s.Monitor.ObserveMetricComputationResult(a, e, d, t)
}

func recs(list []timestampedRecommendation) [][2]int64 {
	if list == nil {
		return nil
	}
	ret := [][2]int64{}
	for _, r := range list {
		ret = append(ret, [2]int64{int64(r.recommendation), r.timestamp.UnixMilli()})
	}
	return ret
}

func (a *HorizontalController) reconcileAutoscaler(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, key string) (retErr error) {
	done := freezeAlways()
	defer done()
	in, out := &caseIn{}, &caseOut{Events: [][3]string{}, Metrics: [][3]string{}}
	w := &world{in: in, out: out}
	in.HPA = hpa.DeepCopy()
	all, _ := a.podLister.Pods(hpa.Namespace).List(labels.Everything())
	in.Pods = copyPods(all)
	in.Readings = map[string]reading{}
	in.Others = map[string]string{}
	in.Gates = gatesNow()
	in.Tolerance = a.tolerance
	in.Downscale = a.downscaleStabilisationWindow.Milliseconds()
	in.CPUInit, in.Readiness = a.replicaCalc.cpuInitializationPeriod.Milliseconds(), a.replicaCalc.delayOfInitialReadinessStatus.Milliseconds()
	in.Factor, in.Minimum = scaleUpLimitFactor, scaleUpLimitMinimum
	in.Now = instant.UnixMilli()
	in.Recs, in.Ups, in.Downs = recs(a.recommendations[key]), rows(a.scaleUpEvents[key]), rows(a.scaleDownEvents[key])
	scaleN, hpaN, ev, mon, mc := a.scaleNamespacer, a.hpaNamespacer, a.eventRecorder, a.monitor, a.replicaCalc.metricsClient
	a.scaleNamespacer = spyScales{scaleN, in, out}
	a.hpaNamespacer = spyHpas{hpaN, out}
	a.eventRecorder = spyEvents{ev, w}
	a.monitor = spyMonitor{mon, w}
	a.replicaCalc.metricsClient = spyMetrics{mc, in.Readings}
	err := a.reconcileInner(ctx, hpa, key)
	a.scaleNamespacer, a.hpaNamespacer, a.eventRecorder, a.monitor, a.replicaCalc.metricsClient = scaleN, hpaN, ev, mon, mc
	if err != nil {
		out.Error = err.Error()
	}
	out.Recs, out.Ups, out.Downs = recs(a.recommendations[key]), rows(a.scaleUpEvents[key]), rows(a.scaleDownEvents[key])
	emit("reconcile", in, out)
	return err
}

func convertDesiredReplicasWithRules(current, desired, min, max int32) (int32, string, string) {
	n, r, m := convertInner(current, desired, min, max)
	if !busy {
		emit("limited", []any{current, desired, min, max, scaleUpLimitFactor, scaleUpLimitMinimum}, []any{n, r, m})
	}
	return n, r, m
}

func (a *HorizontalController) convertDesiredReplicasWithBehaviorRate(args NormalizationArg) (int32, string, string) {
	if done := freeze(); done != nil {
		defer done()
		n, r, m := a.convertDesiredReplicasWithBehaviorRateInner(args)
		emit("limitedByBehavior", map[string]any{"args": args, "ups": rows(a.scaleUpEvents[args.Key]), "downs": rows(a.scaleDownEvents[args.Key]), "now": instant.UnixMilli()}, []any{n, r, m})
		return n, r, m
	}
	return a.convertDesiredReplicasWithBehaviorRateInner(args)
}

func (a *HorizontalController) stabilizeRecommendation(key string, n int32) int32 {
	if done := freeze(); done != nil {
		defer done()
		in := map[string]any{"recs": recs(a.recommendations[key]), "wanted": n, "now": instant.UnixMilli(), "window": a.downscaleStabilisationWindow.Milliseconds()}
		r := a.stabilizeRecommendationInner(key, n)
		emit("holdDown", in, map[string]any{"replicas": r, "recs": recs(a.recommendations[key])})
		return r
	}
	return a.stabilizeRecommendationInner(key, n)
}

func (a *HorizontalController) stabilizeRecommendationWithBehaviors(args NormalizationArg) (int32, string, string) {
	if done := freeze(); done != nil {
		defer done()
		in := map[string]any{"recs": recs(a.recommendations[args.Key]), "args": args, "now": instant.UnixMilli()}
		n, r, m := a.stabilizeRecommendationWithBehaviorsInner(args)
		emit("holdInEnvelope", in, map[string]any{"replicas": n, "reason": r, "recs": recs(a.recommendations[args.Key])})
		return n, r, m
	}
	return a.stabilizeRecommendationWithBehaviorsInner(args)
}

func (a *HorizontalController) storeScaleEvent(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, key string, prev, new int32) {
	if done := freeze(); done != nil {
		defer done()
		in := map[string]any{"ups": rows(a.scaleUpEvents[key]), "downs": rows(a.scaleDownEvents[key]), "behavior": behavior, "before": prev, "after": new, "now": instant.UnixMilli()}
		a.storeScaleEventInner(behavior, key, prev, new)
		emit("stored", in, map[string]any{"ups": rows(a.scaleUpEvents[key]), "downs": rows(a.scaleDownEvents[key])})
		return
	}
	a.storeScaleEventInner(behavior, key, prev, new)
}

type calcIn struct {
	Call      string             `json:"call"`
	Current   int32              `json:"current"`
	Target    int64              `json:"target"`
	Tolerance [2]float64         `json:"tolerances"`
	Resource  string             `json:"resource"`
	Container string             `json:"container"`
	Pods      []*v1.Pod          `json:"pods"`
	Readings  map[string]reading `json:"readings"`
	CPUInit   int64              `json:"cpuInit"`
	Readiness int64              `json:"readiness"`
	Now       int64              `json:"now"`
	PodLevel  bool               `json:"podLevel"`
}

func (c *ReplicaCalculator) spy(call string, current int32, target int64, t Tolerances, resource, container, ns string, selector labels.Selector, run func() (int32, int32, int64, error)) {
	done := freeze()
	if done == nil {
		run()
		return
	}
	defer done()
	in := calcIn{call, current, target, [2]float64{t.scaleDown, t.scaleUp}, resource, container, nil, map[string]reading{}, c.cpuInitializationPeriod.Milliseconds(), c.delayOfInitialReadinessStatus.Milliseconds(), instant.UnixMilli(), gatesNow()["PodLevelResources"]}
	if selector != nil {
		all, _ := c.podLister.Pods(ns).List(selector)
		in.Pods = copyPods(all)
	}
	mc := c.metricsClient
	c.metricsClient = spyMetrics{mc, in.Readings}
	n, u, raw, err := run()
	c.metricsClient = mc
	text := ""
	if err != nil {
		text = err.Error()
	}
	emit("calculation", in, map[string]any{"replicas": n, "utilization": u, "usage": raw, "error": text})
}

func (c *ReplicaCalculator) GetResourceReplicas(ctx context.Context, currentReplicas int32, targetUtilization int32, resource v1.ResourceName, tolerances Tolerances, namespace string, selector labels.Selector, container string) (n int32, u int32, raw int64, t time.Time, err error) {
	c.spy("utilization", currentReplicas, int64(targetUtilization), tolerances, string(resource), container, namespace, selector, func() (int32, int32, int64, error) {
		n, u, raw, t, err = c.GetResourceReplicasInner(ctx, currentReplicas, targetUtilization, resource, tolerances, namespace, selector, container)
		return n, u, raw, err
	})
	return
}
func (c *ReplicaCalculator) GetRawResourceReplicas(ctx context.Context, currentReplicas int32, targetUsage int64, resource v1.ResourceName, tolerances Tolerances, namespace string, selector labels.Selector, container string) (n int32, u int64, t time.Time, err error) {
	c.spy("average", currentReplicas, targetUsage, tolerances, string(resource), container, namespace, selector, func() (int32, int32, int64, error) {
		n, u, t, err = c.GetRawResourceReplicasInner(ctx, currentReplicas, targetUsage, resource, tolerances, namespace, selector, container)
		return n, 0, u, err
	})
	return
}
func (c *ReplicaCalculator) GetMetricReplicas(currentReplicas int32, targetUsage int64, metricName string, tolerances Tolerances, namespace string, selector labels.Selector, metricSelector labels.Selector) (n int32, u int64, t time.Time, err error) {
	c.spy("average", currentReplicas, targetUsage, tolerances, "", "", namespace, selector, func() (int32, int32, int64, error) {
		n, u, t, err = c.GetMetricReplicasInner(currentReplicas, targetUsage, metricName, tolerances, namespace, selector, metricSelector)
		return n, 0, u, err
	})
	return
}
func (c *ReplicaCalculator) GetObjectMetricReplicas(currentReplicas int32, targetUsage int64, metricName string, tolerances Tolerances, namespace string, objectRef *autoscalingv2.CrossVersionObjectReference, selector labels.Selector, metricSelector labels.Selector) (n int32, u int64, t time.Time, err error) {
	c.spy("total", currentReplicas, targetUsage, tolerances, "", "", namespace, selector, func() (int32, int32, int64, error) {
		n, u, t, err = c.GetObjectMetricReplicasInner(currentReplicas, targetUsage, metricName, tolerances, namespace, objectRef, selector, metricSelector)
		return n, 0, u, err
	})
	return
}
func (c *ReplicaCalculator) GetObjectPerPodMetricReplicas(statusReplicas int32, target int64, metricName string, tolerances Tolerances, namespace string, objectRef *autoscalingv2.CrossVersionObjectReference, metricSelector labels.Selector) (n int32, u int64, t time.Time, err error) {
	c.spy("objectPerPod", statusReplicas, target, tolerances, "", "", namespace, nil, func() (int32, int32, int64, error) {
		n, u, t, err = c.GetObjectPerPodMetricReplicasInner(statusReplicas, target, metricName, tolerances, namespace, objectRef, metricSelector)
		return n, 0, u, err
	})
	return
}
func (c *ReplicaCalculator) GetExternalMetricReplicas(currentReplicas int32, targetUsage int64, metricName string, tolerances Tolerances, namespace string, metricSelector *metav1.LabelSelector, podSelector labels.Selector) (n int32, u int64, t time.Time, err error) {
	c.spy("external", currentReplicas, targetUsage, tolerances, "", "", namespace, podSelector, func() (int32, int32, int64, error) {
		n, u, t, err = c.GetExternalMetricReplicasInner(currentReplicas, targetUsage, metricName, tolerances, namespace, metricSelector, podSelector)
		return n, 0, u, err
	})
	return
}
func (c *ReplicaCalculator) GetExternalPerPodMetricReplicas(statusReplicas int32, target int64, metricName string, tolerances Tolerances, namespace string, metricSelector *metav1.LabelSelector) (n int32, u int64, t time.Time, err error) {
	c.spy("externalPerPod", statusReplicas, target, tolerances, "", "", namespace, nil, func() (int32, int32, int64, error) {
		n, u, t, err = c.GetExternalPerPodMetricReplicasInner(statusReplicas, target, metricName, tolerances, namespace, metricSelector)
		return n, 0, u, err
	})
	return
}
