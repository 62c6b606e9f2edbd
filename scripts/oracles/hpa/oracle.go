package podautoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	k8serrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/component-base/featuregate"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/monitor"
	"k8s.io/kubernetes/pkg/controller/util/selectors"
)

var instant time.Time

func clockNow() time.Time { return instant }

func ms(t int64) time.Time { return time.UnixMilli(t).UTC() }

type reading struct {
	Error   string              `json:"error"`
	Samples map[string][3]int64 `json:"samples"`
	Values  []int64             `json:"values"`
}

type caseIn struct {
	HPA         *autoscalingv2.HorizontalPodAutoscaler `json:"hpa"`
	Scale       *autoscalingv1.Scale                   `json:"scale"`
	ScaleError  string                                 `json:"scaleError"`
	UpdateError string                                 `json:"updateError"`
	Conflicts   int                                    `json:"conflicts"`
	StatusError string                                 `json:"statusError"`
	Pods        []*v1.Pod                              `json:"pods"`
	Readings    map[string]reading                     `json:"readings"`
	Others      map[string]string                      `json:"others"`
	Gates       map[string]bool                        `json:"gates"`
	Tolerance   float64                                `json:"tolerance"`
	Downscale   int64                                  `json:"downscale"`
	CPUInit     int64                                  `json:"cpuInit"`
	Readiness   int64                                  `json:"readiness"`
	Factor      float64                                `json:"factor"`
	Minimum     float64                                `json:"minimum"`
	Recs        [][2]int64                             `json:"recs"`
	Ups         [][3]int64                             `json:"ups"`
	Downs       [][3]int64                             `json:"downs"`
	Now         int64                                  `json:"now"`
}

type caseOut struct {
	Events  [][3]string                                  `json:"events"`
	Status  *autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
	Written *int32                                       `json:"written"`
	Error   string                                       `json:"error"`
	Labels  [2]string                                    `json:"labels"`
	Metrics [][3]string                                  `json:"metrics"`
	Recs    [][2]int64                                   `json:"recs"`
	Ups     [][3]int64                                   `json:"ups"`
	Downs   [][3]int64                                   `json:"downs"`
	Panic   string                                       `json:"panic,omitempty"`
}

type world struct {
	in  *caseIn
	out *caseOut
	apimeta.RESTMapper
}

func (w *world) read(key string) (reading, error) {
	r, ok := w.in.Readings[key]
	if !ok {
		return r, errors.New("no reading of it was handed over")
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (w *world) pods(key string) (metricsclient.PodMetricsInfo, time.Time, error) {
	r, err := w.read(key)
	if err != nil {
		return nil, time.Time{}, err
	}
	info := metricsclient.PodMetricsInfo{}
	for name, s := range r.Samples {
		info[name] = metricsclient.PodMetric{Value: s[0], Timestamp: ms(s[1]), Window: time.Duration(s[2]) * time.Millisecond}
	}
	return info, instant, nil
}

func (w *world) GetResourceMetric(ctx context.Context, resource v1.ResourceName, namespace string, selector labels.Selector, container string) (metricsclient.PodMetricsInfo, time.Time, error) {
	if container == "" {
		return w.pods("Resource/" + string(resource))
	}
	return w.pods("ContainerResource/" + string(resource) + "/" + container)
}

func (w *world) GetRawMetric(metricName string, namespace string, selector labels.Selector, metricSelector labels.Selector) (metricsclient.PodMetricsInfo, time.Time, error) {
	return w.pods("Pods/" + metricName)
}

func (w *world) GetObjectMetric(metricName string, namespace string, objectRef *autoscalingv2.CrossVersionObjectReference, metricSelector labels.Selector) (int64, time.Time, error) {
	r, err := w.read("Object/" + metricName)
	if err != nil {
		return 0, time.Time{}, err
	}
	return r.Values[0], instant, nil
}

func (w *world) GetExternalMetric(metricName string, namespace string, selector labels.Selector) ([]int64, time.Time, error) {
	r, err := w.read("External/" + metricName)
	return r.Values, instant, err
}

type podLister struct {
	corelisters.PodLister
	w *world
}
type podNamespace struct {
	corelisters.PodNamespaceLister
	w *world
}

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespace{w: l.w}
}
func (l podNamespace) List(selector labels.Selector) (ret []*v1.Pod, err error) {
	for _, p := range l.w.in.Pods {
		if selector.Matches(labels.Set(p.Labels)) {
			ret = append(ret, p)
		}
	}
	return ret, nil
}

type scales struct{ w *world }

func (s scales) Scales(namespace string) scaleclient.ScaleInterface { return s }
func (s scales) Get(ctx context.Context, resource schema.GroupResource, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if s.w.in.ScaleError != "" {
		return nil, errors.New(s.w.in.ScaleError)
	}
	return s.w.in.Scale.DeepCopy(), nil
}
func (s scales) Update(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	if s.w.in.Conflicts > 0 {
		s.w.in.Conflicts--
		return nil, k8serrors.NewConflict(resource, scale.Name, errors.New("it has changed"))
	}
	if s.w.in.UpdateError != "" {
		return nil, errors.New(s.w.in.UpdateError)
	}
	n := scale.Spec.Replicas
	s.w.out.Written = &n
	return scale, nil
}
func (s scales) Patch(ctx context.Context, gvr schema.GroupVersionResource, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, errors.New("no")
}

type hpas struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
	w *world
}

func (h hpas) HorizontalPodAutoscalers(namespace string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return h
}
func (h hpas) UpdateStatus(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, opts metav1.UpdateOptions) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	h.w.out.Status = hpa.Status.DeepCopy()
	if h.w.in.StatusError != "" {
		return nil, errors.New(h.w.in.StatusError)
	}
	return hpa, nil
}

type mapper struct {
	apimeta.RESTMapper
	w *world
}

func (m mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*apimeta.RESTMapping, error) {
	return []*apimeta.RESTMapping{{Resource: schema.GroupVersionResource{Group: gk.Group, Version: "v1", Resource: "things"}}}, nil
}

func (w *world) Event(object runtime.Object, eventtype, reason, message string) {
	w.out.Events = append(w.out.Events, [3]string{eventtype, reason, message})
}
func (w *world) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...interface{}) {
	w.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}
func (w *world) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...interface{}) {
	w.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

func (w *world) ObserveReconciliationResult(action monitor.ActionLabel, err monitor.ErrorLabel, duration time.Duration) {
	w.out.Labels = [2]string{string(action), string(err)}
}
func (w *world) ObserveMetricComputationResult(action monitor.ActionLabel, err monitor.ErrorLabel, duration time.Duration, metricType autoscalingv2.MetricSourceType) {
	w.out.Metrics = append(w.out.Metrics, [3]string{string(metricType), string(action), string(err)})
}
func (w *world) ObserveHPAAddition()                                           {}
func (w *world) ObserveHPADeletion()                                           {}
func (w *world) ObserveDesiredReplicas(namespace, name string, replicas int32) {}
func (w *world) ObserveHPARequeueSkips(group, resource string)                 {}

func events(rows [][3]int64) (ret []timestampedScaleEvent) {
	for _, r := range rows {
		ret = append(ret, timestampedScaleEvent{int32(r[0]), ms(r[1]), r[2] != 0})
	}
	return
}
func rows(list []timestampedScaleEvent) [][3]int64 {
	ret := [][3]int64{}
	for _, e := range list {
		old := int64(0)
		if e.outdated {
			old = 1
		}
		ret = append(ret, [3]int64{int64(e.replicaChange), e.timestamp.UnixMilli(), old})
	}
	return ret
}

// setGates sets the feature gates that this release has; what it does not have, or always has, stays.
func setGates(gates map[string]bool) {
	// These depend on PodLevelResources, which cases turn off, and change nothing here.
	wanted := map[string]bool{
		"InPlacePodLevelResourcesVerticalScaling": false,
		"PodLevelResourcesFixDefaulting":          false,
		"PodLevelResourcesFixKubeletQOSClass":     false,
	}
	for name, on := range gates {
		wanted[name] = on
	}
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name := range wanted {
		if spec, ok := known[featuregate.Feature(name)]; !ok || spec.LockToDefault {
			delete(wanted, name)
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(wanted); err != nil {
		panic(err)
	}
}

// prepared returns a controller that sees and remembers what a case says.
func prepared(line []byte) (*world, *HorizontalController, string) {
	utilruntime.ErrorHandlers = nil
	in, out := &caseIn{}, &caseOut{Events: [][3]string{}, Metrics: [][3]string{}}
	if err := json.Unmarshal(line, in); err != nil {
		panic(err)
	}
	setGates(in.Gates)
	instant = ms(in.Now)
	scaleUpLimitFactor, scaleUpLimitMinimum = in.Factor, in.Minimum
	w := &world{in: in, out: out}
	key := in.HPA.Namespace + "/" + in.HPA.Name
	a := newController(w, podLister{w: w}, key)
	if in.Recs != nil {
		list := []timestampedRecommendation{}
		for _, r := range in.Recs {
			list = append(list, timestampedRecommendation{int32(r[0]), ms(r[1])})
		}
		a.recommendations[key] = list
	}
	putSelector(a, selectors.Parse(key), labels.Nothing())
	for name, text := range in.Others {
		s, err := labels.Parse(text)
		if err != nil {
			panic(err)
		}
		putSelector(a, selectors.Key{Name: name, Namespace: in.HPA.Namespace}, s)
	}
	return w, a, key
}

// Oracle runs one reconcile and reports everything that left the controller.
func Oracle(line []byte) (ret []byte) {
	w, a, key := prepared(line)
	in, out := w.in, w.out
	func() {
		defer func() {
			if r := recover(); r != nil {
				out.Panic = fmt.Sprint(r)
			}
		}()
		if err := a.reconcileAutoscaler(context.Background(), in.HPA, key); err != nil {
			out.Error = err.Error()
		}
	}()
	if a.recommendations[key] != nil {
		out.Recs = [][2]int64{}
		for _, r := range a.recommendations[key] {
			out.Recs = append(out.Recs, [2]int64{int64(r.recommendation), r.timestamp.UnixMilli()})
		}
	}
	out.Ups, out.Downs = rows(a.scaleUpEvents[key]), rows(a.scaleDownEvents[key])
	ret, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return ret
}
