package controller

import (
	"github.com/blang/semver/v4"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applyautoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"

	sitesv1 "example.com/sites/api/v1"
)

const (
	image              = "docker.io/nginxinc/nginx-unprivileged:1.29"
	port               = 8080
	gracePeriodSeconds = 45
	delaySeconds       = 10
	cpuUtilization     = 70
)

// gracefulShutdownSince is the first version that supports a delayed shutdown.
var gracefulShutdownSince = semver.MustParse("1.1.0")

func labels(site *sitesv1.Site) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "site", "app.kubernetes.io/instance": site.Name}
}

// owner returns the reference by which the garbage collector deletes an object with its site.
func owner(site *sitesv1.Site) *applymeta.OwnerReferenceApplyConfiguration {
	return applymeta.OwnerReference().
		WithAPIVersion(sitesv1.GroupVersion.String()).
		WithKind("Site").
		WithName(site.Name).
		WithUID(site.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

func configMap(site *sitesv1.Site) *applycore.ConfigMapApplyConfiguration {
	return applycore.ConfigMap(site.Name, site.Namespace).
		WithLabels(labels(site)).
		WithOwnerReferences(owner(site)).
		WithData(map[string]string{"index.html": site.Spec.Greeting + "\n"})
}

func service(site *sitesv1.Site) *applycore.ServiceApplyConfiguration {
	return applycore.Service(site.Name, site.Namespace).
		WithLabels(labels(site)).
		WithOwnerReferences(owner(site)).
		WithSpec(applycore.ServiceSpec().
			WithSelector(labels(site)).
			WithPorts(applycore.ServicePort().WithName("http").WithPort(80).WithTargetPort(intstr.FromString("http"))))
}

func autoscaler(site *sitesv1.Site) *applyautoscaling.HorizontalPodAutoscalerApplyConfiguration {
	target := applyautoscaling.CrossVersionObjectReference().
		WithAPIVersion(appsv1.SchemeGroupVersion.String()).
		WithKind("Deployment").
		WithName(site.Name)
	cpu := applyautoscaling.MetricSpec().
		WithType(autoscalingv2.ResourceMetricSourceType).
		WithResource(applyautoscaling.ResourceMetricSource().
			WithName(corev1.ResourceCPU).
			WithTarget(applyautoscaling.MetricTarget().
				WithType(autoscalingv2.UtilizationMetricType).
				WithAverageUtilization(cpuUtilization)))
	return applyautoscaling.HorizontalPodAutoscaler(site.Name, site.Namespace).
		WithLabels(labels(site)).
		WithOwnerReferences(owner(site)).
		WithSpec(applyautoscaling.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(target).
			WithMinReplicas(site.Spec.Replicas).
			WithMaxReplicas(*site.Spec.MaxReplicas).
			WithMetrics(cpu))
}

// deployment returns the desired Deployment; live is the one that exists, or nil.
func deployment(site *sitesv1.Site, live *appsv1.Deployment) (*applyapps.DeploymentApplyConfiguration, error) {
	pod, err := podSpec(site)
	if err != nil {
		return nil, err
	}
	desired := applyapps.Deployment(site.Name, site.Namespace).
		WithLabels(labels(site)).
		WithOwnerReferences(owner(site))
	replicas := site.Spec.Replicas
	switch {
	case site.Spec.Suspended:
		replicas = 0
	case site.Spec.MaxReplicas != nil && live != nil && live.Spec.Replicas != nil && *live.Spec.Replicas > 0:
		// The autoscaler owns the count. Without a value the API server would reset it to 1; the resource version
		// prevents that a decision since the last read is undone.
		replicas = *live.Spec.Replicas
		desired.WithResourceVersion(live.ResourceVersion)
	}
	return desired.WithSpec(applyapps.DeploymentSpec().
		WithReplicas(replicas).
		WithSelector(applymeta.LabelSelector().WithMatchLabels(labels(site))).
		WithTemplate(applycore.PodTemplateSpec().WithLabels(labels(site)).WithSpec(pod))), nil
}

func podSpec(site *sitesv1.Site) (*applycore.PodSpecApplyConfiguration, error) {
	version, err := semver.Parse(site.Spec.Version)
	if err != nil {
		return nil, err
	}
	probe := applycore.Probe().
		WithHTTPGet(applycore.HTTPGetAction().WithPath("/").WithPort(intstr.FromString("http")))
	resources := applycore.ResourceRequirements().
		WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})
	container := applycore.Container().
		WithName("server").
		WithImage(image).
		WithPorts(applycore.ContainerPort().WithName("http").WithContainerPort(port)).
		WithReadinessProbe(probe).
		WithResources(resources).
		WithVolumeMounts(applycore.VolumeMount().WithName("page").WithMountPath("/usr/share/nginx/html").WithReadOnly(true))
	page := applycore.Volume().
		WithName("page").
		WithConfigMap(applycore.ConfigMapVolumeSource().WithName(site.Name))
	pod := applycore.PodSpec().WithVolumes(page)
	if version.GE(gracefulShutdownSince) {
		pod.WithTerminationGracePeriodSeconds(gracePeriodSeconds)
		container.WithLifecycle(applycore.Lifecycle().
			WithPreStop(applycore.LifecycleHandler().
				WithSleep(applycore.SleepAction().WithSeconds(delaySeconds))))
	}
	return pod.WithContainers(container), nil
}
